//! A GraphQL response, being written.

use async_graphql::{Pos, ServerError};
use serde_json::{Map, Value, json};

use super::encode::write_text;
use crate::api::error::{ApiError, Code};
use crate::http::RequestId;

/// The bytes of `{"data":…,"errors":…}` and what metrics say of it.
pub struct Reply {
    pub body: Vec<u8>,
    /// The first error's code, `OK` without one.
    pub code: &'static str,
    /// Refused requests have no data at all.
    pub executed: bool,
}

#[derive(Default)]
pub struct ReplyBuilder {
    data: Vec<u8>,
    errors: Vec<Value>,
    code: Option<&'static str>,
    data_is_null: bool,
}

impl ReplyBuilder {
    /// The bytes so far.
    pub fn len(&self) -> usize {
        self.data.len()
    }

    pub fn field(&mut self, key: &str, value: &[u8]) {
        self.data.push(if self.data.is_empty() { b'{' } else { b',' });
        write_text(key, &mut self.data);
        self.data.push(b':');
        self.data.extend_from_slice(value);
    }

    /// A failed field is null; one that cannot be makes the data null.
    pub fn failed_field(&mut self, key: &str, nullable: bool, at: Pos, error: &ApiError) {
        self.error(error_json(error, Some(at), Some(key)), error.code);
        if nullable {
            self.field(key, b"null");
        } else {
            self.data_is_null = true;
        }
    }

    fn error(&mut self, error: Value, code: Code) {
        self.code.get_or_insert(code.as_str());
        self.errors.push(error);
    }

    pub fn finish(mut self) -> Reply {
        if self.data.is_empty() {
            self.data.push(b'{');
        }
        self.data.push(b'}');
        let mut body = Vec::with_capacity(self.data.len() + 16);
        body.extend_from_slice(br#"{"data":"#);
        body.extend_from_slice(if self.data_is_null { b"null" } else { &self.data });
        if !self.errors.is_empty() {
            body.extend_from_slice(br#","errors":"#);
            serde_json::to_writer(&mut body, &self.errors).expect("writing to memory does not fail");
        }
        body.push(b'}');
        Reply { body, code: self.code.unwrap_or("OK"), executed: true }
    }
}

/// A refused request is told its first problems, not thousands of them.
const ERRORS_MAX: usize = 20;

/// A request that was not executed.
pub fn refused(mut errors: Vec<Value>, code: Code) -> Reply {
    errors.truncate(ERRORS_MAX);
    Reply { body: json!({"errors": errors}).to_string().into_bytes(), code: code.as_str(), executed: false }
}

pub fn refused_with(error: &ApiError) -> Reply {
    refused(vec![error_json(error, None, None)], error.code)
}

pub fn error_json(error: &ApiError, at: Option<Pos>, key: Option<&str>) -> Value {
    if let Some(internal) = &error.internal {
        tracing::error!(code = error.code.as_str(), reason = internal, "{}", error.message);
    }
    let mut fields = Map::new();
    fields.insert("message".into(), error.message.as_str().into());
    if let Some(at) = at {
        fields.insert("locations".into(), json!([{"line": at.line, "column": at.column}]));
    }
    if let Some(key) = key {
        fields.insert("path".into(), json!([key]));
    }
    fields.insert("extensions".into(), with_request_id(error.extensions()));
    Value::Object(fields)
}

/// A subscription has none: its own id names it.
fn with_request_id(mut extensions: Map<String, Value>) -> Value {
    if let Some(id) = RequestId::current() {
        extensions.insert("requestId".into(), id.as_str().into());
    }
    Value::Object(extensions)
}

/// An error of parsing or validation, with a code of ours.
pub fn validation_error(error: &ServerError) -> (Value, Code) {
    let is_limit = ["nested too deep", "too complex", "recursion depth", "number of directives"]
        .iter()
        .any(|text| error.message.contains(text));
    let code = if is_limit { Code::TooLarge } else { Code::BadRequest };
    let locations: Vec<Value> =
        error.locations.iter().map(|at| json!({"line": at.line, "column": at.column})).collect();
    let extensions = [("code".to_owned(), code.as_str().into()), ("retryable".to_owned(), false.into())];
    let extensions = with_request_id(extensions.into_iter().collect());
    (json!({"message": error.message, "locations": locations, "extensions": extensions}), code)
}
