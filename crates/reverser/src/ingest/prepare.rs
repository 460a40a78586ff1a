//! One live object, read once for everything that is needed of it.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use tidegate_model::mirror::{self, ResourceKey};
use tidegate_model::{Object, yaml};

use crate::attribution::content_hash;
use crate::change::Version;
use crate::claims::TypeId;

#[derive(Clone, PartialEq, Debug)]
pub struct Prepared {
    pub key: ResourceKey,
    pub version: Version,
    /// What goes into Git; `None` for what is being deleted or left out.
    pub content: Option<Clean>,
    pub replicas: Option<i64>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Clean {
    pub yaml: Bytes,
    pub hash: u64,
}

/// `None` for what is no object.
pub fn prepare(of: &TypeId, object: Value) -> Option<Prepared> {
    let object = Object::from_value(object)?;
    let metadata = object.metadata();
    let text = |field: &str| metadata.get(field).and_then(Value::as_str).unwrap_or_default();
    let key = ResourceKey::new(&of.group, &of.version, &of.resource, object.namespace(), object.name());
    let version = Version {
        uid: text("uid").into(),
        resource_version: text("resourceVersion").into(),
        field_manager: field_manager(metadata.get("managedFields")),
    };
    let replicas = object.spec().and_then(|spec| spec.get("replicas")?.as_i64());
    let is_ours = object.deletion_timestamp().is_none() && mirror::left_out(&object).is_none();
    let content = is_ours.then(|| clean(object));
    Some(Prepared { key, version, content, replicas })
}

fn clean(object: Object) -> Clean {
    let object = mirror::sanitize(object);
    let hash = content_hash(&object);
    // Of its own length: a text that grew has room for as much again.
    Clean { yaml: yaml::emit(&object.into_value()).into_boxed_str().into_boxed_bytes().into(), hash }
}

/// Whoever wrote last, of those who did not write the status.
fn field_manager(fields: Option<&Value>) -> Option<Arc<str>> {
    let entries = fields?.as_array()?.iter().filter(|entry| entry.get("subresource").is_none_or(|s| s == "scale"));
    let last = entries.max_by(|a, b| a["time"].as_str().cmp(&b["time"].as_str()))?;
    last["manager"].as_str().map(Into::into)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_manager_is_who_wrote_the_spec() {
        let entry = |manager: &str, time: &str| json!({"manager": manager, "time": time});
        let mut status = entry("kubelet", "2026-01-09T00:00:00Z");
        status["subresource"] = "status".into();
        let fields = json!([entry("kubectl", "2026-01-02T00:00:00Z"), entry("helm", "2026-01-01T00:00:00Z"), status]);
        assert_eq!(field_manager(Some(&fields)).as_deref(), Some("kubectl"));
        assert_eq!(field_manager(None), None);
    }

    #[test]
    fn what_is_being_deleted_has_no_content() {
        let of = TypeId::new("", "v1", "configmaps");
        let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n"}});
        assert!(prepare(&of, object.clone()).unwrap().content.is_some());
        object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        assert!(prepare(&of, object).unwrap().content.is_none());
    }
}
