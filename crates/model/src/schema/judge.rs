//! What a value must be beyond its type, in Kubernetes' words.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::checks::{Bound, Branch, Checks, Junctors, ScalarType};
use super::formats::{is_nearly_whole, whole};
use super::path::{Errors, Path};
use crate::FieldErrorReason;

/// A value in a message is cut here.
const SHOWN_LENGTH_MAX: usize = 64;

/// Values of an enum that a message lists.
const ALTERNATIVES_MAX: usize = 32;

pub(super) fn judge(checks: &Checks, value: &Value, path: &Path, errors: &mut Errors) {
    match value {
        Value::String(text) => judge_text(checks, text, path, errors),
        Value::Number(number) => judge_number(checks, number, path, errors),
        Value::Array(items) => {
            judge_count(items.len(), checks.items_min, checks.items_max, "items", path, errors);
        }
        Value::Object(fields) => {
            judge_count(fields.len(), checks.properties_min, checks.properties_max, "properties", path, errors);
        }
        Value::Null | Value::Bool(_) => {}
    }
    judge_enumeration(checks, value, path, errors);
    if let Some(format) = checks.format
        && let Err(reason) = format.check(value)
    {
        errors.invalid(path, format!("Invalid value: {}: {reason}", shown(value)));
    }
    if let Some(junctors) = &checks.junctors {
        judge_junctors(junctors, value, path, errors);
    }
}

/// A null has to be listed, too, where `nullable` allows it.
pub(super) fn judge_enumeration(checks: &Checks, value: &Value, path: &Path, errors: &mut Errors) {
    if let Some(allowed) = &checks.enumeration
        && !allowed.iter().any(|candidate| same(candidate, value))
    {
        errors.push(path, FieldErrorReason::NotSupported, unsupported(value, allowed));
    }
}

fn unsupported(value: &Value, allowed: &[Value]) -> String {
    let list: Vec<String> = allowed.iter().take(ALTERNATIVES_MAX).map(shown).collect();
    let more = match allowed.len().saturating_sub(ALTERNATIVES_MAX) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    format!("Unsupported value: {}: supported values: {}{more}", shown(value), list.join(", "))
}

fn judge_text(checks: &Checks, text: &str, path: &Path, errors: &mut Errors) {
    // Counting characters of a long text is linear: look at its bytes first.
    let fits = |max: u64| text.len() as u64 <= max || text.chars().count() as u64 <= max;
    if let Some(max) = checks.length_max
        && !fits(max)
    {
        // The pattern is not run over a text that is too long anyway.
        return errors.push(path, FieldErrorReason::TooLong, format!("Too long: may not be longer than {max}"));
    }
    if let Some(min) = checks.length_min
        && (text.chars().count() as u64) < min
    {
        errors.invalid(path, format!("Invalid value: {text:?}: should be at least {min} chars long"));
    }
    if let Some(pattern) = &checks.pattern
        && !pattern.is_match(text)
    {
        let shown = shown_text(text);
        errors.invalid(path, format!("Invalid value: {shown}: should match '{}'", pattern.as_str()));
    }
}

fn judge_number(checks: &Checks, number: &Number, path: &Path, errors: &mut Errors) {
    let mut refuse = |words: &str, limit: &Number| {
        errors.invalid(path, format!("Invalid value: {number}: should be {words} {limit}"));
    };
    if let Some(Bound { limit, exclusive }) = &checks.minimum {
        match (compare(number, limit), exclusive) {
            (Ordering::Less, false) => refuse("greater than or equal to", limit),
            (Ordering::Less | Ordering::Equal, true) => refuse("greater than", limit),
            _ => {}
        }
    }
    if let Some(Bound { limit, exclusive }) = &checks.maximum {
        match (compare(number, limit), exclusive) {
            (Ordering::Greater, false) => refuse("less than or equal to", limit),
            (Ordering::Greater | Ordering::Equal, true) => refuse("less than", limit),
            _ => {}
        }
    }
    if let Some(step) = checks.multiple_of
        && !is_multiple(number, step)
    {
        errors.invalid(path, format!("Invalid value: {number}: should be a multiple of {step}"));
    }
}

fn is_multiple(number: &Number, step: f64) -> bool {
    match (number.as_i64(), step.fract() == 0.0) {
        (Some(whole), true) if step.abs() < 9e15 => whole % (step as i64).max(1) == 0,
        _ => number.as_f64().is_some_and(|float| is_nearly_whole(float / step)),
    }
}

fn judge_count(count: usize, min: Option<u64>, max: Option<u64>, what: &str, path: &Path, errors: &mut Errors) {
    if let Some(max) = max.filter(|max| count as u64 > *max) {
        errors.push(path, FieldErrorReason::TooMany, format!("Too many: {count}: must have at most {max} {what}"));
    }
    if let Some(min) = min.filter(|min| (count as u64) < *min) {
        errors.invalid(path, format!("Invalid value: {count}: should have at least {min} {what}"));
    }
}

fn judge_junctors(junctors: &Junctors, value: &Value, path: &Path, errors: &mut Errors) {
    for branch in &junctors.all_of {
        judge_branch(branch, value, path, errors);
    }
    let accepted = |branch: &&Branch| accepts(branch, value);
    if !junctors.any_of.is_empty() && !junctors.any_of.iter().any(|branch| accepts(branch, value)) {
        errors.invalid(path, format!("Invalid value: {}: must validate at least one schema (anyOf)", shown(value)));
    }
    if !junctors.one_of.is_empty() && junctors.one_of.iter().filter(accepted).count() != 1 {
        errors.invalid(path, format!("Invalid value: {}: must validate one and only one schema (oneOf)", shown(value)));
    }
    if junctors.not.as_deref().is_some_and(|branch| accepts(branch, value)) {
        errors.invalid(path, format!("Invalid value: {}: must not validate the schema (not)", shown(value)));
    }
}

fn accepts(branch: &Branch, value: &Value) -> bool {
    let mut errors = Errors::default();
    judge_branch(branch, value, &Path::Root, &mut errors);
    errors.is_empty()
}

fn judge_branch(branch: &Branch, value: &Value, path: &Path, errors: &mut Errors) {
    let has_type = match branch.scalar {
        None => true,
        Some(ScalarType::Integer) => value.as_number().is_some_and(|number| whole(number).is_some()),
        Some(ScalarType::String) => value.is_string(),
    };
    if !has_type {
        return errors.push(
            path,
            FieldErrorReason::TypeInvalid,
            format!("Invalid value: {}: has another type", shown(value)),
        );
    }
    judge(&branch.checks, value, path, errors);
    if let Value::Object(fields) = value {
        for name in branch.required.iter().filter(|name| !fields.contains_key(&***name)) {
            errors.required(path.field(name), "Required value");
        }
        for (name, inner) in &branch.properties {
            if let Some(value) = fields.get(&**name) {
                judge_branch(inner, value, &path.field(name), errors);
            }
        }
    }
    if let (Some(inner), Value::Array(items)) = (&branch.items, value) {
        for (at, item) in items.iter().enumerate() {
            judge_branch(inner, item, &path.index(at), errors);
        }
    }
}

/// `1` and `1.0` are one value to Kubernetes.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare(left, right) == Ordering::Equal,
        _ => left == right,
    }
}

fn compare(left: &Number, right: &Number) -> Ordering {
    if let (Some(left), Some(right)) = (left.as_i128(), right.as_i128()) {
        return left.cmp(&right);
    }
    // `-0.0 + 0.0` is `0.0`, which it equals.
    let float = |number: &Number| number.as_f64().unwrap_or(f64::NAN) + 0.0;
    float(left).total_cmp(&float(right))
}

pub(super) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if whole(number).is_some() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A scalar as JSON, cut; of anything larger the type, as Kubernetes shows it.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => shown_text(text),
        Value::Array(_) | Value::Object(_) => format!("{:?}", type_of(value)),
        scalar => scalar.to_string(),
    }
}

fn shown_text(text: &str) -> String {
    match text.char_indices().nth(SHOWN_LENGTH_MAX) {
        Some((cut, _)) => format!("{:?}", format!("{}…", &text[..cut])),
        None => format!("{text:?}"),
    }
}
