//! What a new store holds before anybody has written to it.

use chrono::Utc;
use serde_json::json;
use tidegate_model::{EncodedObject, GroupResource, Object, ObjectKey};
use tidegate_store::{CommitError, Expect, Op, Rebased, Transaction, Write};
use uuid::Uuid;

use super::Api;

/// `system` is the server's own; `default` is for whoever names none.
pub const NAMESPACES: [&str; 2] = ["system", "default"];

impl Api {
    /// Does nothing where they are there already.
    pub async fn bootstrap(&self) -> Result<(), CommitError> {
        let writes = NAMESPACES.iter().map(|name| create_namespace(name)).collect();
        self.0.store.commit(Transaction { writes, marks: Vec::new() }).await?;
        Ok(())
    }
}

fn create_namespace(name: &str) -> Write {
    let now = Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
    let object = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "uid": Uuid::new_v4().to_string(), "creationTimestamp": now, "generation": 1},
        "status": {"phase": "Active"},
    });
    let object = Object::from_value(object).expect("it has an object's shape");
    Write {
        key: ObjectKey::new(GroupResource::new("", "namespaces"), None, name),
        expect: Expect::Absent,
        op: Op::Put(EncodedObject::new(&object)),
        rebase: Some(std::sync::Arc::new(|_| Rebased::Skip)),
    }
}
