//! What the cluster's half counts. The registry gives the names their prefix.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    pub scanned: Counter,
    pub hits: Counter,
    pub misses: Counter,
    pub evictions: Counter,
    pub admissions: Counter,
    pub watches: Gauge,
    pub watch_failures: Counter,
    pub is_leader: Gauge,
    pub is_called: Gauge,
}

impl Metrics {
    pub fn register(&self, registry: &mut Registry) {
        registry.register("objects_scanned", "Objects read from lists and watches", self.scanned.clone());
        registry.register("enrich_hits", "Changes whose author is known", self.hits.clone());
        registry.register("enrich_misses", "Changes whose author is unknown", self.misses.clone());
        registry.register("kv_evictions", "Admissions dropped for want of room", self.evictions.clone());
        registry.register("admissions", "Admissions recorded", self.admissions.clone());
        registry.register("watches", "Watches that run", self.watches.clone());
        let failures = "Lists and watches that failed and were asked for again";
        registry.register("watch_failures", failures, self.watch_failures.clone());
        let called = "1 while the API server calls the webhook, else 0";
        registry.register("webhook_called", called, self.is_called.clone());
        registry.register("leader", "1 while this replica works", self.is_leader.clone());
    }
}
