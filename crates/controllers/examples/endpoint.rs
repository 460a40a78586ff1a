//! Reconciles the sites of `examples/sites`: an endpoint of a `ReconcileHook`.
//!
//! ```text
//! cargo run -p tidegate-controllers --example endpoint -- 127.0.0.1:8089 s3cret
//! ```

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use axum::{Json, Router};
use chrono::Utc;
use serde_json::{Value, json};
use tidegate_controllers::hooks::{SIGNATURE_HEADER, TIMESTAMP_HEADER, sign};

/// A call that is older was recorded by somebody.
const AGE_MAX_SECONDS: i64 = 300;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address: SocketAddr = arguments.next().as_deref().unwrap_or("127.0.0.1:8089").parse()?;
    let secret: Option<Arc<str>> = arguments.next().map(Into::into);
    let router = Router::new().route("/", post(endpoint)).with_state(secret);
    let listener = tokio::net::TcpListener::bind(address).await?;
    Ok(axum::serve(listener, router).await?)
}

async fn endpoint(
    State(secret): State<Option<Arc<str>>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<Value>, StatusCode> {
    if secret.is_some_and(|secret| !is_genuine(&secret, &headers, &body)) {
        return Err(StatusCode::UNAUTHORIZED);
    }
    let call: Value = serde_json::from_slice(&body).map_err(|_| StatusCode::BAD_REQUEST)?;
    Ok(Json(reconcile(&call["object"])))
}

/// The logic: what the status of this site should say.
fn reconcile(site: &Value) -> Value {
    let (spec, generation) = (&site["spec"], &site["metadata"]["generation"]);
    let host = spec["host"].as_str().unwrap_or_default();
    if host.ends_with(".invalid") {
        let message = format!("nobody can serve {host}: delete the site and add it again under another host");
        return json!({"error": {"message": message, "retryable": false}});
    }
    let ready =
        json!({"type": "Ready", "status": "True", "reason": "Served", "message": "", "observedGeneration": generation});
    json!({
        "status": {"observedGeneration": generation, "readyReplicas": spec["replicas"], "conditions": [ready]},
        "requeueAfter": "10m",
    })
}

fn is_genuine(secret: &str, headers: &HeaderMap, body: &[u8]) -> bool {
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let timestamp = header(TIMESTAMP_HEADER);
    let is_recent = timestamp.parse().is_ok_and(|time: i64| (Utc::now().timestamp() - time).abs() < AGE_MAX_SECONDS);
    let expected = sign(secret.as_bytes(), timestamp, body);
    // In constant time: how long it takes must not tell how much was right.
    let given = header(SIGNATURE_HEADER);
    let same =
        given.len() == expected.len() && given.bytes().zip(expected.bytes()).fold(0, |d, (a, b)| d | (a ^ b)) == 0;
    is_recent && same
}
