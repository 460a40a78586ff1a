//! Functions. The common ones work on values where they lie; the libraries of
//! Kubernetes (quantities, addresses, sets) get converted copies, whose weight
//! is paid first.

use std::rc::Rc;

use base64::Engine;

use super::super::go_regex;
use super::expr::Operator;
use super::kube;
use super::machine::{Budget, Fail, error};
use super::operators;
use super::value::Val;

/// Compiling a pattern that a rule computes, in steps; ~20 µs.
const PATTERN_COST: u64 = 1000;
/// A call into a library: binding its arguments, in steps.
const LIBRARY_CALL_COST: u64 = 20;
/// Digits that `format("%.3f")` may ask for.
const PRECISION_DIGITS_MAX: usize = 2;

/// The widest exponent of a quantity, `1e27`.
const QUANTITY_EXPONENT_MAX: u32 = 27;

const NATIVE: [&str; 15] = [
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "matches",
    "hasValue",
    "value",
    "or",
    "orValue",
    "optional.of",
    "optional.none",
    "optional.ofNonZeroValue",
    "dyn",
    "bool",
    "type",
];

pub(super) fn knows(function: &str) -> bool {
    NATIVE.contains(&function) || kube::knows(function)
}

/// With `is_method`, the first argument is the target.
pub(super) fn call<'a>(
    function: &str,
    is_method: bool,
    args: Vec<Val<'a>>,
    budget: &mut Budget,
) -> Result<Val<'a>, Fail> {
    if let Some(done) = optional_call(function, &args) {
        return done;
    }
    match (function, args.as_slice()) {
        ("size", [value]) => size(value, budget),
        ("dyn", [value]) => Ok(value.clone()),
        ("sum", [list]) if list.list_len().is_some() => sum(list, budget),
        ("type", [value]) => Ok(Val::Type(value.type_name())),
        ("bool", [Val::Bool(flag)]) => Ok(Val::Bool(*flag)),
        ("duration", [span @ Val::Span(_)]) | ("timestamp", [span @ Val::Time(_)]) => Ok(span.clone()),
        ("matches", [text, pattern]) => match (text.as_text(), pattern.as_text()) {
            (Some(text), Some(pattern)) => matches(text, pattern, budget),
            _ => no_overload(function, &args),
        },
        ("contains" | "startsWith" | "endsWith", [text, part]) => match (text.as_text(), part.as_text()) {
            (Some(text), Some(part)) => {
                budget.charge((text.len() + part.len()) as u64 / 16)?;
                Ok(Val::Bool(match function {
                    "contains" => text.contains(part),
                    "startsWith" => text.starts_with(part),
                    _ => text.ends_with(part),
                }))
            }
            _ => no_overload(function, &args),
        },
        _ => foreign(function, is_method, &args, budget),
    }
}

fn optional_call<'a>(function: &str, args: &[Val<'a>]) -> Option<Result<Val<'a>, Fail>> {
    Some(match (function, args) {
        ("optional.none", []) => Ok(Val::Optional(None)),
        ("optional.of", [value]) => Ok(Val::Optional(Some(Rc::new(value.clone())))),
        ("optional.ofNonZeroValue", [value]) => Ok(Val::Optional((!is_zero(value)).then(|| Rc::new(value.clone())))),
        ("hasValue", [Val::Optional(inner)]) => Ok(Val::Bool(inner.is_some())),
        ("value", [Val::Optional(Some(inner))]) => Ok(Val::clone(inner)),
        ("value", [Val::Optional(None)]) => error("optional.none() has no value"),
        ("or", [Val::Optional(None), other @ Val::Optional(_)]) => Ok(other.clone()),
        ("or", [inner @ Val::Optional(Some(_)), Val::Optional(_)]) => Ok(inner.clone()),
        ("orValue", [Val::Optional(None), default]) => Ok(default.clone()),
        ("orValue", [Val::Optional(Some(inner)), _]) => Ok(Val::clone(inner)),
        _ => return None,
    })
}

fn is_zero(value: &Val) -> bool {
    match value {
        Val::Null | Val::Bool(false) | Val::Int(0) | Val::UInt(0) => true,
        Val::Double(number) => *number == 0.0,
        _ => value.as_text().is_some_and(str::is_empty) || value.list_len() == Some(0) || value.map_len() == Some(0),
    }
}

fn size<'a>(value: &Val<'a>, budget: &mut Budget) -> Result<Val<'a>, Fail> {
    let count = match value {
        Val::Bytes(bytes) => Some(bytes.len()),
        _ => value.list_len().or_else(|| value.map_len()),
    };
    if let Some(count) = count {
        return Ok(Val::Int(count as i64));
    }
    let Some(text) = value.as_text() else { return no_overload("size", std::slice::from_ref(value)) };
    budget.charge(text.len() as u64 / 16)?;
    Ok(Val::Int(text.chars().count() as i64))
}

/// The library's own sum wraps around.
fn sum<'a>(list: &Val<'a>, budget: &mut Budget) -> Result<Val<'a>, Fail> {
    let mut elements = (0..list.list_len().unwrap_or(0)).filter_map(|at| list.element(at));
    let Some(mut sum) = elements.next() else { return Ok(Val::Int(0)) };
    for element in elements {
        budget.charge(1)?;
        sum = operators::apply(Operator::Add, sum, element, budget)?;
    }
    Ok(sum)
}

fn matches<'a>(text: &str, pattern: &str, budget: &mut Budget) -> Result<Val<'a>, Fail> {
    budget.charge(PATTERN_COST + pattern.len() as u64 * 16 + text.len() as u64 / 4)?;
    match go_regex::compile(pattern) {
        Ok(regex) => Ok(Val::Bool(regex.is_match(text))),
        Err(reason) => error(format!("{pattern:?} is not a pattern: {reason}")),
    }
}

fn foreign<'a>(function: &str, is_method: bool, args: &[Val<'a>], budget: &mut Budget) -> Result<Val<'a>, Fail> {
    let mut cost = LIBRARY_CALL_COST + growth(function, args);
    for arg in args {
        cost = cost.saturating_add(arg.weight(budget.left()).saturating_mul(4));
    }
    budget.charge(cost)?;
    let text = args.first().and_then(Val::as_text);
    match function {
        "format" if text.is_some_and(asks_for_many_digits) => error("format() with more than 99 digits of precision"),
        "quantity" | "isQuantity" if text.is_some_and(has_wide_exponent) => {
            error(format!("the exponent of a quantity must be within ±{QUANTITY_EXPONENT_MAX}"))
        }
        _ => kube::call(function, is_method, args),
    }
}

/// What a library function may make or do beyond one pass over its arguments.
fn growth(function: &str, args: &[Val]) -> u64 {
    let length = |at: usize| {
        let arg = args.get(at);
        let text = arg.and_then(Val::as_text).map(str::len);
        text.or_else(|| arg.and_then(Val::list_len)).unwrap_or(0) as u64
    };
    let product = length(0).saturating_mul(length(1));
    match (function, args) {
        ("lists.range", [Val::Int(count)]) => u64::try_from(*count).unwrap_or(0),
        ("replace", _) => (length(0) / length(1).max(1) + 1).saturating_mul(length(2)),
        ("join", _) => product.saturating_add(args.first().map_or(0, |list| list.weight(u64::MAX)) * 16),
        ("find" | "findAll", _) => PATTERN_COST + length(1) * 16,
        ("sets.contains" | "sets.equivalent" | "sets.intersects" | "indexOf" | "lastIndexOf", _) => product,
        ("distinct" | "sort" | "flatten", _) => length(0).saturating_mul(length(0)),
        _ => 0,
    }
}

/// `%.100f` and beyond: a formatter may build what it asks for.
fn asks_for_many_digits(format: &str) -> bool {
    format.split('.').skip(1).any(|tail| tail.bytes().take_while(u8::is_ascii_digit).count() > PRECISION_DIGITS_MAX)
}

/// `1e99`: the library multiplies it out, in 128 bits.
fn has_wide_exponent(quantity: &str) -> bool {
    let Some((_, exponent)) = quantity.split_once(['e', 'E']).filter(|(_, exponent)| !exponent.is_empty()) else {
        return false;
    };
    let is_number = exponent.trim_start_matches(['-', '+']).bytes().all(|b| b.is_ascii_digit());
    is_number && exponent.parse::<i32>().map_or(true, |exponent| exponent.unsigned_abs() > QUANTITY_EXPONENT_MAX)
}

fn no_overload<T>(function: &str, args: &[Val]) -> Result<T, Fail> {
    let types: Vec<&str> = args.iter().map(Val::type_name).collect();
    error(format!("no such overload: {function}({})", types.join(", ")))
}

pub(super) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    base64::engine::general_purpose::STANDARD.decode(text).ok()
}
