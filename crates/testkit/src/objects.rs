//! Small objects and keys for tests.

use serde_json::{Value, json};
use tidegate_model::{EncodedObject, GroupResource, Labels, Object, ObjectKey};
use tidegate_store::{Expect, Op, Selection, Transaction, Write};

pub fn widgets() -> GroupResource {
    GroupResource::new("test.tidegate.dev", "widgets")
}

/// A widget's key, from `namespace/name`.
pub fn key(path: &str) -> ObjectKey {
    let (namespace, name) = path.split_once('/').expect("namespace/name");
    ObjectKey::new(widgets(), Some(namespace), name)
}

/// Labels from `a=1,b=2`.
pub fn labels(text: &str) -> Labels {
    text.split(',').filter_map(|pair| pair.split_once('=')).collect()
}

pub fn widget(path: &str, labels_text: &str, spec: Value) -> EncodedObject {
    let key = key(path);
    let labels: serde_json::Map<_, _> = labels(labels_text).iter().map(|(k, v)| (k.into(), v.into())).collect();
    let object = Object::from_value(json!({
        "apiVersion": "test.tidegate.dev/v1",
        "kind": "Widget",
        "metadata": {"name": &*key.name, "namespace": key.namespace.as_deref(), "labels": labels},
        "spec": spec,
    }));
    EncodedObject::new(&object.expect("a widget is an object"))
}

pub fn write(path: &str, expect: Expect, op: Op) -> Write {
    Write { key: key(path), expect, op, rebase: None }
}

pub fn put(path: &str, labels: &str, spec: Value) -> Transaction {
    Transaction::one(key(path), Expect::Any, Op::Put(widget(path, labels, spec)))
}

pub fn delete(path: &str) -> Transaction {
    Transaction::one(key(path), Expect::Any, Op::Delete)
}

/// Widgets that match `selector`, in all namespaces.
pub fn select(selector: &str) -> Selection {
    Selection { labels: selector.parse().expect("a selector"), ..Selection::all(widgets()) }
}
