//! `metadata` is the same for every object, of a kind or embedded in one:
//! these are its fields, their types and their syntax.

use serde_json::{Map, Value};

use super::path::{Errors, Path};
use crate::FieldErrorReason;
use crate::syntax::{check_dns_label, check_label_key, check_label_value};

/// Kubernetes' limit: all keys and values of an object's annotations.
pub const ANNOTATIONS_BYTES_MAX: usize = 256 << 10;

#[derive(Clone, Copy, PartialEq)]
enum Type {
    Text,
    Number,
    Time,
    Texts,
    List,
    TextMap,
}

/// Kubernetes' ObjectMeta; any other field is dropped.
const FIELDS: [(&str, Type); 15] = [
    ("annotations", Type::TextMap),
    ("creationTimestamp", Type::Time),
    ("deletionGracePeriodSeconds", Type::Number),
    ("deletionTimestamp", Type::Time),
    ("finalizers", Type::Texts),
    ("generateName", Type::Text),
    ("generation", Type::Number),
    ("labels", Type::TextMap),
    ("managedFields", Type::List),
    ("name", Type::Text),
    ("namespace", Type::Text),
    ("ownerReferences", Type::List),
    ("resourceVersion", Type::Text),
    ("selfLink", Type::Text),
    ("uid", Type::Text),
];

/// Drops what is not specified, and what says nothing: a null, no labels.
pub(crate) fn prune(metadata: &mut Map<String, Value>) {
    metadata.retain(|name, value| match (type_of(name), value) {
        (None, _) | (_, Value::Null) => false,
        (Some(Type::Texts | Type::List), Value::Array(items)) => !items.is_empty(),
        (Some(Type::TextMap), Value::Object(pairs)) => !pairs.is_empty(),
        _ => true,
    });
}

fn type_of(name: &str) -> Option<Type> {
    FIELDS.iter().find(|(field, _)| *field == name).map(|(_, kind)| *kind)
}

/// Types, labels, annotations, finalizers and owners; a name and a namespace
/// are the kind's business.
pub(crate) fn check(metadata: &Map<String, Value>, path: &Path, errors: &mut Errors) {
    for (name, value) in metadata {
        check_type(name, value, path, errors);
    }
    check_labels(metadata, &path.field("labels"), errors);
    check_annotations(metadata, &path.field("annotations"), errors);
    check_finalizers(metadata, &path.field("finalizers"), errors);
    check_owners(metadata, &path.field("ownerReferences"), errors);
}

/// An embedded object may have no name; one that it has must fit into a path.
pub(super) fn check_embedded(metadata: &Map<String, Value>, path: &Path, errors: &mut Errors) {
    check(metadata, path, errors);
    let text = |name: &str| metadata.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    for name in ["name", "generateName"] {
        let is_whole = |text: &&str| name == "generateName" || !matches!(*text, "." | "..");
        if let Some(text) = text(name).filter(|text| !is_whole(text) || text.contains(['/', '%'])) {
            errors.invalid(
                path.field(name),
                format!("Invalid value: {text:?}: may not contain '/' or '%', or be '.' or '..'"),
            );
        }
    }
    if let Some(namespace) = text("namespace")
        && let Err(expected) = check_dns_label(namespace)
    {
        errors.invalid(path.field("namespace"), format!("Invalid value: {namespace:?}: must be {expected}"));
    }
}

/// Maps and lists are looked into by their own checks.
fn check_type(name: &str, value: &Value, path: &Path, errors: &mut Errors) {
    let (is_right, expected) = match type_of(name) {
        Some(Type::Text) => (value.is_string(), "string"),
        Some(Type::Number) => (value.is_i64(), "integer"),
        Some(Type::Time) => (value.as_str().is_some_and(is_time), "date-time"),
        Some(Type::Texts | Type::List) => (value.is_array(), "array"),
        Some(Type::TextMap) => (value.is_object(), "object"),
        None => return,
    };
    if !is_right && !value.is_null() {
        let message = format!("Invalid value: must be of type {expected}");
        errors.push(path.field(name), FieldErrorReason::TypeInvalid, message);
    }
}

fn is_time(text: &str) -> bool {
    chrono::DateTime::parse_from_rfc3339(text).is_ok()
}

fn check_labels(metadata: &Map<String, Value>, path: &Path, errors: &mut Errors) {
    for (key, value) in texts(metadata, "labels", path, errors) {
        check_key(key, path, errors);
        if let Err(expected) = check_label_value(value) {
            errors.invalid(path.key(key), format!("Invalid value: {value:?}: must be {expected}"));
        }
    }
}

fn check_annotations(metadata: &Map<String, Value>, path: &Path, errors: &mut Errors) {
    let mut bytes = 0;
    for (key, value) in texts(metadata, "annotations", path, errors) {
        // Annotation keys are case insensitive to Kubernetes' syntax check.
        check_key(&key.to_lowercase(), path, errors);
        bytes += key.len() + value.len();
    }
    if bytes > ANNOTATIONS_BYTES_MAX {
        let message = format!("Too long: may not be more than {ANNOTATIONS_BYTES_MAX} bytes in total");
        errors.push(path, FieldErrorReason::TooLong, message);
    }
}

fn check_key(key: &str, path: &Path, errors: &mut Errors) {
    if let Err(expected) = check_label_key(key) {
        errors.invalid(path, format!("Invalid value: {key:?}: must be {expected}"));
    }
}

fn check_finalizers(metadata: &Map<String, Value>, path: &Path, errors: &mut Errors) {
    for (at, finalizer) in items(metadata, "finalizers") {
        if finalizer.as_str().is_none_or(|name| check_label_key(name).is_err()) {
            errors.invalid(
                path.index(at),
                format!("Invalid value: {finalizer}: must be a name such as 'example.com/cleanup'"),
            );
        }
    }
}

/// An owner is named completely, and one of them at most is the controller.
fn check_owners(metadata: &Map<String, Value>, path: &Path, errors: &mut Errors) {
    let mut controllers = 0;
    for (at, owner) in items(metadata, "ownerReferences") {
        check_owner(owner, &path.index(at), errors);
        controllers += usize::from(owner.get("controller") == Some(&Value::Bool(true)));
    }
    if controllers > 1 {
        errors.invalid(path, "Invalid value: only one owner may have `controller: true`");
    }
}

fn check_owner(owner: &Value, path: &Path, errors: &mut Errors) {
    let text = |name: &str| owner.get(name).and_then(Value::as_str).unwrap_or_default();
    for name in ["apiVersion", "kind", "name", "uid"] {
        if owner.get(name).is_some_and(|value| !value.is_string() && !value.is_null()) {
            errors.push(path.field(name), FieldErrorReason::TypeInvalid, "Invalid value: must be of type string");
        } else if text(name).is_empty() {
            errors.required(path.field(name), "Required value: must not be empty");
        }
    }
    for name in ["blockOwnerDeletion", "controller"] {
        if owner.get(name).is_some_and(|value| !value.is_boolean() && !value.is_null()) {
            errors.push(path.field(name), FieldErrorReason::TypeInvalid, "Invalid value: must be of type boolean");
        }
    }
    if text("apiVersion").split('/').count() > 2 {
        errors.invalid(path.field("apiVersion"), "Invalid value: must be 'version' or 'group/version'");
    }
    if (text("apiVersion"), text("kind")) == ("v1", "Event") {
        errors.invalid(path, "Invalid value: an Event cannot own anything");
    }
}

fn items<'a>(metadata: &'a Map<String, Value>, field: &str) -> impl Iterator<Item = (usize, &'a Value)> {
    metadata.get(field).and_then(Value::as_array).into_iter().flatten().enumerate()
}

/// The string pairs of a metadata map; anything else in it is an error.
fn texts<'a>(
    metadata: &'a Map<String, Value>,
    field: &str,
    path: &Path,
    errors: &mut Errors,
) -> Vec<(&'a str, &'a str)> {
    let Some(pairs) = metadata.get(field).and_then(Value::as_object) else { return Vec::new() };
    let mut texts = Vec::with_capacity(pairs.len());
    for (key, value) in pairs {
        match value.as_str() {
            Some(text) => texts.push((key.as_str(), text)),
            None => {
                let message = format!("Invalid value: {value}: must be of type string: quote it");
                errors.push(path.key(key), FieldErrorReason::TypeInvalid, message);
            }
        }
    }
    texts
}
