//! The versions of a definition: exactly one is stored, each has a schema.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::crd::check_label;
use super::{KindVersion, PrinterColumn};
use crate::schema::path::{Errors, Path};
use crate::schema::{NodeKind, Schema};
use crate::{FieldError, FieldErrorReason};

/// Versions of one kind; each holds a compiled schema.
const VERSIONS_MAX: usize = 32;

/// The versions, and the index of the one that is stored. With an error a
/// version may be missing: the caller then drops them all.
pub(super) fn read(spec: &Map<String, Value>, path: &Path, errors: &mut Errors) -> (Vec<KindVersion>, Option<usize>) {
    let path = path.field("versions");
    let entries = spec.get("versions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if entries.is_empty() {
        errors.required(path, "Required value: must have at least one version");
    }
    if entries.len() > VERSIONS_MAX {
        let message = format!("Too many: {}: must have at most {VERSIONS_MAX} items", entries.len());
        errors.push(path, FieldErrorReason::TooMany, message);
        return (Vec::new(), None);
    }
    let mut versions = Vec::with_capacity(entries.len());
    for (at, entry) in entries.iter().enumerate() {
        versions.extend(version(entry, &path.index(at), errors));
    }
    check_names(entries, &path, errors);
    let storage = storage_of(entries, &path, errors);
    (versions, storage)
}

fn check_names(entries: &[Value], path: &Path, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for (at, entry) in entries.iter().enumerate() {
        let name = entry.get("name").and_then(Value::as_str).unwrap_or_default();
        if !seen.insert(name) {
            errors.push(
                path.index(at).field("name"),
                FieldErrorReason::Duplicate,
                format!("Duplicate value: {name:?}"),
            );
        }
    }
}

fn storage_of(entries: &[Value], path: &Path, errors: &mut Errors) -> Option<usize> {
    let is_stored = |entry: &Value| entry.get("storage").and_then(Value::as_bool) == Some(true);
    let mut stored = entries.iter().enumerate().filter(|(_, entry)| is_stored(entry)).map(|(at, _)| at);
    match (stored.next(), stored.next()) {
        (Some(at), None) => Some(at),
        _ => {
            errors.invalid(path, "Invalid value: must have exactly one version marked as storage version");
            None
        }
    }
}

fn version(entry: &Value, path: &Path, errors: &mut Errors) -> Option<KindVersion> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str);
    let flag = |name: &str| entry.get(name).and_then(Value::as_bool);
    let name = text("name").unwrap_or_default();
    check_label(name, &path.field("name"), errors);
    for required in ["served", "storage"] {
        if flag(required).is_none() {
            errors.required(path.field(required), "Required value: true or false");
        }
    }
    let schema = schema(entry, path, errors)?;
    Some(KindVersion {
        name: name.into(),
        served: flag("served").unwrap_or(false),
        storage: flag("storage").unwrap_or(false),
        deprecated: flag("deprecated").unwrap_or(false),
        deprecation_warning: text("deprecationWarning").map(Into::into),
        has_status: entry.get("subresources").and_then(|sub| sub.get("status")).is_some_and(Value::is_object),
        columns: columns(entry, path, errors),
        selectable_fields: selectable_fields(entry, &schema, path, errors),
        schema: Arc::new(schema),
    })
}

fn schema(entry: &Value, path: &Path, errors: &mut Errors) -> Option<Schema> {
    let schema_path = path.field("schema");
    let path = schema_path.field("openAPIV3Schema");
    let Some(source) = entry.get("schema").and_then(|schema| schema.get("openAPIV3Schema")) else {
        errors.required(path, "Required value: schemas are required");
        return None;
    };
    let relocate = |error: FieldError| match error.path.is_empty() {
        true => FieldError { path: path.to_string(), ..error },
        false => FieldError { path: format!("{path}.{}", error.path), ..error },
    };
    Schema::compile(source).map_err(|found| errors.extend(found.into_iter().map(relocate))).ok()
}

fn columns(entry: &Value, path: &Path, errors: &mut Errors) -> Vec<PrinterColumn> {
    let path = path.field("additionalPrinterColumns");
    let entries = entry.get("additionalPrinterColumns").and_then(Value::as_array);
    entries.into_iter().flatten().enumerate().map(|(at, entry)| column(entry, &path.index(at), errors)).collect()
}

fn column(entry: &Value, path: &Path, errors: &mut Errors) -> PrinterColumn {
    const TYPES: [&str; 5] = ["string", "integer", "number", "boolean", "date"];
    let text = |name: &str| entry.get(name).and_then(Value::as_str);
    for required in ["name", "type", "jsonPath"] {
        if text(required).is_none_or(str::is_empty) {
            errors.required(path.field(required), "Required value");
        }
    }
    let column_type = text("type").unwrap_or_default();
    if !column_type.is_empty() && !TYPES.contains(&column_type) {
        let message = format!("Invalid value: {column_type:?}: must be one of {}", TYPES.join(","));
        errors.invalid(path.field("type"), message);
    }
    PrinterColumn {
        name: text("name").unwrap_or_default().into(),
        column_type: column_type.into(),
        json_path: text("jsonPath").unwrap_or_default().into(),
        priority: entry.get("priority").and_then(Value::as_i64).unwrap_or(0),
        format: text("format").map(Into::into),
        description: text("description").map(Into::into),
    }
}

fn selectable_fields(entry: &Value, schema: &Schema, path: &Path, errors: &mut Errors) -> Vec<Arc<str>> {
    let path = path.field("selectableFields");
    let entries = entry.get("selectableFields").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut fields = Vec::with_capacity(entries.len());
    for (at, entry) in entries.iter().enumerate() {
        let json_path = entry.get("jsonPath").and_then(Value::as_str).unwrap_or_default();
        if !is_selectable(schema, json_path) {
            let message = format!(
                "Invalid value: {json_path:?}: must be the path of a string, integer or boolean of the schema, such as .spec.color"
            );
            errors.invalid(path.index(at).field("jsonPath"), message);
        }
        fields.push(json_path.into());
    }
    fields
}

fn is_selectable(schema: &Schema, json_path: &str) -> bool {
    let Some(names) = json_path.strip_prefix('.').filter(|names| !names.starts_with("metadata")) else { return false };
    let node = names.split('.').try_fold(schema.root(), |node, name| node.property(name).map(AsRef::as_ref));
    node.is_some_and(|node| matches!(node.kind, NodeKind::String | NodeKind::Integer | NodeKind::Boolean))
}
