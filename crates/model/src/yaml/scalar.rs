//! What a scalar means: the rules of the YAML library that Kubernetes uses.
//!
//! Everything that is not a null, a boolean or a number is text; a date is
//! text, too.

use serde_json::{Number, Value};

/// Why a scalar has no value in JSON, and what to do.
pub(super) type Refusal = String;

/// A plain scalar without a tag.
pub(super) fn resolve_plain(text: &str) -> Result<Value, Refusal> {
    if let Some(value) = word(text) {
        return Ok(value);
    }
    if is_non_finite(text) {
        return Err(format!("`{text}` has no value in JSON: use a finite number, or quote it if it is text"));
    }
    match text.as_bytes().first() {
        Some(b'0'..=b'9' | b'+' | b'-') => Ok(number(&text.replace('_', ""))?.unwrap_or_else(|| text.into())),
        Some(b'.') => Ok(float(&text.replace('_', "")).unwrap_or_else(|| text.into())),
        _ => Ok(text.into()),
    }
}

/// A scalar with a tag of the YAML schema; `suffix` is `int` for `!!int`.
pub(super) fn resolve_tagged(suffix: &str, text: &str) -> Result<Value, Refusal> {
    let value = match suffix {
        "str" | "timestamp" => return Ok(text.into()),
        "null" | "bool" | "int" | "float" => resolve_plain(text)?,
        _ => return Err(format!("the tag `!!{suffix}` is not supported: write plain YAML without it")),
    };
    let fits = match suffix {
        "null" => value.is_null(),
        "bool" => value.is_boolean(),
        "int" => value.is_i64() || value.is_u64(),
        _ => value.is_number(),
    };
    if fits { Ok(value) } else { Err(format!("`{text}` is not a `!!{suffix}`")) }
}

/// A key as text: JSON has no others.
pub(super) fn key_text(key: &Value) -> Result<String, Refusal> {
    match key {
        Value::String(text) => Ok(text.clone()),
        Value::Bool(value) => Ok(value.to_string()),
        Value::Number(number) => Ok(match number.as_f64() {
            Some(float) if number.is_f64() => float_key(float),
            _ => number.to_string(),
        }),
        Value::Null => Err("a key is missing: null cannot be one".into()),
        Value::Array(_) | Value::Object(_) => Err("a key must be a scalar".into()),
    }
}

fn word(text: &str) -> Option<Value> {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Some(true.into()),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Some(false.into()),
        "" | "~" | "null" | "Null" | "NULL" => Some(Value::Null),
        _ => None,
    }
}

pub(super) fn is_non_finite(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN")
}

/// `plain` is without underscores. `None` if it is no number.
fn number(plain: &str) -> Result<Option<Value>, Refusal> {
    let (negative, digits) = match plain.strip_prefix(['+', '-']) {
        Some(digits) => (plain.starts_with('-'), digits),
        None => (false, plain),
    };
    let Some((radix, digits)) = radix_of(digits) else { return Ok(decimal(plain, digits)) };
    match u64::from_str_radix(digits, radix) {
        Ok(magnitude) => signed(negative, magnitude).ok_or_else(|| out_of_range(plain)).map(Some),
        Err(_) => Err(out_of_range(plain)),
    }
}

/// `0x1f`, `0o17`, `0b11` and the octal of YAML 1.1, `017`.
fn radix_of(digits: &str) -> Option<(u32, &str)> {
    let (radix, rest) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &digits[2..]),
        [b'0', b'o' | b'O', ..] => (8, &digits[2..]),
        [b'0', b'b' | b'B', ..] => (2, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => return None,
    };
    let is_digits = !rest.is_empty() && rest.chars().all(|c| c.is_digit(radix));
    is_digits.then_some((radix, rest))
}

fn decimal(plain: &str, digits: &str) -> Option<Value> {
    if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        let integer = digits.parse().ok().and_then(|magnitude| signed(plain.starts_with('-'), magnitude));
        return integer.or_else(|| float(plain));
    }
    float(plain)
}

fn signed(negative: bool, magnitude: u64) -> Option<Value> {
    if negative { 0i64.checked_sub_unsigned(magnitude).map(Value::from) } else { Some(magnitude.into()) }
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`. One that is out of
/// range is text: `12e5678` is a commit, not a number.
fn float(text: &str) -> Option<Value> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (&unsigned[..at], Some(&unsigned[at + 1..])),
        None => (unsigned, None),
    };
    let all_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let has_digits = !whole.is_empty() || !fraction.is_empty();
    let exponent_fits = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !digits.is_empty() && all_digits(digits)
    });
    if !(has_digits && all_digits(whole) && all_digits(fraction) && exponent_fits) {
        return None;
    }
    text.parse().ok().and_then(Number::from_f64).map(Value::Number)
}

fn out_of_range(text: &str) -> Refusal {
    format!("`{text}` does not fit into 64 bits: quote it if it is text")
}

/// As Go prints a 32-bit float with `%g`: so Kubernetes spells such a key.
fn float_key(float: f64) -> String {
    let float = float as f32;
    if float.is_infinite() {
        return if float > 0.0 { ".inf".into() } else { "-.inf".into() };
    }
    let scientific = format!("{float:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        return float.to_string();
    }
    format!("{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(text: &str, expected: Value) {
        assert_eq!(resolve_plain(text), Ok(expected), "{text}");
    }

    #[test]
    fn booleans_and_null_of_yaml_1_1() {
        for text in ["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"] {
            check(text, json!(true));
        }
        for text in ["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"] {
            check(text, json!(false));
        }
        for text in ["", "~", "null", "Null", "NULL"] {
            check(text, json!(null));
        }
        for text in ["yEs", "tRUE", "nULL", "nil", "none"] {
            check(text, json!(text));
        }
    }

    #[test]
    fn integers_in_every_base() {
        for (text, expected) in [
            ("0", json!(0)),
            ("-1", json!(-1)),
            ("+5", json!(5)),
            ("1_000", json!(1000)),
            ("0777", json!(511)),
            ("-0777", json!(-511)),
            ("0o17", json!(15)),
            ("0x1F", json!(31)),
            ("0b101", json!(5)),
            ("08", json!(8)),
            ("9223372036854775808", json!(9223372036854775808u64)),
            ("-9223372036854775808", json!(i64::MIN)),
            ("18446744073709551616", json!(18446744073709551616.0)),
            ("-9223372036854775809", json!(-9223372036854775809.0)),
        ] {
            check(text, expected);
        }
        for text in ["0x10000000000000000", "-0xFFFFFFFFFFFFFFFF"] {
            assert!(resolve_plain(text).is_err(), "{text}");
        }
    }

    #[test]
    fn floats() {
        for (text, expected) in [
            ("1.5", json!(1.5)),
            (".5", json!(0.5)),
            (".5_0", json!(0.5)),
            ("5.", json!(5.0)),
            ("1e3", json!(1000.0)),
            ("-1.5E-3", json!(-0.0015)),
        ] {
            check(text, expected);
        }
        for text in [".inf", "-.Inf", "+.INF", ".nan", ".NaN"] {
            assert!(resolve_plain(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_rest_is_text() {
        for text in [
            "2024-01-01",
            "2024-01-01T00:00:00Z",
            "1:30",
            "12e5678",
            "1e400",
            "0x",
            "0o8",
            "1.2.3",
            "10.0.0.1",
            "-",
            "+",
            ".",
            "..",
            "1e",
            "e3",
            "inf",
            "nan",
            "-.nan",
            "_1",
            "=",
            "100Mi",
            "0.5.",
            "1-2",
            "1+1",
            "0xfg",
            "٣",
        ] {
            check(text, json!(text));
        }
    }

    #[test]
    fn tags() {
        for (suffix, text, expected) in [
            ("str", "5", Some(json!("5"))),
            ("int", "5", Some(json!(5))),
            ("int", "5.5", None),
            ("float", "5", Some(json!(5))),
            ("bool", "yes", Some(json!(true))),
            ("bool", "x", None),
            ("null", "", Some(json!(null))),
            ("binary", "aGk=", None),
        ] {
            assert_eq!(resolve_tagged(suffix, text).ok(), expected, "!!{suffix} {text}");
        }
    }

    #[test]
    fn keys() {
        for (key, expected) in [
            (json!("a"), Some("a")),
            (json!(true), Some("true")),
            (json!(511), Some("511")),
            (json!(1.5), Some("1.5")),
            (json!(100000.0), Some("100000")),
            (json!(1234567.0), Some("1.234567e+06")),
            (json!(1e30), Some("1e+30")),
            (json!(0.000001), Some("1e-06")),
            (json!(-8e76), Some("-.inf")),
            (json!(null), None),
            (json!([]), None),
        ] {
            assert_eq!(key_text(&key).ok().as_deref(), expected, "{key}");
        }
    }
}
