//! What we count: Prometheus names with units, and labels from closed sets.
//!
//! Invariant: no label holds what a client chose, so the number of series is
//! bounded: routes × status codes, operations × error codes.

mod controllers;
mod store;

use std::fmt;
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// From a cached read to a request that waits for a slow disk.
const LATENCY_BUCKETS_S: [f64; 12] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];

/// From a host in the same room to one that uses up its whole time.
const FETCH_BUCKETS_S: [f64; 10] = [0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0, 300.0, 600.0];

pub struct Metrics {
    registry: RwLock<Registry>,
    http_connections: Gauge,
    http_connections_refused: Counter,
    http_requests: Family<HttpLabels, Counter>,
    http_latency: Family<RouteLabel, Histogram>,
    auth_refusals: Family<CodeLabel, Counter>,
    graphql_requests: Family<GraphqlLabels, Counter>,
    graphql_latency: Family<OperationLabel, Histogram>,
    websockets: Gauge,
    watches: Gauge,
    watches_ended: Family<CodeLabel, Counter>,
    git_pushes: Family<OutcomeLabel, Counter>,
    git_push_duration: Family<StepLabel, Histogram>,
    git_received: Counter,
    git_projected: Family<EffectLabel, Counter>,
    git_fetches: Family<OutcomeLabel, Counter>,
    git_fetch_duration: Histogram,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct HttpLabels {
    route: String,
    status: u16,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct RouteLabel {
    route: String,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct CodeLabel {
    code: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct StepLabel {
    step: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct EffectLabel {
    effect: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct GraphqlLabels {
    operation: &'static str,
    code: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct OperationLabel {
    operation: &'static str,
}

impl Default for Metrics {
    fn default() -> Self {
        let metrics = Self {
            registry: RwLock::default(),
            http_connections: Gauge::default(),
            http_connections_refused: Counter::default(),
            http_requests: Family::default(),
            http_latency: Family::new_with_constructor(latency),
            auth_refusals: Family::default(),
            graphql_requests: Family::default(),
            graphql_latency: Family::new_with_constructor(latency),
            websockets: Gauge::default(),
            watches: Gauge::default(),
            watches_ended: Family::default(),
            git_pushes: Family::default(),
            git_push_duration: Family::new_with_constructor(latency),
            git_received: Counter::default(),
            git_projected: Family::default(),
            git_fetches: Family::default(),
            git_fetch_duration: Histogram::new(FETCH_BUCKETS_S),
        };
        let mut registry = Registry::with_prefix("tidegate");
        metrics.register_http(&mut registry);
        metrics.register_graphql(&mut registry);
        metrics.register_git(&mut registry);
        *metrics.registry.write().unwrap_or_else(PoisonError::into_inner) = registry;
        metrics
    }
}

fn latency() -> Histogram {
    Histogram::new(LATENCY_BUCKETS_S)
}

impl Metrics {
    fn register_http(&self, registry: &mut Registry) {
        let Self { http_connections, http_connections_refused, http_requests, http_latency, auth_refusals, .. } = self;
        registry.register("http_connections", "Open connections, WebSockets included", http_connections.clone());
        let help = "Connections that were refused because there were too many";
        registry.register("http_connections_refused", help, http_connections_refused.clone());
        registry.register("http_requests", "Requests by route and status", http_requests.clone());
        let help = "From a request's headers to its answer's";
        registry.register_with_unit("http_request_duration", help, Unit::Seconds, http_latency.clone());
        registry.register("auth_refusals", "Callers that were refused", auth_refusals.clone());
    }

    fn register_graphql(&self, registry: &mut Registry) {
        let Self { graphql_requests, graphql_latency, websockets, watches, watches_ended, .. } = self;
        registry.register("graphql_requests", "Operations by type and result", graphql_requests.clone());
        let help = "Time to execute an operation";
        registry.register_with_unit("graphql_request_duration", help, Unit::Seconds, graphql_latency.clone());
        registry.register("websockets", "Open WebSockets", websockets.clone());
        registry.register("watches", "Open watches of clients", watches.clone());
        registry.register("watches_ended", "Watches that the server ended, by code", watches_ended.clone());
    }

    fn register_git(&self, registry: &mut Registry) {
        let Self {
            git_pushes, git_received, git_projected, git_push_duration, git_fetches, git_fetch_duration, ..
        } = self;
        registry.register("git_pushes", "Pushes to hosted repositories by outcome", git_pushes.clone());
        let help = "Bodies of pushes, as they came over the wire";
        registry.register_with_unit("git_received", help, Unit::Bytes, git_received.clone());
        let help = "Objects that repositories changed, pushed or fetched, by effect";
        registry.register("git_projected_objects", help, git_projected.clone());
        let help = "Steps of a push once all of it has come: its check, the move of its refs, the projection";
        registry.register_with_unit("git_push_duration", help, Unit::Seconds, git_push_duration.clone());
        registry.register("git_fetches", "Fetches from remote repositories by outcome", git_fetches.clone());
        let help = "Time to fetch from a remote repository, the wait for a turn included";
        registry.register_with_unit("git_fetch_duration", help, Unit::Seconds, git_fetch_duration.clone());
    }

    /// `outcome` is `accepted`, `refused`, `not_in_force` or `failed`.
    pub fn git_pushed(&self, outcome: &'static str) {
        self.git_pushes.get_or_create(&OutcomeLabel { outcome }).inc();
    }

    pub fn git_received(&self, bytes: u64) {
        self.git_received.inc_by(bytes);
    }

    pub fn git_projected(&self, created: usize, updated: usize, deleted: usize) {
        for (effect, count) in [("created", created), ("updated", updated), ("deleted", deleted)] {
            self.git_projected.get_or_create(&EffectLabel { effect }).inc_by(count as u64);
        }
    }

    /// `step` is `check`, `move` or `project`.
    pub fn git_push_step(&self, step: &'static str, took: Duration) {
        self.git_push_duration.get_or_create(&StepLabel { step }).observe(took.as_secs_f64());
    }

    /// `outcome` is `Fetched`, or the reason of a condition.
    pub fn git_fetched(&self, outcome: &'static str, took: Duration) {
        self.git_fetches.get_or_create(&OutcomeLabel { outcome }).inc();
        self.git_fetch_duration.observe(took.as_secs_f64());
    }

    /// For a part that knows its own numbers; read at each scrape.
    pub fn register(&self, collector: Box<dyn Collector>) {
        self.registry.write().unwrap_or_else(PoisonError::into_inner).register_collector(collector);
    }

    /// The OpenMetrics text.
    pub fn encode(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        let registry = self.registry.read().unwrap_or_else(PoisonError::into_inner);
        prometheus_client::encoding::text::encode(&mut text, &registry)?;
        Ok(text)
    }

    /// Counted until the guard is dropped.
    pub fn connection_opened(&self) -> Held {
        Held::new(&self.http_connections)
    }

    pub fn websocket_opened(&self) -> Held {
        Held::new(&self.websockets)
    }

    pub fn watch_opened(&self) -> Held {
        Held::new(&self.watches)
    }

    /// `code` is one of the API's.
    pub fn watch_ended(&self, code: &'static str) {
        self.watches_ended.get_or_create(&CodeLabel { code }).inc();
    }

    pub fn connection_refused(&self) {
        self.http_connections_refused.inc();
    }

    /// `route` is the pattern, never the path.
    pub fn http_request(&self, route: &str, status: u16, took: Duration) {
        self.http_requests.get_or_create(&HttpLabels { route: route.to_owned(), status }).inc();
        self.http_latency.get_or_create(&RouteLabel { route: route.to_owned() }).observe(took.as_secs_f64());
    }

    pub fn auth_refused(&self, code: &'static str) {
        self.auth_refusals.get_or_create(&CodeLabel { code }).inc();
    }

    /// `operation` is one of the API's words: `list`, `updateStatus`.
    pub fn start_request(&self, operation: &'static str) -> Timer<'_> {
        Timer { metrics: self, operation, started: Instant::now(), code: CODE_CANCELLED }
    }
}

/// The code of a request that succeeded.
pub const CODE_OK: &str = "OK";
/// The code of a request whose caller went away.
pub const CODE_CANCELLED: &str = "CANCELLED";

/// A GraphQL operation under way; counted when it ends, however it ends.
pub struct Timer<'a> {
    metrics: &'a Metrics,
    operation: &'static str,
    started: Instant,
    code: &'static str,
}

impl Timer<'_> {
    /// `code` is [`CODE_OK`] or one of the API's.
    pub fn finish(mut self, code: &'static str) {
        self.code = code;
    }
}

impl Drop for Timer<'_> {
    fn drop(&mut self) {
        let Self { metrics, operation, started, code } = *self;
        metrics.graphql_requests.get_or_create(&GraphqlLabels { operation, code }).inc();
        let latency = metrics.graphql_latency.get_or_create(&OperationLabel { operation });
        latency.observe(started.elapsed().as_secs_f64());
    }
}

/// One more in a gauge, as long as it lives.
#[derive(Debug)]
pub struct Held(Gauge);

impl Held {
    fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_prefix_and_units() {
        let metrics = Metrics::default();
        metrics.start_request("updateStatus").finish("CONFLICT");
        drop(metrics.start_request("list"));
        metrics.http_request("/graphql", 200, Duration::from_millis(2));
        metrics.auth_refused("FORBIDDEN");
        metrics.watch_ended("WATCH_EXPIRED");
        let held = (metrics.watch_opened(), metrics.watch_opened(), metrics.websocket_opened());
        drop(held.0);
        let text = metrics.encode().unwrap();
        for line in [
            r#"tidegate_graphql_requests_total{operation="updateStatus",code="CONFLICT"} 1"#,
            r#"tidegate_graphql_requests_total{operation="list",code="CANCELLED"} 1"#,
            r#"tidegate_graphql_request_duration_seconds_count{operation="list"} 1"#,
            r#"tidegate_http_requests_total{route="/graphql",status="200"} 1"#,
            r#"tidegate_http_request_duration_seconds_count{route="/graphql"} 1"#,
            r#"tidegate_auth_refusals_total{code="FORBIDDEN"} 1"#,
            r#"tidegate_watches_ended_total{code="WATCH_EXPIRED"} 1"#,
            "tidegate_watches 1",
            "tidegate_websockets 1",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
    }
}
