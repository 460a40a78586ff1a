//! What a new store holds before anybody has written to it.

use chrono::Utc;
use serde_json::{Value, json};
use tidegate_model::{EncodedObject, GroupResource, Object, ObjectKey};
use tidegate_store::{CommitError, Expect, Op, Rebased, Transaction, Write};
use uuid::Uuid;

use super::Api;

/// `system` is the server's own; `default` is for whoever names none.
pub const NAMESPACES: [&str; 2] = ["system", "default"];

impl Api {
    /// Does nothing where they are there already.
    pub async fn bootstrap(&self) -> Result<(), CommitError> {
        let mut writes: Vec<Write> = NAMESPACES.iter().map(|name| create_namespace(name)).collect();
        writes.push(create_control());
        self.0.store.commit(Transaction { writes, marks: Vec::new() }).await?;
        Ok(())
    }
}

fn create_namespace(name: &str) -> Write {
    let object = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": metadata(name),
        "status": {"phase": "Active"},
    });
    create(ObjectKey::new(GroupResource::new("", "namespaces"), None, name), object)
}

/// The repository by which everything else comes, its own object included.
fn create_control() -> Write {
    let (namespace, name) = ("system", "control");
    let mut metadata = metadata(name);
    metadata["namespace"] = namespace.into();
    let object = json!({
        "apiVersion": "tidegate.dev/v1",
        "kind": "Repository",
        "metadata": metadata,
        "spec": {"branch": "main", "namespaces": ["*"], "allowClusterScoped": true, "allowForce": false},
    });
    create(ObjectKey::new(GroupResource::new("tidegate.dev", "repositories"), Some(namespace), name), object)
}

fn metadata(name: &str) -> Value {
    let now = Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
    json!({"name": name, "uid": Uuid::new_v4().to_string(), "creationTimestamp": now, "generation": 1})
}

fn create(key: ObjectKey, object: Value) -> Write {
    let object = Object::from_value(object).expect("it has an object's shape");
    Write {
        key,
        expect: Expect::Absent,
        op: Op::Put(EncodedObject::new(&object)),
        rebase: Some(std::sync::Arc::new(|_| Rebased::Skip)),
    }
}
