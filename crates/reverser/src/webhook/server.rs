//! The HTTPS listener of the webhook.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use serde_json::{Value, json};
use tidegate_tls::{CertificateError, Certificates};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::prove::question;
use crate::attribution::read_review;
use crate::engine::Shared;
use crate::health::Standing;

pub const PATH: &str = "/process-validating-webhook";
/// The new and the old object, each of the size that etcd allows, and as much again.
const BODY_BYTES_MAX: usize = 8 << 20;
/// The API server keeps a few connections open for each of its replicas.
const CONNECTIONS_MAX: usize = 256;
/// As ALPN names them, the best first.
const PROTOCOLS: [&str; 2] = ["h2", "http/1.1"];
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);

#[derive(Clone)]
pub struct WebhookState {
    pub shared: Arc<Shared>,
    /// Part of the addresses of those who have none.
    pub cluster: Arc<str>,
    /// Whether this replica works; another one's admissions are of no use here.
    pub standing: Arc<Standing>,
}

/// Runs until it is dropped.
pub async fn serve(
    listener: TcpListener,
    certificates: Arc<Certificates>,
    state: WebhookState,
) -> Result<(), CertificateError> {
    let acceptor = certificates.acceptor(&PROTOCOLS)?;
    let app = router(state);
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok(permit) = room.clone().acquire_owned().await else { return Ok(()) };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a connection of the webhook failed");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let (acceptor, app) = (acceptor.clone(), app.clone());
        connections.spawn(async move {
            connection(stream, &acceptor, app).await;
            drop(permit);
        });
    }
}

async fn connection(stream: TcpStream, acceptor: &tokio_rustls::TlsAcceptor, app: Router) {
    let _ = stream.set_nodelay(true);
    let stream = match timeout(HANDSHAKE_TIME_MAX, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "a TLS handshake of the webhook failed"),
        Err(_) => return,
    };
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HANDSHAKE_TIME_MAX);
    let served = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(app)).await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection of the webhook ended");
    }
}

fn router(state: WebhookState) -> Router {
    Router::new().route(PATH, post(review)).layer(DefaultBodyLimit::disable()).with_state(state)
}

async fn review(State(state): State<WebhookState>, body: axum::body::Body) -> Response {
    // What is too large to read is allowed, too.
    let bytes = axum::body::to_bytes(body, BODY_BYTES_MAX).await.unwrap_or_else(|_| Bytes::new());
    (StatusCode::OK, axum::Json(answer(&state, &bytes))).into_response()
}

fn answer(state: &WebhookState, body: &[u8]) -> Value {
    let review: Value = serde_json::from_slice(body).unwrap_or_default();
    let uid = review["request"]["uid"].as_str().unwrap_or_default().to_owned();
    if let Some(question) = question(&review["request"]) {
        state.shared.proof.hear(question);
    }
    if state.standing.is_working()
        && is_claimed(&state.shared, &review["request"])
        && let Some(attempt) = read_review(&review, &state.cluster).attempt
    {
        state.shared.metrics.admissions.inc();
        state.shared.admit(attempt);
    }
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {"uid": uid, "allowed": true}})
}

fn is_claimed(shared: &Shared, request: &Value) -> bool {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (group, resource) = (text(&request["resource"]["group"]), text(&request["resource"]["resource"]));
    let namespace = Some(text(&request["namespace"])).filter(|namespace| !namespace.is_empty());
    shared.desired.load().routes.claims(&group, &resource, namespace.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_allowed() {
        let state = WebhookState { shared: Arc::default(), cluster: "c".into(), standing: Arc::default() };
        state.standing.works();
        for body in ["", "{", "[]", "{\"request\": 7}", "\u{0}", "{\"request\": {\"uid\": \"u\"}}"] {
            let answer = answer(&state, body.as_bytes());
            assert_eq!(answer["response"]["allowed"], true, "{body}");
        }
        assert_eq!(answer(&state, br#"{"request": {"uid": "u"}}"#)["response"]["uid"], "u");
    }
}
