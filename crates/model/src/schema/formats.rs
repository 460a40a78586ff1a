//! The formats that apiextensions validates; any other is a remark for the
//! reader and checks nothing.
//!
//! `cel-expression` is ours: text that must parse as a CEL expression, so that
//! a schema can say what otherwise would need code.

use serde_json::{Number, Value};

use super::{cel, format_text as text};
use crate::syntax;

#[derive(Debug, Clone, Copy)]
pub(super) struct Format {
    name: &'static str,
    test: Test,
}

#[derive(Debug, Clone, Copy)]
enum Test {
    Text(fn(&str) -> bool),
    Number(fn(&Number) -> bool),
    Explained(fn(&str) -> Result<(), String>),
}

const FORMATS: &[(&str, Test)] = &[
    ("bsonobjectid", Test::Text(text::is_bson_object_id)),
    ("byte", Test::Text(text::is_base64)),
    ("cel-expression", Test::Explained(cel::parse_check)),
    ("cidr", Test::Text(text::is_cidr)),
    ("creditcard", Test::Text(text::is_credit_card)),
    ("date", Test::Text(text::is_date)),
    ("date-time", Test::Text(text::is_date_time)),
    ("datetime", Test::Text(text::is_date_time)),
    ("duration", Test::Text(text::is_duration)),
    ("email", Test::Text(super::format_mail::is_email)),
    ("float", Test::Number(is_float32)),
    ("hexcolor", Test::Text(text::is_hex_color)),
    ("hostname", Test::Text(text::is_hostname)),
    ("int32", Test::Number(is_int32)),
    ("int64", Test::Number(is_int64)),
    ("ipv4", Test::Text(text::is_ipv4)),
    ("ipv6", Test::Text(text::is_ipv6)),
    ("isbn", Test::Text(|t| text::is_isbn10(t) || text::is_isbn13(t))),
    ("isbn10", Test::Text(text::is_isbn10)),
    ("isbn13", Test::Text(text::is_isbn13)),
    ("k8s-long-name", Test::Text(|t| syntax::check_dns_subdomain(t).is_ok())),
    ("k8s-short-name", Test::Text(|t| syntax::check_dns_label(t).is_ok())),
    ("mac", Test::Text(text::is_mac)),
    ("rgbcolor", Test::Text(text::is_rgb_color)),
    ("ssn", Test::Text(text::is_ssn)),
    ("uri", Test::Text(super::format_uri::is_uri)),
    ("uuid", Test::Text(|t| text::is_uuid(t, None))),
    ("uuid3", Test::Text(|t| text::is_uuid(t, Some(b'3')))),
    ("uuid4", Test::Text(|t| text::is_uuid(t, Some(b'4')))),
    ("uuid5", Test::Text(|t| text::is_uuid(t, Some(b'5')))),
];

impl Format {
    pub fn parse(name: &str) -> Option<Self> {
        let (name, test) = *FORMATS.iter().find(|(known, _)| *known == name)?;
        Some(Self { name, test })
    }

    /// What is wrong with `value`. A format that does not concern the value's
    /// type finds nothing.
    pub fn check(self, value: &Value) -> Result<(), String> {
        let fits = match (self.test, value) {
            (Test::Text(test), Value::String(text)) => test(text),
            (Test::Number(test), Value::Number(number)) => test(number),
            (Test::Explained(test), Value::String(text)) => return test(text),
            _ => true,
        };
        if fits { Ok(()) } else { Err(format!("must be of type {}", self.name)) }
    }
}

fn is_int32(number: &Number) -> bool {
    whole(number).is_some_and(|n| i32::try_from(n).is_ok())
}

fn is_int64(number: &Number) -> bool {
    whole(number).is_some()
}

/// Its range, not its precision.
fn is_float32(number: &Number) -> bool {
    number.as_f64().is_some_and(|float| float.abs() <= f64::from(f32::MAX))
}

/// The integer that `number` is; `1.0` is one, as it is to Kubernetes, up to
/// where every integer has a float of its own.
pub(super) fn whole(number: &Number) -> Option<i64> {
    number.as_i64().or_else(|| {
        let float = number.as_f64().filter(|float| number.is_f64() && is_whole(*float))?;
        Some(float as i64)
    })
}

/// Beyond 2^53 - 1 a float stands for several integers.
fn is_whole(float: f64) -> bool {
    const WHOLE_MAX: f64 = 9_007_199_254_740_991.0;
    float.fract() == 0.0 && float.abs() <= WHOLE_MAX
}

/// What a division leaves may be the float's own error: `0.3 / 0.1` is three.
/// The error grows with the number, but a half is never one.
pub(super) fn is_nearly_whole(float: f64) -> bool {
    let error_max = (1e-9 * float.abs()).min(0.01);
    is_whole(float.round()) && (float - float.round()).abs() <= error_max
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(format: &str, accepted: &[Value], refused: &[Value]) {
        let format = Format::parse(format).expect("a known format");
        for value in accepted {
            assert_eq!(format.check(value), Ok(()), "{}: {value}", format.name);
        }
        for value in refused {
            assert!(format.check(value).is_err(), "{}: {value}", format.name);
        }
    }

    #[test]
    fn numbers() {
        check("int32", &[json!(0), json!(-2147483648_i64), json!(1.0), json!("x")], &[json!(2147483648_i64)]);
        check("int64", &[json!(i64::MAX), json!(i64::MIN), json!(1e15)], &[json!(u64::MAX), json!(1e300), json!(1e16)]);
        check("float", &[json!(0.1), json!(1e38), json!(i64::MAX)], &[json!(1e39)]);
    }

    #[test]
    fn cel_expressions_must_parse() {
        check("cel-expression", &[json!("cart.total > 10 && 'x' in tags")], &[json!("cart.total >"), json!("")]);
    }

    #[test]
    fn unknown_formats_are_remarks() {
        assert!(Format::parse("password").is_none());
        assert!(Format::parse("my-own").is_none());
    }
}
