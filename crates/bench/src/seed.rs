//! Objects of 1.7 KiB, written into a stopped store.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tidegate_model::{EncodedObject, GroupResource, Object, ObjectKey, ResourceVersion};
use tidegate_store::{Expect, Op, OpenError, Options, Store, Transaction, Write};

pub const NAMESPACE: &str = "default";
const BATCH: usize = 2_000;
const CLOSE_TIME_MAX: Duration = Duration::from_secs(60);
const CLOSE_POLL: Duration = Duration::from_millis(50);

pub fn name(at: usize) -> String {
    format!("gadget-{at:07}")
}

/// An ordinary CRD with a free-form spec and a status.
fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.bench.example", "uid": "crd", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {
            "group": "bench.example", "scope": "Namespaced",
            "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {
                        "payload": {"type": "string"},
                        "items": {"type": "array", "items": {"type": "object", "properties": {"key": {"type": "string"}, "value": {"type": "integer"}}}},
                    }},
                    "status": {"type": "object", "properties": {"count": {"type": "integer"}, "phase": {"type": "string"}}},
                }}},
            }],
        },
    })
}

/// The same as a file.
pub fn definition_text() -> String {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "gadgets.bench.example"}, "spec": definition()["spec"]}).to_string()
}

fn gadget(at: usize, generation: i64) -> Value {
    let items: Vec<Value> = (0..20).map(|n| json!({"key": format!("item-{n}"), "value": at + n})).collect();
    json!({
        "apiVersion": "bench.example/v1", "kind": "Gadget",
        "metadata": {
            "name": name(at), "namespace": NAMESPACE, "uid": format!("00000000-0000-4000-8000-{at:012}"), "generation": generation,
            "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"shard": (at % 100).to_string()},
        },
        "spec": {"payload": "x".repeat(700), "items": items},
        "status": {"count": 0, "phase": "Ready"},
    })
}

/// Puts the object, whatever is there.
pub fn write(plural: &str, group: &str, namespace: Option<&str>, object: Value) -> Write {
    let object = Object::from_value(object).expect("an object");
    let key = ObjectKey::new(GroupResource::new(group, plural), namespace, object.name());
    Write { key, expect: Expect::Any, op: Op::Put(EncodedObject::new(&object)), rebase: None }
}

pub async fn objects(data_dir: &Path, count: usize) -> anyhow::Result<()> {
    let crd = write("customresourcedefinitions", "apiextensions.k8s.io", None, definition());
    let gadgets = (0..count).map(|at| write("gadgets", "bench.example", Some(NAMESPACE), gadget(at, 1)));
    commit(data_dir, std::iter::once(crd).chain(gadgets)).await
}

/// A new generation of some of them.
pub async fn change_objects(data_dir: &Path, numbers: impl Iterator<Item = usize>) -> anyhow::Result<()> {
    commit(data_dir, numbers.map(|at| write("gadgets", "bench.example", Some(NAMESPACE), gadget(at, 2)))).await
}

/// Waits until a server of this process that was stopped has let go of it.
pub async fn open(data_dir: &Path) -> anyhow::Result<Store> {
    std::fs::create_dir_all(data_dir)?;
    let until = Instant::now() + CLOSE_TIME_MAX;
    loop {
        match Store::open(&data_dir.join("store"), Options::default()) {
            Err(OpenError::Locked { .. }) if Instant::now() < until => tokio::time::sleep(CLOSE_POLL).await,
            opened => return Ok(opened?),
        }
    }
}

/// Into the store of a server that does not run.
pub async fn commit(data_dir: &Path, writes: impl Iterator<Item = Write>) -> anyhow::Result<()> {
    let store = open(data_dir).await?;
    let mut writes = writes.peekable();
    while writes.peek().is_some() {
        let batch = writes.by_ref().take(BATCH).collect();
        store.commit(Transaction { writes: batch, marks: Vec::new() }).await?;
    }
    store.close().await;
    Ok(())
}

/// So many events of small objects; the version before the first of them.
pub async fn events(data_dir: &Path, count: usize) -> anyhow::Result<ResourceVersion> {
    let store = open(data_dir).await?;
    let crd = write("customresourcedefinitions", "apiextensions.k8s.io", None, definition());
    let before = store.commit(Transaction { writes: vec![crd], marks: Vec::new() }).await?.version;
    for start in (0..count).step_by(BATCH) {
        let put = |at: usize| Write { expect: Expect::Any, ..small(at % BATCH, start) };
        let writes = (start..count.min(start + BATCH)).map(put).collect();
        store.commit(Transaction { writes, marks: Vec::new() }).await?;
    }
    store.close().await;
    Ok(before)
}

fn small(at: usize, count: usize) -> Write {
    let object = json!({
        "apiVersion": "bench.example/v1", "kind": "Gadget",
        "metadata": {"name": name(at), "namespace": NAMESPACE, "uid": format!("{at}"), "generation": 1},
        "status": {"count": count, "phase": "Ready"},
    });
    write("gadgets", "bench.example", Some(NAMESPACE), object)
}
