//! What a file may say: the desired state, not what the system records.

use serde_json::Value;
use tidegate_model::{FieldError, FieldErrorReason, Object};

use crate::provenance::is_reserved;

/// Kubernetes' object metadata that the server or controllers write.
const SYSTEM_METADATA: [&str; 12] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
    "clusterName",
];

/// What in the object is not its author's to say. `null` says nothing, and
/// generators write it: it is dropped.
pub(crate) fn check(object: &mut Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    drop_null_system_fields(object);
    if object.status().is_some() {
        let message = "is written by controllers, never by a file: remove it";
        errors.push(FieldError::new("status", FieldErrorReason::Forbidden, message));
    }
    for field in SYSTEM_METADATA.iter().filter(|field| object.metadata().contains_key(**field)) {
        let message = "is set by the system, never by a file: remove it";
        errors.push(FieldError::new(format!("metadata.{field}"), FieldErrorReason::Forbidden, message));
    }
    let annotations = object.metadata().get("annotations").and_then(Value::as_object);
    for key in annotations.into_iter().flat_map(|annotations| annotations.keys()).filter(|key| is_reserved(key)) {
        let message = "says where the object comes from and is set by the system: remove it";
        errors.push(FieldError::new(format!("metadata.annotations[{key}]"), FieldErrorReason::Forbidden, message));
    }
    errors
}

fn drop_null_system_fields(object: &mut Object) {
    if object.status().is_some_and(Value::is_null) {
        object.root_mut().remove("status");
    }
    let is_noise = |field: &str, value: &Value| value.is_null() && SYSTEM_METADATA.contains(&field);
    object.metadata_mut().retain(|field, value| !is_noise(field, value));
}
