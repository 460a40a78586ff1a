//! Both sides: the kinds as we know them, and a kube-apiserver that knows the
//! same definitions.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tidegate_model::Object;
use tidegate_model::kinds::{Kind, KindSet, Scope};
use tidegate_testkit::cluster::{self, ADMIN};
use tokio::runtime::Runtime;

use crate::definitions::{self, Definition};

/// Requests under way at once.
const REQUESTS_MAX: usize = 16;
const DIFFERENCES_SHOWN_MAX: usize = 40;
const ESTABLISHED_MAX: Duration = Duration::from_secs(120);

pub struct Plane {
    runtime: Runtime,
    http: reqwest::Client,
    url: String,
    token: String,
    kinds: KindSet,
    pub definitions: Vec<Definition>,
    namespaces: Mutex<HashSet<String>>,
}

/// An object that enters, in place of `old` if there is one.
pub struct Case {
    pub old: Option<Value>,
    pub new: Value,
    /// How it was made, for whoever reads a failure.
    pub about: String,
}

#[derive(PartialEq, Debug)]
pub enum Verdict {
    Admitted(Value),
    Refused(String),
}

#[derive(Default, Debug)]
pub struct Tally {
    pub admitted: usize,
    pub refused: usize,
    pub differences: Vec<String>,
}

pub fn plane() -> &'static Plane {
    static PLANE: LazyLock<Plane> = LazyLock::new(Plane::start);
    &PLANE
}

impl Plane {
    fn start() -> Self {
        let cluster = cluster::shared();
        let _ = rustls::crypto::ring::default_provider().install_default();
        let ca = reqwest::Certificate::from_pem(cluster.ca_pem().as_bytes()).unwrap();
        let http = reqwest::Client::builder().no_proxy().tls_certs_only([ca]).build().unwrap();
        let definitions = definitions::all();
        let mut kinds = KindSet::builtin();
        for definition in definitions.iter().filter(|definition| !definition.is_builtin) {
            let object = Object::from_value(definition.value.clone()).unwrap();
            let kind = Kind::from_crd(&object).unwrap_or_else(|errors| panic!("{}: {errors:#?}", object.name()));
            kinds = kinds.with(Arc::new(kind)).unwrap_or_else(|errors| panic!("{errors:?}"));
        }
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (url, token) = (cluster.url(), cluster.token(ADMIN));
        let plane = Self { runtime, http, url, token, kinds, definitions, namespaces: Mutex::default() };
        plane.runtime.block_on(plane.define());
        plane
    }

    /// Every definition is taken unchanged, and served.
    async fn define(&self) {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        for Definition { value, .. } in &self.definitions {
            let (status, answer) = self.send(Method::POST, path, value).await;
            assert_eq!(status, StatusCode::CREATED, "{}: {answer}", value["metadata"]["name"]);
        }
        let started = Instant::now();
        for Definition { value, .. } in &self.definitions {
            let path = format!("{path}/{}", value["metadata"]["name"].as_str().unwrap());
            while !self.is_established(&path).await {
                assert!(started.elapsed() < ESTABLISHED_MAX, "{path} is not established");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }

    async fn is_established(&self, path: &str) -> bool {
        let (_, answer) = self.send(Method::GET, path, &Value::Null).await;
        let conditions = answer["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|condition| condition["type"] == "Established" && condition["status"] == "True")
    }

    /// Both verdicts on each case.
    pub fn compare(&self, cases: &[Case]) -> Tally {
        let mut tally = Tally::default();
        let answers = self.runtime.block_on(async {
            futures_util::stream::iter(cases)
                .map(|case| self.theirs(case))
                .buffered(REQUESTS_MAX)
                .collect::<Vec<_>>()
                .await
        });
        for (case, theirs) in cases.iter().zip(answers) {
            let ours = self.ours(case);
            match &theirs {
                Verdict::Admitted(_) => tally.admitted += 1,
                Verdict::Refused(_) => tally.refused += 1,
            }
            let is_same = match (&ours, &theirs) {
                (Verdict::Admitted(ours), Verdict::Admitted(theirs)) => ours == theirs,
                (Verdict::Refused(_), Verdict::Refused(_)) => true,
                _ => false,
            };
            if !is_same && !is_on_purpose(&ours, &theirs) {
                tally.differences.push(explain(case, &ours, &theirs));
            }
        }
        tally
    }

    /// Ours and theirs, for whoever wants to know more than whether they agree.
    pub fn verdicts(&self, case: &Case) -> (Verdict, Verdict) {
        (self.ours(case), self.runtime.block_on(self.theirs(case)))
    }

    fn ours(&self, case: &Case) -> Verdict {
        let admit = |value: &Value, old: Option<&Object>| -> Result<Object, String> {
            let mut object = Object::from_value(value.clone()).ok_or("not an object")?;
            let found = self.kinds.by_gvk(object.api_version(), object.kind());
            let (kind, version) = found.ok_or("no such kind")?;
            let errors = kind.admit(version, &mut object, old);
            if errors.is_empty() { Ok(object) } else { Err(format!("{errors:?}")) }
        };
        let old = case.old.as_ref().map(|old| admit(old, None).unwrap_or_else(|why| panic!("{why}: {old}")));
        match admit(&case.new, old.as_ref()) {
            Ok(object) => Verdict::Admitted(essence(object.into_value())),
            Err(why) => Verdict::Refused(why),
        }
    }

    async fn theirs(&self, case: &Case) -> Verdict {
        let Some(old) = &case.old else {
            let path = format!("{}?dryRun=All", self.path_of(&case.new).await);
            return judge(self.send(Method::POST, &path, &case.new).await, &case.new);
        };
        // Stored under a name of its own: cases run at the same time.
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = json!(format!("old-{}", COUNT.fetch_add(1, Ordering::Relaxed)));
        let (mut old, mut new) = (old.clone(), case.new.clone());
        old["metadata"]["name"] = name.clone();
        let path = self.path_of(&old).await;
        let (status, stored) = self.send(Method::POST, &path, &old).await;
        assert_eq!(status, StatusCode::CREATED, "{stored}: {old}");
        new["metadata"]["name"] = name.clone();
        new["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"].clone();
        let path = format!("{path}/{}", name.as_str().unwrap());
        let answer = self.send(Method::PUT, &format!("{path}?dryRun=All"), &new).await;
        self.send(Method::DELETE, &path, &json!({})).await;
        judge(answer, &new)
    }

    /// Where objects of this kind are created; makes the namespace if need be.
    async fn path_of(&self, object: &Value) -> String {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
        let (kind, _) = self
            .kinds
            .by_gvk(&api_version, &kind)
            .unwrap_or_else(|| panic!("no kind for {object}: is TIDEGATE_CRD_CORPUS the right folder?"));
        let resource = &kind.resource.plural;
        if kind.scope == Scope::Cluster {
            return format!("/apis/{api_version}/{resource}");
        }
        let namespace = text(&object["metadata"]["namespace"]);
        let is_new = self.namespaces.lock().unwrap().insert(namespace.clone());
        if is_new && namespace != "default" {
            let body = json!({"metadata": {"name": namespace}});
            self.send(Method::POST, "/api/v1/namespaces", &body).await;
        }
        format!("/apis/{api_version}/namespaces/{namespace}/{resource}")
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> (StatusCode, Value) {
        let mut request = self.http.request(method, format!("{}{path}", self.url)).bearer_auth(&self.token);
        if !body.is_null() {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let response = request.send().await.unwrap_or_else(|error| panic!("{path}: {error:?}"));
        let status = response.status();
        let text = response.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }
}

/// A definition is served a moment after it is established; a missing path is
/// our mistake, not a verdict.
fn judge((status, answer): (StatusCode, Value), object: &Value) -> Verdict {
    match status {
        StatusCode::CREATED | StatusCode::OK => Verdict::Admitted(essence(answer)),
        StatusCode::UNPROCESSABLE_ENTITY | StatusCode::BAD_REQUEST => {
            Verdict::Refused(answer["message"].as_str().unwrap_or_default().to_owned())
        }
        other => panic!("{other}: {answer}: {object}"),
    }
}

/// What an author can see: without what a server fills in.
fn essence(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|name, _| ["labels", "annotations", "finalizers"].contains(&name.as_str()));
    }
    whole_numbers(&mut object);
    object
}

/// `1.0` is `1`: Go writes it so. Beyond 64 bits a number is a float to it.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) if number.as_i64().is_none() => {
            let float = number.as_f64().unwrap_or(f64::NAN);
            *value = if float.fract() == 0.0 && float.abs() < 9.2e18 { json!(float as i64) } else { json!(float) };
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(fields) => fields.values_mut().for_each(whole_numbers),
        _ => {}
    }
}

/// What is said where chance meets a difference that is on purpose; each is in
/// the tables of `on_purpose`.
const WE_ADMIT: [&str; 2] = ["invalid data, expected int, got float64", "factor MultipleOf declared"];
const WE_REFUSE: [&str; 2] = [
    r#"must be of type string: \"array\""#,
    // `format: cel-expression` is ours; to them it is a remark.
    r#"expression", reason: Invalid"#,
];

fn is_on_purpose(ours: &Verdict, theirs: &Verdict) -> bool {
    let says = |why: &str, table: &[&str]| table.iter().any(|words| why.contains(words));
    match (ours, theirs) {
        (Verdict::Admitted(_), Verdict::Refused(why)) => says(why, &WE_ADMIT),
        (Verdict::Refused(why), Verdict::Admitted(_)) => says(why, &WE_REFUSE),
        _ => false,
    }
}

fn explain(case: &Case, ours: &Verdict, theirs: &Verdict) -> String {
    let shown = |verdict: &Verdict| match verdict {
        Verdict::Admitted(object) => format!("admitted as {object}"),
        Verdict::Refused(why) => format!("refused: {why}"),
    };
    let old = case.old.as_ref().map(|old| format!("\n  over {old}")).unwrap_or_default();
    format!("{}\n  {}{old}\n  ours: {}\n  theirs: {}", case.about, case.new, shown(ours), shown(theirs))
}

impl Tally {
    pub fn check(&self) {
        let shown: Vec<&str> = self.differences.iter().take(DIFFERENCES_SHOWN_MAX).map(String::as_str).collect();
        let count = self.differences.len();
        assert!(shown.is_empty(), "{count} of {} differ:\n{}", self.admitted + self.refused, shown.join("\n"));
    }
}
