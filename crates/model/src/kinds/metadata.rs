//! What a kind says of `metadata`: the name and the namespace. The rest is the
//! same for every object.

use serde_json::Value;

use super::{Kind, NameSyntax, Scope};
use crate::Object;
use crate::schema::object_meta;
use crate::schema::path::{Errors, Path};
use crate::syntax::{DNS_SUBDOMAIN_BYTES_MAX, check_dns_label, check_dns_subdomain};

pub(super) fn check(kind: &Kind, object: &Object, errors: &mut Errors) {
    let path = Path::Root.field("metadata");
    check_name(kind, object.name(), &path, errors);
    check_namespace(kind, object.metadata().get("namespace"), &path, errors);
    object_meta::check(object.metadata(), &path, errors);
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
