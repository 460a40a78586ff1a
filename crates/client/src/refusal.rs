//! What the server answers when it does not do what was asked.

use std::fmt;

use serde::Deserialize;
use serde_json::{Map, Value};

/// One GraphQL error.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct Refusal {
    pub message: String,
    #[serde(default)]
    extensions: Map<String, Value>,
}

/// The codes that this client acts on; others are only shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Code {
    Unauthenticated,
    Forbidden,
    KindNotFound,
    ListExpired,
    /// The cursor does not lead anywhere any more: too old, or of another
    /// epoch.
    CursorLost,
    /// The same request may succeed later.
    Later,
    /// It can never succeed as it was written.
    Malformed,
    Other,
}

impl Refusal {
    pub fn new(message: impl Into<String>, code: &str) -> Self {
        Self { message: message.into(), extensions: Map::from_iter([("code".into(), code.into())]) }
    }

    pub fn code(&self) -> Code {
        match self.code_text() {
            "UNAUTHENTICATED" => Code::Unauthenticated,
            "FORBIDDEN" => Code::Forbidden,
            "KIND_NOT_FOUND" => Code::KindNotFound,
            "LIST_EXPIRED" => Code::ListExpired,
            "WATCH_EXPIRED" | "FUTURE_RESOURCE_VERSION" => Code::CursorLost,
            "RATE_LIMITED" | "UNAVAILABLE" | "INTERNAL" => Code::Later,
            "BAD_REQUEST" | "INVALID_RESOURCE_VERSION" => Code::Malformed,
            _ => Code::Other,
        }
    }

    pub fn code_text(&self) -> &str {
        self.extensions.get("code").and_then(Value::as_str).unwrap_or_default()
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code_text() {
            "" => write!(f, "{}", self.message),
            code => write!(f, "{} ({code})", self.message),
        }
    }
}

impl std::error::Error for Refusal {}
