//! Conditions of a status, merged by `type`.
//!
//! An entry of a patch merges field by field into the condition of its type;
//! `{"type": "X", "$patch": "delete"}` removes that one, and nothing removes
//! them all. `lastTransitionTime` moves only when `status` changes: to the
//! time that the writer gives if it can be true, else to now.
//!
//! Invariant: what comes out is complete as `metav1.Condition` requires it
//! (`type`, `status`, `reason`, `message`, `lastTransitionTime`).

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use crate::merge::{StatusMerge, check_observed_generation, merge_patch};
use crate::timestamp::{format_time, parse_time};
use crate::{FieldError, FieldErrorReason, syntax};

/// Far more than one object's controllers report; 128 with the longest
/// messages are 4 MiB, which the object's size limit refuses first.
pub const CONDITIONS_MAX: usize = 128;
pub const CONDITION_MESSAGE_BYTES_MAX: usize = 32 * 1024;
/// Of one patch: all that may be there removed, and as many set. Each is looked
/// for among all, so that a body of megabytes would take minutes.
const ENTRIES_MAX: usize = 2 * CONDITIONS_MAX;
const TYPE_BYTES_MAX: usize = 316;
const REASON_BYTES_MAX: usize = 1024;
const PATH: &str = "status.conditions";

type Condition = Map<String, Value>;

/// Applies `patch`, the `conditions` of a status patch, to `status`.
pub(crate) fn merge_conditions(
    status: &mut Map<String, Value>,
    patch: &Value,
    context: &StatusMerge,
    errors: &mut Vec<FieldError>,
) {
    let Value::Array(entries) = patch else {
        let remedy = "send a list; remove one condition with {\"type\": …, \"$patch\": \"delete\"}";
        let message = format!("the conditions of others may not be replaced: {remedy}");
        errors.push(FieldError::new(PATH, FieldErrorReason::Forbidden, message));
        return;
    };
    if entries.len() > ENTRIES_MAX {
        let message = format!("{} conditions in one patch are more than the {ENTRIES_MAX} allowed", entries.len());
        errors.push(FieldError::new(PATH, FieldErrorReason::TooMany, message));
        return;
    }
    let mut conditions = match status.get_mut("conditions").map(Value::take) {
        Some(Value::Array(conditions)) => conditions,
        _ => Vec::new(),
    };
    let mut seen = HashSet::new();
    for (at, entry) in entries.iter().enumerate() {
        let path = format!("{PATH}[{at}]");
        if let Err(error) = merge_entry(&mut conditions, &path, entry, context, &mut seen) {
            errors.extend(error);
        }
    }
    if conditions.len() > CONDITIONS_MAX {
        let message = format!("{} conditions are more than the {CONDITIONS_MAX} allowed", conditions.len());
        errors.push(FieldError::new(PATH, FieldErrorReason::TooMany, message));
    }
    // A patch that names nothing leaves no empty list behind.
    if !conditions.is_empty() || status.contains_key("conditions") {
        status.insert("conditions".into(), Value::Array(conditions));
    }
}

fn merge_entry<'p>(
    conditions: &mut Vec<Value>,
    path: &str,
    entry: &'p Value,
    context: &StatusMerge,
    seen: &mut HashSet<&'p str>,
) -> Result<(), Vec<FieldError>> {
    let Value::Object(patch) = entry else {
        return Err(vec![FieldError::new(path, FieldErrorReason::TypeInvalid, "expected an object")]);
    };
    let kind = condition_type(path, patch).map_err(|error| vec![error])?;
    if !seen.insert(kind) {
        let message = format!("`{kind}` is in this patch twice");
        return Err(vec![FieldError::new(format!("{path}.type"), FieldErrorReason::Duplicate, message)]);
    }
    let found = conditions.iter().position(|condition| type_of(condition) == Some(kind));
    if is_delete(path, patch).map_err(|error| vec![error])? {
        if let Some(at) = found {
            conditions.remove(at);
        }
        return Ok(());
    }
    let current = found.and_then(|at| conditions[at].as_object());
    let merged = Value::Object(merged_condition(path, current, patch, context)?);
    match found {
        Some(at) => conditions[at] = merged,
        // Before the first greater type, so that the order of writers does not show.
        None => {
            let after = conditions.iter().position(|condition| type_of(condition) > Some(kind));
            conditions.insert(after.unwrap_or(conditions.len()), merged);
        }
    }
    Ok(())
}

fn merged_condition(
    path: &str,
    current: Option<&Condition>,
    patch: &Condition,
    context: &StatusMerge,
) -> Result<Condition, Vec<FieldError>> {
    let mut errors = Vec::new();
    let given_time = given_transition_time(path, patch, &mut errors);
    let mut merged = Value::Object(current.cloned().unwrap_or_default());
    merge_patch(&mut merged, &Value::Object(patch.clone()));
    let Value::Object(mut merged) = merged else { unreachable!("a merge of objects is an object") };
    merged.entry("message").or_insert_with(|| "".into());
    merged.remove("lastTransitionTime");
    check_condition(path, &merged, context, &mut errors);
    if !errors.is_empty() {
        return Err(errors);
    }
    let unmoved = current.filter(|current| current.get("status") == merged.get("status"));
    let time = match unmoved.and_then(|current| current.get("lastTransitionTime")) {
        Some(kept) => kept.clone(),
        None => format_time(moved_time(current, given_time, context.now)).into(),
    };
    merged.insert("lastTransitionTime".into(), time);
    Ok(merged)
}

/// The writer's time, if the transition can have been then: not in the future,
/// and after the one before, which a writer sends again that changes what it
/// has read and forgets the time.
fn moved_time(current: Option<&Condition>, given: Option<DateTime<Utc>>, now: DateTime<Utc>) -> DateTime<Utc> {
    let before = current.and_then(|current| current.get("lastTransitionTime")?.as_str().and_then(parse_time));
    given.filter(|given| *given <= now && before.is_none_or(|before| *given > before)).unwrap_or(now)
}

fn given_transition_time(path: &str, patch: &Condition, errors: &mut Vec<FieldError>) -> Option<DateTime<Utc>> {
    let given = patch.get("lastTransitionTime").filter(|value| !value.is_null())?;
    let time = given.as_str().and_then(parse_time);
    if time.is_none() {
        let message = "expected an RFC 3339 time like 2026-11-15T21:59:29Z, or nothing: the server sets it";
        errors.push(FieldError::invalid(format!("{path}.lastTransitionTime"), message));
    }
    time
}

fn check_condition(path: &str, merged: &Condition, context: &StatusMerge, errors: &mut Vec<FieldError>) {
    let text = |field: &str| merged.get(field).map(|value| value.as_str());
    match text("status") {
        Some(Some("True" | "False" | "Unknown")) => {}
        None => errors.push(FieldError::required(format!("{path}.status"), "is required: True, False or Unknown")),
        Some(_) => errors.push(FieldError::new(
            format!("{path}.status"),
            FieldErrorReason::NotSupported,
            "expected \"True\", \"False\" or \"Unknown\"",
        )),
    }
    match text("reason") {
        Some(Some(reason)) if is_reason(reason) => {}
        None => errors.push(FieldError::required(format!("{path}.reason"), "is required: one word in CamelCase")),
        Some(_) => errors.push(FieldError::invalid(
            format!("{path}.reason"),
            "expected a letter, then letters, digits, '_', ',' or ':', not ending in ',' or ':', 1024 at most",
        )),
    }
    match text("message") {
        Some(Some(message)) if message.len() <= CONDITION_MESSAGE_BYTES_MAX => {}
        Some(Some(_)) => errors.push(FieldError::new(
            format!("{path}.message"),
            FieldErrorReason::TooLong,
            format!("longer than {CONDITION_MESSAGE_BYTES_MAX} bytes"),
        )),
        _ => {
            errors.push(FieldError::new(format!("{path}.message"), FieldErrorReason::TypeInvalid, "expected a string"))
        }
    }
    if let Some(observed) = merged.get("observedGeneration") {
        errors.extend(check_observed_generation(&format!("{path}.observedGeneration"), observed, context));
    }
}

fn condition_type<'p>(path: &str, patch: &'p Condition) -> Result<&'p str, FieldError> {
    let path = format!("{path}.type");
    match patch.get("type").map(Value::as_str) {
        Some(Some(text)) if is_condition_type(text) => Ok(text),
        None => Err(FieldError::required(path, "is required: conditions merge by type")),
        Some(_) => Err(FieldError::invalid(path, "expected a name like Ready or example.com/Ready, 316 bytes at most")),
    }
}

fn is_delete(path: &str, patch: &Condition) -> Result<bool, FieldError> {
    match patch.get("$patch") {
        None => Ok(false),
        Some(Value::String(directive)) if directive == "delete" => Ok(true),
        Some(_) => {
            let path = format!("{path}.$patch");
            Err(FieldError::new(path, FieldErrorReason::NotSupported, "only \"delete\" is supported"))
        }
    }
}

fn type_of(condition: &Value) -> Option<&str> {
    condition.get("type").and_then(Value::as_str)
}

fn is_condition_type(text: &str) -> bool {
    let (prefix, name) = text.rsplit_once('/').map_or((None, text), |(prefix, name)| (Some(prefix), name));
    let edges = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    text.len() <= TYPE_BYTES_MAX
        && prefix.is_none_or(|prefix| syntax::check_dns_subdomain(prefix).is_ok())
        && edges(name.as_bytes().first())
        && edges(name.as_bytes().last())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

/// `^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`
fn is_reason(text: &str) -> bool {
    text.len() <= REASON_BYTES_MAX
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && !text.ends_with([',', ':'])
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b',' | b':'))
}

#[cfg(test)]
#[path = "conditions_tests.rs"]
mod tests;
