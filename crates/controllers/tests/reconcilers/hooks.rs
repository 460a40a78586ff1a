//! Hooks with a real HTTP endpoint: fine, slow, failing, answering nonsense,
//! trying to write spec.

use std::fs;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::serve::Listener;
use serde_json::{Value, json};
use tidegate_controllers::hooks::{HookOptions, SIGNATURE_HEADER, TIMESTAMP_HEADER, sign};

use crate::plane::moment;
use crate::world::{World, condition};

pub const WIDGETS: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer}
              ownerRef: {type: object, properties: {name: {type: string}}}
          status:
            type: object
            properties:
              size: {type: integer}
              owner: {type: string}
              conditions:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [type]
                items:
                  type: object
                  required: [type, status]
                  properties:
                    type: {type: string}
                    status: {type: string}
                    reason: {type: string}
                    message: {type: string}
                    lastTransitionTime: {type: string}
                    observedGeneration: {type: integer}
";

/// For an endpoint that answers: calls are counted, and one that a busy machine
/// made too late would be made again.
pub const TIMEOUT: &str = "30s";
/// For one that does not.
const TIMEOUT_SHORT: &str = "200ms";

/// An endpoint whose behaviour a test sets.
#[derive(Clone)]
pub struct Server {
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    behaviour: Mutex<Behaviour>,
    calls: Mutex<Vec<(HeaderMap, Bytes)>>,
}

#[derive(Clone)]
pub enum Behaviour {
    /// Reports the object's size, and the owner's title.
    Fine,
    Answer(StatusCode, String),
    /// Gives up on an object without an owner.
    OwnerOrNever,
    Slow,
    Endless,
}

impl Server {
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        Self::serve(listener, address)
    }

    pub fn serve(listener: impl Listener<Addr = SocketAddr>, address: SocketAddr) -> Self {
        let shared = Arc::new(Shared { behaviour: Mutex::new(Behaviour::Fine), calls: Mutex::default() });
        let router = Router::new().fallback(answer).with_state(shared.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, shared }
    }

    pub fn behave(&self, behaviour: Behaviour) {
        *self.shared.behaviour.lock().unwrap() = behaviour;
    }

    pub fn calls(&self) -> usize {
        self.shared.calls.lock().unwrap().len()
    }

    /// The bodies of the calls for one object.
    pub fn calls_for(&self, name: &str) -> Vec<Value> {
        let calls = self.shared.calls.lock().unwrap();
        let bodies = calls.iter().map(|(_, body)| serde_json::from_slice::<Value>(body).unwrap());
        bodies.filter(|call| call["object"]["metadata"]["name"] == name).collect()
    }

    pub fn last_call(&self) -> (HeaderMap, Bytes) {
        self.shared.calls.lock().unwrap().last().cloned().unwrap()
    }

    pub fn hook(&self, more: &str) -> String {
        format!(
            "apiVersion: tidegate.dev/v1\nkind: ReconcileHook\nmetadata: {{name: sizes}}\nspec:\n  target: {{apiVersion: example.com/v1, kind: Widget}}\n  endpoint: {{url: 'http://{}/', timeout: {TIMEOUT}}}\n{more}",
            self.address
        )
    }
}

async fn answer(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    shared.calls.lock().unwrap().push((headers, body.clone()));
    let behaviour = shared.behaviour.lock().unwrap().clone();
    match behaviour {
        Behaviour::OwnerOrNever if !has_owner(&body) => {
            json!({"error": {"message": "nobody owns it", "retryable": false}}).to_string().into_response()
        }
        Behaviour::Fine | Behaviour::OwnerOrNever => {
            let call: Value = serde_json::from_slice(&body).unwrap();
            let owner = &call["related"]["owner"]["spec"]["title"];
            json!({"status": {"size": call["object"]["spec"]["size"], "owner": owner}}).to_string().into_response()
        }
        Behaviour::Answer(code, body) => (code, body).into_response(),
        Behaviour::Slow => {
            tokio::time::sleep(Duration::from_secs(3600)).await;
            StatusCode::OK.into_response()
        }
        Behaviour::Endless => " ".repeat(tidegate_controllers::hooks::ANSWER_BYTES_MAX + 1).into_response(),
    }
}

fn has_owner(body: &[u8]) -> bool {
    serde_json::from_slice::<Value>(body).unwrap()["related"]["owner"].is_object()
}

pub fn widget(name: &str, size: i64) -> String {
    format!(
        "apiVersion: example.com/v1\nkind: Widget\nmetadata: {{name: {name}, namespace: shop}}\nspec: {{size: {size}, ownerRef: {{name: lamp}}}}\n"
    )
}

/// With a widget `w` of size 1 and the hook.
pub fn world(server: &Server, more: &str) -> World {
    let world = World::new();
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n";
    let product = "apiVersion: catalog.gitstore.dev/v1beta1\nkind: Product\nmetadata: {name: lamp, namespace: shop}\nspec: {title: Lamp}\n";
    let files = [
        ("ns.yaml", namespace),
        ("p.yaml", product),
        ("crd.yaml", WIDGETS),
        ("w.yaml", &widget("w", 1)),
        ("hook.yaml", &server.hook(more)),
    ];
    world.push(&files, &[]).unwrap();
    world
}

pub fn answered(world: &World) -> (Value, Value, String) {
    let widget = world.get("Widget", "w").unwrap();
    let condition = condition(&widget, "hook.tidegate.dev/sizes");
    (condition["status"].clone(), condition["reason"].clone(), condition["message"].as_str().unwrap_or_default().into())
}

pub async fn until_failed(world: &World, reason: &str, message: &str) {
    world
        .until(&format!("the widget says {reason}: {message}"), |world| {
            let (status, found, text) = answered(world);
            status == "False" && found == reason && text.contains(message)
        })
        .await;
    world
        .until("the hook says so, too", |world| {
            let hook = world.get("ReconcileHook", "sizes").unwrap();
            condition(&hook, "Responding")["status"] == "False"
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_reconciles_a_kind() {
    let server = Server::start().await;
    let secrets = tempfile::tempdir().unwrap();
    fs::create_dir_all(secrets.path().join("shop/signing")).unwrap();
    fs::write(secrets.path().join("shop/signing/token"), "key\n").unwrap();
    let more = "  secretRef: {namespace: shop, name: signing}\n  related:\n  - {name: owner, apiVersion: catalog.gitstore.dev/v1beta1, kind: Product, field: spec.ownerRef.name}\n";
    let world = world(&server, more);
    let running = world.manage(HookOptions { secrets_dir: Some(secrets.path().into()) });
    world.until("the widget has a status", |world| world.get("Widget", "w").unwrap()["status"]["size"] == 1).await;
    assert_eq!(world.get("Widget", "w").unwrap()["status"]["owner"], "Lamp");
    assert_eq!(answered(&world), (json!("True"), json!("Answered"), String::new()));
    world.until_ready("ReconcileHook", "sizes", "Ready").await;

    let (headers, body) = server.last_call();
    let timestamp = headers[TIMESTAMP_HEADER].to_str().unwrap();
    assert_eq!(headers[SIGNATURE_HEADER], sign(b"key", timestamp, &body).as_str());
    let call: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((&call["hook"], &call["attempt"]), (&json!("sizes"), &json!(1)));

    // Our own write is no reason to call again; a change is, also of its owner's status.
    running.idle(&world).await;
    let calls = server.calls();
    world.apply("w.yaml", &widget("w", 2));
    world.until("the change is answered", |world| world.get("Widget", "w").unwrap()["status"]["size"] == 2).await;
    running.idle(&world).await;
    assert_eq!(server.calls(), calls + 1);

    // A rotated secret signs the next call.
    fs::write(secrets.path().join("shop/signing/token"), "another key\n").unwrap();
    world.apply("w.yaml", &widget("w", 3));
    world.until("the change is answered", |world| world.get("Widget", "w").unwrap()["status"]["size"] == 3).await;
    let (headers, body) = server.last_call();
    let timestamp = headers[TIMESTAMP_HEADER].to_str().unwrap();
    assert_eq!(headers[SIGNATURE_HEADER], sign(b"another key", timestamp, &body).as_str());
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_endpoint_is_asked_again() {
    let server = Server::start().await;
    server.behave(Behaviour::Answer(StatusCode::INTERNAL_SERVER_ERROR, "out of ink".into()));
    let world = world(&server, "");
    let running = world.manage(HookOptions::default());
    until_failed(&world, "Retrying", "the endpoint answered 500: out of ink").await;
    server.behave(Behaviour::Fine);
    world.until("it is answered in the end", |world| world.get("Widget", "w").unwrap()["status"]["size"] == 1).await;
    world
        .until("the hook says so", |world| {
            condition(&world.get("ReconcileHook", "sizes").unwrap(), "Responding")["status"] == "True"
        })
        .await;
    let call: Value = serde_json::from_slice(&server.last_call().1).unwrap();
    assert!(call["attempt"].as_i64() >= Some(2), "{}", call["attempt"]);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_misbehaviour_has_its_words() {
    let ok = StatusCode::OK;
    let table = [
        (Behaviour::Slow, "Retrying", "did not answer within 200ms"),
        (Behaviour::Endless, "Retrying", "has more than 1048576 bytes"),
        (Behaviour::Answer(ok, "<html>".into()), "Retrying", "makes no sense: it is not JSON"),
        (Behaviour::Answer(ok, json!({"spec": {"size": 9}}).to_string()), "Refused", "tried to write `spec`"),
        (
            Behaviour::Answer(ok, json!({"status": {"size": "big"}}).to_string()),
            "Refused",
            "the endpoint's status is refused",
        ),
        (
            Behaviour::Answer(ok, json!({"error": {"message": "never", "retryable": false}}).to_string()),
            "Refused",
            "the endpoint reports: never",
        ),
        (
            Behaviour::Answer(
                ok,
                json!({"status": {"conditions": [{"type": "hook.tidegate.dev/sizes", "status": "True"}]}}).to_string(),
            ),
            "Refused",
            "tried to write the condition `hook.tidegate.dev/sizes`",
        ),
        (Behaviour::Answer(StatusCode::FOUND, String::new()), "Refused", "redirects are not followed"),
    ];
    for (behaviour, reason, message) in table {
        let server = Server::start().await;
        let is_slow = matches!(behaviour, Behaviour::Slow);
        server.behave(behaviour);
        let world = world(&server, "");
        if is_slow {
            world.apply("hook.yaml", &server.hook("").replace(TIMEOUT, TIMEOUT_SHORT));
        }
        let running = world.manage(HookOptions::default());
        until_failed(&world, reason, message).await;
        assert_eq!(world.get("Widget", "w").unwrap()["spec"]["size"], 1, "the spec is Git's");
        running.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_is_not_there() {
    let server = Server::start().await;
    let world = world(&server, "");
    // Somebody's port, where nobody listens.
    let gone = tokio::net::TcpSocket::new_v4().unwrap();
    gone.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = gone.local_addr().unwrap();
    world.apply("hook.yaml", &server.hook("").replace(&server.address.to_string(), &address.to_string()));
    let running = world.manage(HookOptions::default());
    until_failed(&world, "EndpointUnreachable", "cannot be reached").await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_starts_with_its_kind_and_stops_with_it() {
    let server = Server::start().await;
    let world = World::new();
    world.apply("hook.yaml", &server.hook(""));
    let running = world.manage(HookOptions::default());
    world.until_ready("ReconcileHook", "sizes", "KindNotFound").await;
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n";
    world.push(&[("ns.yaml", namespace), ("crd.yaml", WIDGETS), ("w.yaml", &widget("w", 1))], &[]).unwrap();
    world.until("the widget has a status", |world| world.get("Widget", "w").unwrap()["status"]["size"] == 1).await;
    world.until_ready("ReconcileHook", "sizes", "Ready").await;

    // Another generation is another controller, which asks for everything.
    let calls = server.calls();
    world.apply("hook.yaml", &server.hook("  concurrency: 2\n"));
    while server.calls() == calls {
        moment().await;
    }
    world.push(&[], &["w.yaml", "crd.yaml"]).unwrap();
    world.until_ready("ReconcileHook", "sizes", "KindNotFound").await;
    while running.controllers().iter().any(|name| name.starts_with("hook.")) {
        moment().await;
    }
    until_stopped(&world, &json!("KindNotFound")).await;
    world.push(&[("crd.yaml", WIDGETS), ("w.yaml", &widget("w", 3))], &[]).unwrap();
    world.until("the widget is back", |world| world.get("Widget", "w").unwrap()["status"]["size"] == 3).await;
    until_stopped(&world, &Value::Null).await;
    world.push(&[], &["hook.yaml"]).unwrap();
    while running.controllers().iter().any(|name| name.starts_with("hook.")) {
        moment().await;
    }
    // What its controllers kept, of all generations, goes with it.
    let is_kept = || world.state().rows.keys().any(|(controller, _)| controller.starts_with("hook."));
    while is_kept() {
        moment().await;
    }
    running.stop().await;
}

/// What the reports of the hook's controllers say of why they do not run.
async fn until_stopped(world: &World, why: &Value) {
    let is_report = |(controller, name): &(String, String)| controller.starts_with("hook.") && name == "report";
    let says = |row: &Bytes| serde_json::from_slice::<Value>(row).unwrap()["stopped"] == *why;
    let said = async {
        while !world.state().rows.iter().any(|(name, row)| is_report(name) && says(row)) {
            moment().await;
        }
    };
    tokio::time::timeout(crate::world::PATIENCE, said).await.unwrap_or_else(|_| panic!("no report says {why}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_that_is_misspelt_is_found() {
    let server = Server::start().await;
    for (target, expected) in [
        ("example.com/v1, kind: Wiget", "did you mean Widget of example.com/v1?"),
        ("example.com/v1, kind: Robot", "push its CustomResourceDefinition, or correct the hook"),
        ("v1, kind: ConfigMap", "the core group has Namespace, ServiceAccount and takes no others"),
    ] {
        let world = world(&server, "");
        world.apply("hook.yaml", &server.hook("").replace("example.com/v1, kind: Widget", target));
        let running = world.manage(HookOptions::default());
        world.until_ready("ReconcileHook", "sizes", "KindNotFound").await;
        let hook = world.get("ReconcileHook", "sizes").unwrap();
        let message = condition(&hook, "Ready")["message"].as_str().unwrap();
        assert!(message.contains(expected), "{message}");
        running.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_is_missing_is_named() {
    let server = Server::start().await;
    let world = world(&server, "  secretRef: {namespace: shop, name: signing}\n");
    let running = world.manage(HookOptions::default());
    world.until_ready("ReconcileHook", "sizes", "EndpointNotUsable").await;
    let hook = world.get("ReconcileHook", "sizes").unwrap();
    assert!(condition(&hook, "Ready")["message"].as_str().unwrap().contains("--secrets-dir DIR"));
    assert_eq!(server.calls(), 0);
    running.stop().await;
}
