//! The one shape of an error: that of GraphQL, so that a client needs one
//! parser for `/graphql` and for everything around it.

use std::borrow::Cow;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::health::AnswerIsFinal;
use crate::identity::AuthError;

/// To whoever comes during a drain.
pub const STOPPING: &str = "the server is shutting down: try again in a moment";

/// An answer that is not a success, for the client.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct HttpError {
    pub status: StatusCode,
    /// One of the API's stable codes.
    pub code: &'static str,
    /// What is wrong and what to do.
    pub message: Cow<'static, str>,
}

impl HttpError {
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self { status, code, message: message.into() }
    }

    pub fn unavailable(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE", message)
    }

    pub fn too_large(bytes_max: usize) -> Self {
        let message = format!("the request's body is larger than the limit of {bytes_max} bytes: send less at once");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "TOO_LARGE", message)
    }

    /// For a client that shows text to its user and cannot read ours.
    pub fn into_plain_response(self) -> Response {
        let mut response = (self.status, format!("{}\n", self.message)).into_response();
        response.extensions_mut().insert(AnswerIsFinal);
        ask_again(&mut response);
        response
    }

    pub fn body(&self) -> ErrorBody<'_> {
        ErrorBody::new(self.code, &self.message)
    }
}

impl From<AuthError> for HttpError {
    fn from(error: AuthError) -> Self {
        let status = match error {
            AuthError::Forbidden { .. } => StatusCode::FORBIDDEN,
            _ => StatusCode::UNAUTHORIZED,
        };
        Self::new(status, error.code(), error.to_string())
    }
}

/// The error travels in the response's extensions too: the envelope renders it
/// again with the request's id.
impl IntoResponse for HttpError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body())).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        ask_again(&mut response);
        response.extensions_mut().insert(self);
        response
    }
}

/// If it passes.
fn ask_again(response: &mut Response) {
    if response.status() == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
}

/// `{"errors": [{"message": …, "extensions": {"code": …, "requestId": …}}]}`.
#[derive(Serialize, Debug)]
pub struct ErrorBody<'a> {
    errors: [ErrorEntry<'a>; 1],
}

#[derive(Serialize, Debug)]
struct ErrorEntry<'a> {
    message: &'a str,
    extensions: ErrorExtensions<'a>,
}

#[derive(Serialize, Debug)]
#[serde(rename_all = "camelCase")]
struct ErrorExtensions<'a> {
    code: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
}

impl<'a> ErrorBody<'a> {
    pub fn new(code: &'a str, message: &'a str) -> Self {
        Self { errors: [ErrorEntry { message, extensions: ErrorExtensions { code, request_id: None } }] }
    }

    #[must_use]
    pub fn request_id(mut self, id: &'a str) -> Self {
        self.errors[0].extensions.request_id = Some(id);
        self
    }
}
