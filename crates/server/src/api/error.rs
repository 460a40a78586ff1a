//! The one place where a failure becomes a code that clients rely on.
//!
//! `message` is for the client; what only the operator may see stays in
//! `internal` and goes to the log.

use serde_json::{Map, Value, json};
use tidegate_model::kinds::{KindSet, unknown_kind};
use tidegate_model::{FieldError, GroupVersionKind, InvalidVersion, ResourceVersion};
use tidegate_store::{CommitError, ListError, StoreError, WatchError};

/// Stable, documented in `docs/errors.md`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Code {
    Unauthenticated,
    Forbidden,
    NotFound,
    KindNotFound,
    BadRequest,
    Invalid,
    Conflict,
    PreconditionRequired,
    LeaseLost,
    SpecIsGitOwned,
    WatchExpired,
    ListExpired,
    InvalidResourceVersion,
    FutureResourceVersion,
    TooLarge,
    RateLimited,
    Unavailable,
    Internal,
}

impl Code {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unauthenticated => "UNAUTHENTICATED",
            Self::Forbidden => "FORBIDDEN",
            Self::NotFound => "NOT_FOUND",
            Self::KindNotFound => "KIND_NOT_FOUND",
            Self::BadRequest => "BAD_REQUEST",
            Self::Invalid => "INVALID",
            Self::Conflict => "CONFLICT",
            Self::PreconditionRequired => "PRECONDITION_REQUIRED",
            Self::LeaseLost => "LEASE_LOST",
            Self::SpecIsGitOwned => "SPEC_IS_GIT_OWNED",
            Self::WatchExpired => "WATCH_EXPIRED",
            Self::ListExpired => "LIST_EXPIRED",
            Self::InvalidResourceVersion => "INVALID_RESOURCE_VERSION",
            Self::FutureResourceVersion => "FUTURE_RESOURCE_VERSION",
            Self::TooLarge => "TOO_LARGE",
            Self::RateLimited => "RATE_LIMITED",
            Self::Unavailable => "UNAVAILABLE",
            Self::Internal => "INTERNAL",
        }
    }

    /// May the same request succeed later, unchanged or with a fresh version?
    pub fn retryable(self) -> bool {
        matches!(self, Self::Conflict | Self::RateLimited | Self::Unavailable)
    }
}

#[derive(Clone, Debug, thiserror::Error)]
#[error("{}: {message}", code.as_str())]
pub struct ApiError {
    pub code: Code,
    pub message: String,
    /// Further `extensions` fields, by the code.
    pub details: Map<String, Value>,
    pub internal: Option<String>,
}

impl ApiError {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: Map::new(), internal: None }
    }

    #[must_use]
    pub fn with(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.details.insert(field.into(), value.into());
        self
    }

    #[must_use]
    pub fn because(mut self, internal: impl Into<String>) -> Self {
        self.internal = Some(internal.into());
        self
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(Code::BadRequest, message)
    }

    pub fn kind_not_found(kinds: &KindSet, api_version: &str, kind: &str) -> Self {
        let define = "push its CustomResourceDefinition first, or check the spelling";
        Self::new(Code::KindNotFound, unknown_kind(kinds, &GroupVersionKind::new(api_version, kind), define))
    }

    pub fn invalid(what: &str, errors: &[FieldError]) -> Self {
        let listed = errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        let causes: Vec<Value> = errors
            .iter()
            .map(|error| json!({"field": error.path, "reason": error.reason.as_str(), "message": error.message}))
            .collect();
        Self::new(Code::Invalid, format!("{what} is invalid: {listed}")).with("causes", causes)
    }

    pub fn conflict(expected: ResourceVersion, current: ResourceVersion, generation: i64) -> Self {
        let message =
            "the object has changed since you read it: read it again, apply your change to what you find, and retry";
        Self::new(Code::Conflict, message)
            .with("expectedResourceVersion", expected.to_string())
            .with("currentResourceVersion", current.to_string())
            .with("currentGeneration", generation)
    }

    /// The `extensions` of the GraphQL error.
    pub fn extensions(&self) -> Map<String, Value> {
        let mut fields = self.details.clone();
        fields.insert("code".into(), self.code.as_str().into());
        fields.insert("retryable".into(), self.code.retryable().into());
        fields
    }
}

impl From<InvalidVersion> for ApiError {
    fn from(error: InvalidVersion) -> Self {
        Self::new(Code::InvalidResourceVersion, error.to_string())
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let message = "the store could not be read: try again; if it persists, the server's log has the reason";
        Self::new(Code::Unavailable, message).because(chain(&error))
    }
}

impl From<WatchError> for ApiError {
    fn from(error: WatchError) -> Self {
        match error {
            WatchError::Expired { oldest, current } => Self::new(
                Code::WatchExpired,
                "that resourceVersion has left the replay window: list again, then watch from the list's resourceVersion",
            )
            .with("oldestResourceVersion", oldest.to_string())
            .with("currentResourceVersion", current.to_string()),
            WatchError::Future { current } => Self::new(
                Code::FutureResourceVersion,
                "that resourceVersion has not been reached here: it comes from another store, or this one was restored from a backup; list again",
            )
            .with("currentResourceVersion", current.to_string()),
            WatchError::TooMany { limit } => Self::new(Code::RateLimited, "the server has as many watches open as it takes: try again later").with("limit", limit),
            WatchError::Closed => Self::new(Code::Unavailable, "the server is shutting down: reconnect and resume from your last resourceVersion"),
            WatchError::Storage(error) => error.into(),
        }
    }
}

impl From<ListError> for ApiError {
    fn from(error: ListError) -> Self {
        match error {
            ListError::Expired => Self::new(
                Code::ListExpired,
                "the snapshot behind this `after` cursor is gone: list again from the start",
            ),
            ListError::InvalidToken => {
                Self::bad_request("`after` is not a cursor of this list: pass `pageInfo.endCursor` of the page before")
            }
            ListError::Storage(error) => error.into(),
        }
    }
}

impl From<CommitError> for ApiError {
    fn from(error: CommitError) -> Self {
        let details = chain(&error);
        match error {
            CommitError::Conflict { .. } => {
                Self::new(Code::Conflict, "the object has changed meanwhile: read it again and retry").because(details)
            }
            CommitError::TooLarge { .. } => Self::new(Code::TooLarge, error.to_string()),
            _ => {
                Self::new(Code::Unavailable, "the store does not take writes at present: see `/readyz` for the reason")
                    .because(details)
            }
        }
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        source = inner.source();
    }
    text
}
