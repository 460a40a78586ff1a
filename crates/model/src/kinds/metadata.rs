//! `metadata` is the same for every kind: these are its fields and their
//! syntax.

use serde_json::{Map, Value};

use super::{Kind, NameSyntax, Scope};
use crate::schema::path::{Errors, Path};
use crate::syntax::{
    DNS_SUBDOMAIN_BYTES_MAX, check_dns_label, check_dns_subdomain, check_label_key, check_label_value,
};
use crate::{FieldErrorReason, Object};

/// Kubernetes' limit: all keys and values of an object's annotations.
pub const ANNOTATIONS_BYTES_MAX: usize = 256 << 10;

/// Kubernetes' ObjectMeta; any other field is dropped.
const FIELDS: [&str; 15] = [
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

pub(super) fn prune(metadata: &mut Map<String, Value>) {
    metadata.retain(|name, value| FIELDS.contains(&name.as_str()) && !value.is_null());
}

pub(super) fn check(kind: &Kind, object: &Object, errors: &mut Errors) {
    let path = Path::Root.field("metadata");
    check_name(kind, object.name(), &path, errors);
    check_namespace(kind, object.metadata().get("namespace"), &path, errors);
    check_labels(object, &path, errors);
    check_annotations(object, &path, errors);
    check_finalizers(object, &path, errors);
}

fn check_name(kind: &Kind, name: &str, path: &Path, errors: &mut Errors) {
    let path = path.field("name");
    if name.is_empty() {
        return errors.required(path, "Required value: name is required");
    }
    let verdict = match kind.name_syntax {
        NameSyntax::Subdomain => check_dns_subdomain(name),
        NameSyntax::Label => check_dns_label(name),
        NameSyntax::PathSegment => check_path_segment(name),
    };
    if let Err(expected) = verdict {
        errors.invalid(path, format!("Invalid value: {name:?}: must be {expected}"));
    }
}

fn check_path_segment(name: &str) -> Result<(), &'static str> {
    let fits = name.len() <= DNS_SUBDOMAIN_BYTES_MAX && !matches!(name, "." | "..") && !name.contains(['/', '%']);
    if fits { Ok(()) } else { Err("at most 253 bytes without '/' and '%', and not '.' or '..'") }
}

fn check_namespace(kind: &Kind, namespace: Option<&Value>, path: &Path, errors: &mut Errors) {
    let path = path.field("namespace");
    match (kind.scope, namespace) {
        (Scope::Cluster, None) => {}
        (Scope::Cluster, Some(_)) => {
            errors.forbidden(path, format!("Forbidden: {} is cluster-scoped: remove the namespace", kind.kind));
        }
        (Scope::Namespaced, None) => errors.required(path, "Required value"),
        (Scope::Namespaced, Some(Value::String(namespace))) if check_dns_label(namespace).is_ok() => {}
        (Scope::Namespaced, Some(other)) => {
            errors.invalid(
                path,
                format!("Invalid value: {other}: must be a lowercase RFC 1123 label, such as 'default'"),
            );
        }
    }
}

fn check_labels(object: &Object, path: &Path, errors: &mut Errors) {
    let path = path.field("labels");
    for (key, value) in texts(object, "labels", &path, errors) {
        check_key(key, &path, errors);
        if let Err(expected) = check_label_value(value) {
            errors.invalid(path.key(key), format!("Invalid value: {value:?}: must be {expected}"));
        }
    }
}

fn check_annotations(object: &Object, path: &Path, errors: &mut Errors) {
    let path = path.field("annotations");
    let mut bytes = 0;
    for (key, value) in texts(object, "annotations", &path, errors) {
        // Annotation keys are case insensitive to Kubernetes' syntax check.
        check_key(&key.to_lowercase(), &path, errors);
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

fn check_finalizers(object: &Object, path: &Path, errors: &mut Errors) {
    let path = path.field("finalizers");
    match object.metadata().get("finalizers") {
        None => {}
        Some(Value::Array(finalizers)) => {
            for (at, finalizer) in finalizers.iter().enumerate() {
                if finalizer.as_str().is_none_or(|name| check_label_key(name).is_err()) {
                    errors.invalid(
                        path.index(at),
                        format!("Invalid value: {finalizer}: must be a name such as 'example.com/cleanup'"),
                    );
                }
            }
        }
        Some(_) => errors.push(path, FieldErrorReason::TypeInvalid, "Invalid value: must be of type array"),
    }
}

/// The string pairs of a metadata map; anything else in it is an error.
fn texts<'a>(object: &'a Object, field: &str, path: &Path, errors: &mut Errors) -> Vec<(&'a str, &'a str)> {
    let Some(value) = object.metadata().get(field) else { return Vec::new() };
    let Some(pairs) = value.as_object() else {
        errors.push(path, FieldErrorReason::TypeInvalid, "Invalid value: must be of type object");
        return Vec::new();
    };
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
