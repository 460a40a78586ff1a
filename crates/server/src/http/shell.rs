//! The routes and layers around the API.
//!
//! Invariant: nothing is anonymous but `/healthz`, `/livez` and `/readyz`. Whatever the
//! inner router serves authenticates its own callers, with [`authenticate`].

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::get;

use super::envelope::{Envelope, envelope};
use super::error::HttpError;
use super::health::Checks;
use super::limits::Limits;
use super::shutdown::Shutdown;
use crate::identity::{Identities, Session, bearer_token};
use crate::metrics::Metrics;

const METRICS_PATH: &str = "/metrics";
const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What the routes around the API need.
#[derive(Clone)]
pub struct Shell {
    pub identities: Arc<Identities>,
    pub metrics: Arc<Metrics>,
    pub checks: Arc<Checks>,
    pub shutdown: Shutdown,
    pub limits: Limits,
}

impl Shell {
    /// `router` with health, metrics, and what every answer has.
    pub fn wrap(self, router: Router) -> Router {
        let shutdown = self.shutdown.clone();
        self.checks.register("shutdown", move || {
            if shutdown.is_leaving() { Err("the server is shutting down".into()) } else { Ok(()) }
        });
        let (limits, counted, health) = (self.limits, self.metrics.clone(), health(self.checks.clone()));
        let around =
            Router::new().route("/", get(root)).route(METRICS_PATH, get(metrics)).with_state(self).merge(health);
        enveloped(router.merge(around).fallback(not_found), limits, counted)
    }

    /// `router` with what every answer has, under limits of its own.
    pub fn envelope(&self, router: Router, limits: Limits) -> Router {
        enveloped(router, limits, self.metrics.clone())
    }
}

/// Health and metrics of a process that has nothing else to serve. They are
/// anonymous: they hold the names of controllers, and nothing of an object.
pub fn observed(checks: Arc<Checks>, metrics: Arc<Metrics>, limits: Limits) -> Router {
    let shown = metrics.clone();
    let router = health(checks).route(METRICS_PATH, get(async move || encoded(&shown)));
    enveloped(router.fallback(nothing_else), limits, metrics)
}

fn health(checks: Arc<Checks>) -> Router {
    let alive = get(async || "ok\n");
    let ready = get(async |State(checks): State<Arc<Checks>>, headers: HeaderMap| checks.answer(&headers));
    Router::new().route("/healthz", alive.clone()).route("/livez", alive).route("/readyz", ready).with_state(checks)
}

fn enveloped(router: Router, limits: Limits, metrics: Arc<Metrics>) -> Router {
    router
        .method_not_allowed_fallback(method_not_allowed)
        // Ours has the limit of the configuration, and a clearer error.
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn_with_state(Arc::new(Envelope { limits, metrics }), envelope))
}

/// Whose request it is.
pub fn authenticate(identities: &Identities, headers: &HeaderMap) -> Result<Session, HttpError> {
    // A header that is not text is there, and is no bearer token.
    let header = headers.get(header::AUTHORIZATION).map(|value| value.to_str().unwrap_or_default());
    Ok(identities.authenticate(bearer_token(header)?)?)
}

async fn metrics(State(shell): State<Shell>, headers: HeaderMap) -> Result<Response, HttpError> {
    let session = authenticate(&shell.identities, &headers)?;
    shell.identities.authorize_url(&session, "get", METRICS_PATH)?;
    encoded(&shell.metrics)
}

fn encoded(metrics: &Metrics) -> Result<Response, HttpError> {
    let failed = |_| HttpError::new(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL", "the metrics cannot be written");
    let text = metrics.encode().map_err(failed)?;
    Ok(([(header::CONTENT_TYPE, METRICS_TYPE)], text).into_response())
}

/// A person with a browser wants the page; a program reads where things are.
async fn root(uri: Uri, headers: HeaderMap) -> Response {
    let accepts = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    if accepts.is_some_and(|accepts| accepts.contains("text/html")) {
        return Redirect::temporary("/graphql").into_response();
    }
    not_found(uri).await.into_response()
}

async fn nothing_else(uri: Uri) -> HttpError {
    let path: String = uri.path().chars().take(100).collect();
    let message = format!("there is nothing at {path}: this process has /livez, /readyz and /metrics");
    HttpError::new(StatusCode::NOT_FOUND, "NOT_FOUND", message)
}

async fn not_found(uri: Uri) -> HttpError {
    let path: String = uri.path().chars().take(100).collect();
    let message = format!(
        "there is nothing at {path}: the API is at /graphql, repositories at /git/<namespace>/<name>.git, the rest at /livez, /readyz, /metrics"
    );
    HttpError::new(StatusCode::NOT_FOUND, "NOT_FOUND", message)
}

async fn method_not_allowed(method: Method, uri: Uri) -> HttpError {
    let hint = if uri.path() == "/graphql" { "send a POST" } else { "send a GET" };
    HttpError::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "BAD_REQUEST",
        format!("{} does not take {method}: {hint}", uri.path()),
    )
}
