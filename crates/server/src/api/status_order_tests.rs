//! A status write between the commit of a definition and the moment at which
//! the definition takes effect: the gate holds it there.

use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};

use serde_json::json;
use tidegate_model::{GroupResource, ObjectKey};
use tidegate_store::Store;
use tidegate_testkit::MemoryEngine;

use super::{Api, KindsInForce, OnKinds, Options, StatusWrite};
use crate::identity::{Clock, Identities, Session, Tokens};
use crate::manifests;

const WIDGETS: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {kind: Widget, plural: widgets}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          status: {type: object, properties: {old: {type: string}}}
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: a}
";

/// What the follower of definitions does before they count: nothing, or say
/// that it is there and wait.
struct Gate {
    says: Mutex<Option<mpsc::Sender<mpsc::Sender<()>>>>,
}

impl Gate {
    fn pass(&self, _: &Arc<KindsInForce>) {
        let Some(says) = self.says.lock().unwrap().take() else { return };
        let (opens, opened) = mpsc::channel();
        says.send(opens).unwrap();
        // An error is an opener that is gone, which opens it, too.
        let _ = opened.recv();
    }

    /// Closes it for the next one; what is received opens it.
    fn close(&self) -> mpsc::Receiver<mpsc::Sender<()>> {
        let (says, said) = mpsc::channel();
        *self.says.lock().unwrap() = Some(says);
        said
    }
}

fn start(dir: &Path) -> (Api, Arc<Gate>) {
    let store = Store::with_engine(Arc::new(MemoryEngine::default()), tidegate_store::Options::default()).unwrap();
    let identities = Arc::new(Identities::new(Tokens::open(dir, Clock::system()).unwrap()));
    let gate = Arc::new(Gate { says: Mutex::default() });
    let on_kinds: OnKinds = Arc::new({
        let gate = gate.clone();
        move |kinds| gate.pass(kinds)
    });
    let options =
        Options { page_objects_max: 10, page_bytes_max: 1 << 20, lists_at_once_max: 1, watches_per_identity_max: 1 };
    (Api::start(store, identities, options, on_kinds).unwrap(), gate)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_field_of_a_definition_that_is_stored_and_not_yet_in_force() {
    let dir = tempfile::tempdir().unwrap();
    let manifests = dir.path().join("manifests");
    std::fs::create_dir(&manifests).unwrap();
    let define = |text: &str| std::fs::write(manifests.join("all.yaml"), text).unwrap();
    let (api, gate) = start(dir.path());
    define(WIDGETS);
    manifests::apply(&api, &manifests).await.unwrap();

    let closed = gate.close();
    define(&WIDGETS.replace("old:", "new: {type: string}, old:"));
    let pushing = tokio::task::spawn_blocking({
        let (api, runtime) = (api.clone(), tokio::runtime::Handle::current());
        move || runtime.block_on(manifests::apply(&api, &manifests)).map(drop)
    });
    // The definition is in the store, and nobody judges by it yet.
    let opens = tokio::task::spawn_blocking(move || closed.recv().unwrap()).await.unwrap();

    let key = ObjectKey::new(GroupResource::new("example.com", "widgets"), None, "a");
    let version = api.store().view().get(&key).unwrap().unwrap().version.to_string();
    let kind = api.kind("example.com/v1", "Widget").unwrap();
    let patch = json!({"new": "x", "old": "y"});
    let write =
        StatusWrite { namespace: None, name: "a".into(), resource_version: Some(version), patch: patch.clone() };
    let session = Session::admin();
    let mut writing = Box::pin(api.update_status(&session, &kind, write));
    tokio::select! {
        biased;
        written = &mut writing => panic!("judged by the old definition: {written:?}"),
        () = tokio::task::yield_now() => drop(opens),
    }
    let written: serde_json::Value = serde_json::from_slice(&writing.await.unwrap().json).unwrap();
    assert_eq!(written["status"], patch);
    pushing.await.unwrap().unwrap();
}
