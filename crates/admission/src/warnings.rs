//! What is admitted but probably not meant: fields that no schema knows, which
//! are dropped as Kubernetes drops them, and versions on their way out.

use serde_json::Value;
use tidegate_model::kinds::{Kind, KindVersion};
use tidegate_model::manifest::{Diagnostic, Document};
use tidegate_model::{FieldError, FieldErrorReason, Object};

/// What a person reads at once.
pub const WARNINGS_MAX: usize = 100;
/// Of one object: a misplaced block has one cause.
const OBJECT_WARNINGS_MAX: usize = 10;

/// The lines are looked up by whoever shows the warnings, for those alone.
pub(crate) fn of(kind: &Kind, version: &KindVersion, authored: &Object, admitted: &Object) -> Vec<FieldError> {
    let mut warnings: Vec<_> = deprecation(kind, version).into_iter().collect();
    let mut path = String::new();
    for (field, value) in authored.root() {
        compare(field, value, admitted.root().get(field), &mut path, &mut warnings);
    }
    warnings
}

/// As many as are worth reading, in the order of file and line.
pub(crate) fn show<'d, 'f: 'd>(warnings: impl Iterator<Item = (&'d Document<'f>, &'d FieldError)>) -> Vec<Diagnostic> {
    let shown = warnings.take(WARNINGS_MAX).map(|(document, warning)| document.diagnostic(warning));
    let mut shown: Vec<_> = shown.collect();
    shown.sort();
    shown
}

fn deprecation(kind: &Kind, version: &KindVersion) -> Option<FieldError> {
    let api_version = kind.api_version(version);
    let message = match &version.deprecation_warning {
        Some(warning) => warning.to_string(),
        None => format!("{api_version} {} is deprecated", kind.kind),
    };
    version.deprecated.then(|| FieldError::new("apiVersion", FieldErrorReason::NotSupported, message))
}

/// `path` is that of the parent, and is left as it was found.
fn compare(field: &str, before: &Value, after: Option<&Value>, path: &mut String, warnings: &mut Vec<FieldError>) {
    if warnings.len() >= OBJECT_WARNINGS_MAX {
        return;
    }
    let parent = path.len();
    push_field(path, field);
    match after {
        Some(after) => descend(before, after, path, warnings),
        // Without a value it says nothing, known or not.
        None if before.is_null() => {}
        None => {
            let message = "no schema knows this field, so it is dropped: check its name and its place";
            warnings.push(FieldError::new(path.as_str(), FieldErrorReason::NotSupported, message));
        }
    }
    path.truncate(parent);
}

fn descend(before: &Value, after: &Value, path: &mut String, warnings: &mut Vec<FieldError>) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            for (field, value) in before {
                compare(field, value, after.get(field), path, warnings);
            }
        }
        (Value::Array(before), Value::Array(after)) => {
            let parent = path.len();
            for (at, (before, after)) in before.iter().zip(after).enumerate() {
                path.push_str(&format!("[{at}]"));
                descend(before, after, path, warnings);
                path.truncate(parent);
            }
        }
        _ => {}
    }
}

/// As in a `FieldError`: a key that is no plain name stands in brackets.
fn push_field(path: &mut String, field: &str) {
    let is_name = !field.is_empty() && field.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
    match (is_name, path.is_empty()) {
        (true, true) => path.push_str(field),
        (true, false) => path.extend([".", field]),
        (false, _) => path.extend(["[", field, "]"]),
    }
}
