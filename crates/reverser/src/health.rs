//! `/healthz`, `/readyz` and `/metrics`.
//!
//! Invariant: ready is who works, because admissions must reach that one
//! alone; who does not work says why.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;

/// Whether this replica works, and if not, what it waits for.
#[derive(Debug)]
pub struct Standing(ArcSwapOption<String>);

impl Default for Standing {
    fn default() -> Self {
        Self(ArcSwapOption::from_pointee("starting".to_owned()))
    }
}

impl Standing {
    pub fn works(&self) {
        self.0.store(None);
    }

    pub fn waits(&self, why: impl Into<String>) {
        self.0.store(Some(Arc::new(why.into())));
    }

    pub fn is_working(&self) -> bool {
        self.0.load().is_none()
    }

    /// `None` while it works.
    pub fn why(&self) -> Option<Arc<String>> {
        self.0.load_full()
    }
}

#[derive(Clone)]
struct Health {
    registry: Arc<Registry>,
    standing: Arc<Standing>,
}

/// Runs until it is dropped.
pub async fn serve_health(listener: TcpListener, registry: Registry, standing: Arc<Standing>) {
    let app = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state(Health { registry: Arc::new(registry), standing });
    if let Err(error) = axum::serve(listener, app).await {
        tracing::error!(%error, "health and metrics are not served");
    }
}

async fn readyz(State(health): State<Health>) -> (StatusCode, String) {
    match health.standing.why() {
        None => (StatusCode::OK, "ok\n".to_owned()),
        Some(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
    }
}

async fn metrics(State(health): State<Health>) -> Result<String, StatusCode> {
    let mut text = String::new();
    let encoded = prometheus_client::encoding::text::encode(&mut text, &health.registry);
    encoded.map(|()| text).map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
}
