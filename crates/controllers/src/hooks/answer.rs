//! What an endpoint's answer means. Pure.
//!
//! Trying again may help: time-outs, 408, 429, 5xx, and answers that make no
//! sense, because the endpoint may be mended without a change of the object.
//! It will not help: any other refusal (4xx), and an answer that wants to
//! write more than status.

use std::time::Duration;

use serde_json::{Map, Value};

use super::spec::duration;

/// A status has 1 MiB at most; more is not read.
pub const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Nobody is asked again sooner than this, nor later than that.
const REQUEUE_MIN: Duration = Duration::from_secs(1);
const REQUEUE_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Of an endpoint's own words, in a condition.
const SHOWN_CHARS_MAX: usize = 500;

#[derive(Clone, PartialEq, Debug, Default)]
pub struct Answer {
    /// A merge patch of the status.
    pub status: Option<Value>,
    pub requeue_after: Option<Duration>,
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HookError {
    /// Not a matter of this object.
    #[error("{0}")]
    Unreachable(String),
    /// More belongs to the object than may be sent: nobody was called.
    #[error("{0}")]
    TooMuch(String),
    #[error("{0}")]
    Retryable(String),
    #[error("{0}")]
    Terminal(String),
}

/// Judges an answer by its HTTP status and body.
pub fn judge(code: u16, body: &[u8]) -> Result<Answer, HookError> {
    match code {
        200..=299 => read(body),
        408 | 429 | 500..=599 => Err(HookError::Retryable(refusal(code, body))),
        300..=399 => Err(HookError::Terminal(format!(
            "the endpoint answered {code}: redirects are not followed; set spec.endpoint.url to where it leads"
        ))),
        _ => Err(HookError::Terminal(refusal(code, body))),
    }
}

fn read(body: &[u8]) -> Result<Answer, HookError> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(Answer::default());
    }
    let nonsense = |what: String| HookError::Retryable(format!("the endpoint's answer makes no sense: {what}"));
    let fields = match serde_json::from_slice(body) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) => return Err(nonsense("expected a JSON object".into())),
        Err(error) => return Err(nonsense(format!("it is not JSON ({error})"))),
    };
    for field in fields.keys() {
        match field.as_str() {
            "status" | "requeueAfter" | "error" => {}
            "spec" | "metadata" | "object" | "apiVersion" | "kind" => {
                let remedy = "an endpoint writes status alone, the rest comes from Git; answer {\"status\": …}";
                return Err(HookError::Terminal(format!("the endpoint tried to write `{field}`: {remedy}")));
            }
            other => {
                let other = shown(other);
                return Err(nonsense(format!("unknown field `{other}`; known are status, requeueAfter and error")));
            }
        }
    }
    if let Some(error) = fields.get("error").filter(|error| !error.is_null()) {
        return Err(own_error(error));
    }
    let status = match fields.get("status") {
        None | Some(Value::Null) => None,
        Some(Value::Object(status)) => Some(Value::Object(status.clone())),
        Some(_) => return Err(nonsense("`status` is not an object".into())),
    };
    Ok(Answer { status, requeue_after: requeue(&fields).map_err(nonsense)? })
}

fn requeue(fields: &Map<String, Value>) -> Result<Option<Duration>, String> {
    match fields.get("requeueAfter") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if let Some(after) = duration(text) => {
            Ok(Some(after.clamp(REQUEUE_MIN, REQUEUE_MAX)))
        }
        Some(other) => Err(format!("`requeueAfter` is {}; expected a time such as \"30s\"", shown(&other.to_string()))),
    }
}

/// `{"message": "…", "retryable": false}`; without `retryable` it is.
fn own_error(error: &Value) -> HookError {
    let message = error.get("message").and_then(Value::as_str).or(error.as_str()).unwrap_or("without a message");
    let message = format!("the endpoint reports: {}", shown(message));
    match error.get("retryable").and_then(Value::as_bool) {
        Some(false) => HookError::Terminal(message),
        _ => HookError::Retryable(message),
    }
}

fn refusal(code: u16, body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    match shown(text.trim()).as_str() {
        "" => format!("the endpoint answered {code}"),
        text => format!("the endpoint answered {code}: {text}"),
    }
}

fn shown(text: &str) -> String {
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    let mut shown: String = text.chars().take(SHOWN_CHARS_MAX).map(clean).collect();
    if text.chars().nth(SHOWN_CHARS_MAX).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(code: u16, body: &str, expected: Result<(Value, u64), (&str, &str)>) {
        let shown = match judge(code, body.as_bytes()) {
            Ok(answer) => {
                Ok((answer.status.unwrap_or_default(), answer.requeue_after.map_or(0, |after| after.as_secs())))
            }
            Err(HookError::Retryable(message)) => Err(("again", message)),
            Err(HookError::Terminal(message)) => Err(("never", message)),
            Err(HookError::Unreachable(message) | HookError::TooMuch(message)) => Err(("away", message)),
        };
        assert_eq!(shown, expected.map_err(|(what, message)| (what, message.to_owned())), "{code} {body}");
    }

    #[test]
    fn good_answers() {
        check(200, r#"{"status": {"a": 1}, "requeueAfter": "30s"}"#, Ok((json!({"a": 1}), 30)));
        check(200, r#"{"status": {}, "error": null}"#, Ok((json!({}), 0)));
        check(204, "", Ok((Value::Null, 0)));
        check(200, r#"{"requeueAfter": "0s"}"#, Ok((Value::Null, 1)));
        check(200, r#"{"requeueAfter": "9999h"}"#, Ok((Value::Null, 86_400)));
    }

    #[test]
    fn an_endpoint_writes_status_alone() {
        let remedy = "an endpoint writes status alone, the rest comes from Git; answer {\"status\": …}";
        for field in ["spec", "metadata"] {
            let body = json!({"status": {}, field: {}}).to_string();
            check(200, &body, Err(("never", &format!("the endpoint tried to write `{field}`: {remedy}"))));
        }
    }

    #[test]
    fn its_own_errors() {
        check(200, r#"{"error": {"message": "no"}}"#, Err(("again", "the endpoint reports: no")));
        check(200, r#"{"error": {"message": "no", "retryable": false}}"#, Err(("never", "the endpoint reports: no")));
        check(200, r#"{"error": "no"}"#, Err(("again", "the endpoint reports: no")));
    }

    #[test]
    fn nonsense_may_be_mended() {
        let says = |what: &str| format!("the endpoint's answer makes no sense: {what}");
        check(200, "[]", Err(("again", &says("expected a JSON object"))));
        check(
            200,
            r#"{"state": {}}"#,
            Err(("again", &says("unknown field `state`; known are status, requeueAfter and error"))),
        );
        let long = "x".repeat(ANSWER_BYTES_MAX / 2);
        let read = judge(200, json!({ long: 1 }).to_string().as_bytes());
        assert!(matches!(read, Err(HookError::Retryable(message)) if message.len() < 1_000));
        check(200, r#"{"status": 1}"#, Err(("again", &says("`status` is not an object"))));
        check(
            200,
            r#"{"requeueAfter": 5}"#,
            Err(("again", &says("`requeueAfter` is 5; expected a time such as \"30s\""))),
        );
        assert!(matches!(judge(200, b"<html>"), Err(HookError::Retryable(message)) if message.contains("not JSON")));
    }

    #[test]
    fn codes() {
        check(500, "oops\n", Err(("again", "the endpoint answered 500: oops")));
        check(429, "", Err(("again", "the endpoint answered 429")));
        check(408, "", Err(("again", "the endpoint answered 408")));
        check(400, "bad", Err(("never", "the endpoint answered 400: bad")));
        check(404, "", Err(("never", "the endpoint answered 404")));
        assert!(matches!(judge(302, b""), Err(HookError::Terminal(_))));
        let long = "x".repeat(600);
        assert!(matches!(judge(500, long.as_bytes()), Err(HookError::Retryable(message)) if message.ends_with("x…")));
    }
}
