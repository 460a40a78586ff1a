//! A server of one's own, on a free port, with objects from YAML text.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_admission::{Change, File, Rules};
use tidegate_model::{EncodedObject, GroupResource, Object, ObjectKey};
use tidegate_server::api::{NO_MARKS, Projected, Projection};
use tidegate_server::http::{Outcome, Shutdown};
use tidegate_server::server::{self, Options, Server, StartError};
use tidegate_store::{Expect, Op, OpenError, Store, Transaction, Write};
use tidegate_testkit::client::Client;
pub use tidegate_testkit::plane_contract::WIDGETS;
use tokio::task::JoinHandle;

pub struct TestServer {
    pub client: Client,
    pub api: tidegate_server::api::Api,
    pub store: Store,
    pub dir: TempDir,
    shutdown: Shutdown,
    task: JoinHandle<Outcome>,
}

pub fn options(dir: &Path) -> Options {
    let path = std::env::var_os("PATH").unwrap();
    Options::on_loopback(dir.to_owned(), tidegate_server::repos::Options::new(path))
}

impl TestServer {
    pub async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    pub async fn start_with(change: impl FnOnce(&mut Options)) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), change).await
    }

    pub async fn start_in(dir: TempDir, change: impl FnOnce(&mut Options)) -> Self {
        let mut options = options(dir.path());
        change(&mut options);
        let server = start_when_free(options).await.unwrap();
        let token = std::fs::read_to_string(server.admin_token_path()).unwrap();
        let client = Client::new(&server.url(), token.trim());
        let (api, shutdown) = (server.api().clone(), server.shutdown());
        Self { client, store: api.store().clone(), api, dir, shutdown, task: tokio::spawn(server.run()) }
    }

    /// With the kind Widget, from `crd.yaml`.
    pub async fn with_widgets() -> Self {
        let server = Self::start().await;
        server.apply("crd.yaml", WIDGETS).await;
        server
    }

    pub async fn stop(self) -> TempDir {
        self.shutdown.drain();
        assert_eq!(self.task.await.unwrap(), Outcome::Drained);
        self.dir
    }

    pub fn drain(&self) {
        self.shutdown.drain();
    }

    /// Admits one file.
    pub async fn apply(&self, path: &str, yaml: &str) {
        self.project(&[(path, yaml)], &[]).await.unwrap_or_else(|refused| panic!("{refused}"));
    }

    /// Files that come and go, as a repository that may define everything.
    pub async fn project(&self, files: &[(&str, &str)], removed: &[(&str, ObjectKey)]) -> Result<(), String> {
        let rules = Rules { default_namespace: "default".into(), ..Rules::unrestricted("system", "control") };
        let change = Change {
            files: files.iter().map(|(path, text)| File { path, bytes: text.as_bytes() }).collect(),
            removed: removed.iter().map(|(path, _)| *path).collect(),
            ..Change::default()
        };
        let defined_at =
            |path: &str| removed.iter().filter(|(of, _)| *of == path).map(|(_, key)| key.clone()).collect();
        let projection = Projection {
            rules: &rules,
            change,
            defined_at: &defined_at,
            commit: Some("0123abcd"),
            author_of: &|_: &str| Some("Ada <ada@example.com>".into()),
            marks: NO_MARKS,
        };
        match self.api.project(projection).await.unwrap() {
            Projected::Applied(..) => Ok(()),
            Projected::Rejected(problems) => {
                Err(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
            }
        }
    }

    pub async fn widget(&self, name: &str, labels: &str) {
        self.apply(&format!("{name}.yaml"), &widget_yaml(name, labels, 1)).await;
    }

    /// A token for a ServiceAccount in `default` that may do what `rules` say.
    pub async fn account(&self, name: &str, rules: &str) -> Client {
        let text = format!(
            "apiVersion: v1
kind: ServiceAccount
metadata: {{name: {name}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: {name}}}
rules: {rules}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: {name}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {name}}}
subjects: [{{kind: ServiceAccount, name: {name}, namespace: default}}]
"
        );
        self.apply(&format!("account-{name}.yaml"), &text).await;
        self.client.with_token(&self.token(name).await.0)
    }

    /// The token and its id.
    pub async fn token(&self, account: &str) -> (String, String) {
        let query = "mutation($account: String!) { createToken(input: {namespace: \"default\", serviceAccount: $account, expiresInSeconds: 3600}) { token id } }";
        let data = self.client.data(query, json!({"account": account})).await;
        let text = |field: &str| data["createToken"][field].as_str().unwrap().to_owned();
        (text("token"), text("id"))
    }

    pub async fn get(&self, name: &str) -> Value {
        let query = "query($name: String!) { resource(apiVersion: \"example.com/v1\", kind: \"Widget\", namespace: \"default\", name: $name) { resourceVersion generation uid object } }";
        self.client.data(query, json!({"name": name})).await["resource"].take()
    }

    /// Writes widgets past admission, many in a commit: for load.
    pub async fn bulk(&self, names: impl Iterator<Item = usize>, size: i64) {
        let writes = names.map(|at| {
            let name = format!("w{at:06}");
            let object = json!({
                "apiVersion": "example.com/v1", "kind": "Widget",
                "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{at}"), "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"},
                "spec": {"size": size},
            });
            let op = Op::Put(EncodedObject::new(&Object::from_value(object).unwrap()));
            Write { key: widget_key(&name), expect: Expect::Any, op, rebase: None }
        });
        self.store.commit(Transaction { writes: writes.collect(), marks: Vec::new() }).await.unwrap();
    }
}

/// A store that was closed in this process is free when its last reader has
/// let go of it.
pub async fn start_when_free(options: Options) -> Result<Server, StartError> {
    loop {
        match server::start(options.clone()).await {
            Err(StartError::Store(OpenError::Locked { .. })) => tokio::task::yield_now().await,
            started => return started,
        }
    }
}

pub fn widget_yaml(name: &str, labels: &str, size: i64) -> String {
    format!(
        "apiVersion: example.com/v1\nkind: Widget\nmetadata: {{name: {name}, labels: {labels}}}\nspec: {{size: {size}}}\n"
    )
}

pub fn widget_key(name: &str) -> ObjectKey {
    ObjectKey::new(GroupResource::new("example.com", "widgets"), Some("default"), name)
}
