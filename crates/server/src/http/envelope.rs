//! What every answer has: an id, a place in the metrics and in the log,
//! careful headers, and the one error shape.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::body::{Body, to_bytes};
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use futures_util::FutureExt as _;
use tracing::Instrument as _;

use super::body;
use super::error::{ErrorBody, HttpError};
use super::health::AnswerIsFinal;
use super::limits::Limits;
use super::request_id::{REQUEST_ID_HEADER, RequestId};
use crate::metrics::Metrics;

/// Of a path in a span; longer ones are somebody's experiment.
const LOGGED_PATH_BYTES_MAX: usize = 256;
/// Of an extractor's plain text, which becomes an error's message.
const PLAIN_ERROR_BYTES_MAX: usize = 1024;
/// The route of what matches none: one series, whatever clients try.
const ROUTE_UNKNOWN: &str = "unknown";

pub(super) struct Envelope {
    pub limits: Limits,
    pub metrics: Arc<Metrics>,
}

pub(super) async fn envelope(State(envelope): State<Arc<Envelope>>, mut request: Request, next: Next) -> Response {
    let (started, id) = (Instant::now(), RequestId::of(request.headers()));
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or(ROUTE_UNKNOWN, MatchedPath::as_str);
    // The path alone: a query may carry what no log should.
    let path: String = request.uri().path().chars().take(LOGGED_PATH_BYTES_MAX).collect();
    let span = tracing::info_span!("request", request_id = %id, method = %request.method(), path);
    request.extensions_mut().insert(id.clone());

    let answer = async {
        let response = id.scope(run(request, next, &envelope.limits)).await;
        let response = finish(response, &id, &envelope.metrics).await;
        let (status, took) = (response.status().as_u16(), started.elapsed());
        envelope.metrics.http_request(route, status, took);
        tracing::debug!(status, took_ms = took.as_secs_f64() * 1e3, "answered");
        response
    };
    answer.instrument(span).await
}

/// A handler that panics costs its request, not the connection.
async fn run(request: Request, next: Next, limits: &Limits) -> Response {
    let request = match body::guard(request, limits) {
        Ok(request) => request,
        Err(error) => return error.into_response(),
    };
    AssertUnwindSafe(next.run(request)).catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!("a handler panicked: this is a bug, please report it with the lines before");
        let message = "the server failed: report it with the requestId";
        HttpError::new(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL", message).into_response()
    })
}

async fn finish(response: Response, id: &RequestId, metrics: &Metrics) -> Response {
    let mut response = shape_error(response, id, metrics).await;
    let headers = response.headers_mut();
    headers.insert(REQUEST_ID_HEADER, id.header_value());
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (header::CONTENT_SECURITY_POLICY, content_policy(headers)),
    ] {
        set_default(headers, name, value);
    }
    response
}

fn set_default(headers: &mut HeaderMap, name: HeaderName, value: &'static str) {
    headers.entry(name).or_insert(HeaderValue::from_static(value));
}

/// A page that needs scripts sets its own; data needs nothing.
fn content_policy(headers: &HeaderMap) -> &'static str {
    if media_type(headers).starts_with("text/html") {
        "frame-ancestors 'none'"
    } else {
        "default-src 'none'; frame-ancestors 'none'"
    }
}

fn media_type(headers: &HeaderMap) -> &str {
    headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Errors of ours get the request's id; those of extractors and of the router
/// get the shape too. A body that is JSON already is somebody's answer.
async fn shape_error(response: Response, id: &RequestId, metrics: &Metrics) -> Response {
    let status = response.status();
    let is_error = status.is_client_error() || status.is_server_error();
    if [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&status) {
        metrics.auth_refused(code_of(status));
    }
    if !is_error || response.extensions().get::<AnswerIsFinal>().is_some() {
        return response;
    }
    if let Some(error) = response.extensions().get::<HttpError>().cloned() {
        return with_body(response, error.body().request_id(id.as_str()));
    }
    if media_type(response.headers()).contains("json") {
        return response;
    }
    let (parts, body) = response.into_parts();
    let text = to_bytes(body, PLAIN_ERROR_BYTES_MAX).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let message = if text.trim().is_empty() { status.canonical_reason().unwrap_or("refused") } else { text.trim() };
    let error = ErrorBody::new(code_of(status), message).request_id(id.as_str());
    with_body(Response::from_parts(parts, Body::empty()), error)
}

fn with_body(response: Response, body: ErrorBody<'_>) -> Response {
    let (mut parts, _) = response.into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.remove(header::CONTENT_TYPE);
    (parts, Json(body)).into_response()
}

fn code_of(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED => "UNAUTHENTICATED",
        StatusCode::FORBIDDEN => "FORBIDDEN",
        StatusCode::NOT_FOUND => "NOT_FOUND",
        StatusCode::PAYLOAD_TOO_LARGE => "TOO_LARGE",
        StatusCode::TOO_MANY_REQUESTS => "RATE_LIMITED",
        StatusCode::SERVICE_UNAVAILABLE => "UNAVAILABLE",
        status if status.is_client_error() => "BAD_REQUEST",
        _ => "INTERNAL",
    }
}
