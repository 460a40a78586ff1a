//! Types, lists and required fields of a value; what a scalar must be is in
//! `judge`, what rules say is in `cel`.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::{Map, Value};

use super::formats::whole;
use super::node::{ArrayNode, ListType, Node, NodeKind, ObjectNode};
use super::path::{Errors, Path};
use super::prune::Role;
use super::{cel, judge, object_meta};
use crate::syntax::check_dns_label;
use crate::{FieldError, FieldErrorReason};

/// A value on its own, such as a default: all that the node says, rules too.
pub(super) fn standalone(node: &Node, value: &Value) -> Vec<FieldError> {
    let mut errors = Errors::default();
    structure(node, value, &Path::Root, Role::of(node), &mut errors);
    if errors.is_empty() {
        cel::rules(node, value, None, &Path::Root, &mut errors);
    }
    errors.into_vec()
}

/// Everything but rules.
pub(super) fn structure(node: &Node, value: &Value, path: &Path, role: Role, errors: &mut Errors) {
    if errors.is_full() {
        return;
    }
    if value.is_null() && node.nullable {
        return node.checks.iter().for_each(|checks| judge::judge_enumeration(checks, value, path, errors));
    }
    if !has_type(node, value) {
        let message = format!(
            "Invalid value: {}: must be of type {}: {:?}",
            judge::shown(value),
            node.type_name(),
            judge::type_of(value)
        );
        return errors.push(path, FieldErrorReason::TypeInvalid, message);
    }
    if let Some(checks) = &node.checks {
        judge::judge(checks, value, path, errors);
    }
    match (&node.kind, value) {
        (NodeKind::Object(object), Value::Object(fields)) => fields_of(node, object, fields, path, role, errors),
        (NodeKind::Array(array), Value::Array(items)) => items_of(array, items, path, errors),
        _ => {}
    }
}

fn has_type(node: &Node, value: &Value) -> bool {
    match (&node.kind, value) {
        (NodeKind::Any, _)
        | (NodeKind::Object(_), Value::Object(_))
        | (NodeKind::Array(_), Value::Array(_))
        | (NodeKind::String | NodeKind::IntOrString, Value::String(_))
        | (NodeKind::Boolean, Value::Bool(_))
        | (NodeKind::Number, Value::Number(_)) => true,
        (NodeKind::Integer | NodeKind::IntOrString, Value::Number(number)) => whole(number).is_some(),
        _ => false,
    }
}

fn fields_of(
    node: &Node,
    object: &ObjectNode,
    fields: &Map<String, Value>,
    path: &Path,
    role: Role,
    errors: &mut Errors,
) {
    for name in &object.required {
        if !fields.contains_key(&**name) {
            errors.required(path.field(name), "Required value");
        }
    }
    if role == Role::Object && node.embedded_resource {
        embedded_type(fields, path, errors);
    }
    for (name, value) in fields {
        let Some(child) = node.field(name) else { continue };
        let is_field = object.properties.contains_key(name.as_str());
        let path = if is_field { path.field(name) } else { path.key(name) };
        structure(child, value, &path, Role::of(child), errors);
    }
}

/// An embedded resource says what it is.
fn embedded_type(fields: &Map<String, Value>, path: &Path, errors: &mut Errors) {
    for name in ["apiVersion", "kind"] {
        match fields.get(name) {
            Some(Value::String(text)) if text.is_empty() => {
                errors.required(path.field(name), "Required value: must not be empty");
            }
            Some(Value::String(text)) => embedded_name(name, text, path, errors),
            None => errors.required(path.field(name), "Required value: must not be empty"),
            Some(_) => {
                errors.push(path.field(name), FieldErrorReason::TypeInvalid, "Invalid value: must be of type string")
            }
        }
    }
    let path = path.field("metadata");
    match fields.get("metadata") {
        None => {}
        Some(Value::Object(metadata)) => object_meta::check_embedded(metadata, &path, errors),
        Some(_) => errors.push(path, FieldErrorReason::TypeInvalid, "Invalid value: must be of type object"),
    }
}

fn embedded_name(name: &str, text: &str, path: &Path, errors: &mut Errors) {
    let is_kind = |kind: &str| {
        let kind = kind.to_ascii_lowercase();
        kind.starts_with(|c: char| c.is_ascii_alphabetic()) && check_dns_label(&kind).is_ok()
    };
    if name == "apiVersion" && text.split('/').count() > 2 {
        errors.invalid(path.field(name), format!("Invalid value: {text:?}: must be 'version' or 'group/version'"));
    } else if name == "kind" && !is_kind(text) {
        errors.invalid(
            path.field(name),
            format!("Invalid value: {text:?}: must be letters, digits and '-', such as 'ConfigMap'"),
        );
    }
}

fn items_of(array: &ArrayNode, items: &[Value], path: &Path, errors: &mut Errors) {
    for (at, item) in items.iter().enumerate() {
        structure(&array.items, item, &path.index(at), Role::of(&array.items), errors);
    }
    match &array.list_type {
        ListType::Atomic => {}
        ListType::Set => {
            let mut seen = HashSet::with_capacity(items.len());
            for (at, item) in items.iter().enumerate() {
                if !seen.insert(identity(item)) {
                    duplicate(&path.index(at), judge::shown(item), errors);
                }
            }
        }
        ListType::Map(keys) => {
            let mut seen = HashSet::with_capacity(items.len());
            for (at, item) in items.iter().enumerate() {
                let key: Vec<Option<&Value>> = keys.iter().map(|key| item.get(&**key)).collect();
                if !seen.insert(key) {
                    duplicate(&path.index(at), shown_key(keys, item), errors);
                }
            }
        }
    }
}

/// Kubernetes compares objects and lists as text, where `1.0` is `1`; a number
/// on its own is compared with its type.
fn identity(item: &Value) -> Cow<'_, Value> {
    fn has_whole_float(value: &Value) -> bool {
        match value {
            Value::Number(number) => number.is_f64() && whole(number).is_some(),
            Value::Array(items) => items.iter().any(has_whole_float),
            Value::Object(fields) => fields.values().any(has_whole_float),
            _ => false,
        }
    }
    fn made_whole(value: &Value) -> Value {
        match value {
            Value::Number(number) => whole(number).map_or_else(|| value.clone(), Value::from),
            Value::Array(items) => items.iter().map(made_whole).collect(),
            Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), made_whole(value))).collect(),
            scalar => scalar.clone(),
        }
    }
    let is_same = item.is_number() || !has_whole_float(item);
    if is_same { Cow::Borrowed(item) } else { Cow::Owned(made_whole(item)) }
}

fn duplicate(path: &Path, shown: String, errors: &mut Errors) {
    errors.push(path, FieldErrorReason::Duplicate, format!("Duplicate value: {shown}"));
}

fn shown_key(keys: &[std::sync::Arc<str>], item: &Value) -> String {
    let parts: Vec<String> =
        keys.iter().filter_map(|key| Some(format!("{key:?}:{}", judge::shown(item.get(&**key)?)))).collect();
    format!("{{{}}}", parts.join(","))
}
