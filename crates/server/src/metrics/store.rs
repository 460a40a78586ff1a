//! The store's own numbers, read when somebody looks.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use tidegate_store::{Stats, Store, WRITE_BUCKETS_MS, Window};

use super::Metrics;

impl Metrics {
    /// The registry keeps a handle of the store from now on.
    pub fn register_store(&self, store: Store) {
        self.register(Box::new(StoreCollector(store)));
    }
}

struct StoreCollector(Store);

impl Collector for StoreCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let (stats, window) = (self.0.stats(), self.0.window());
        for (name, help, value) in counters(&stats) {
            let counter = ConstCounter::new(value);
            counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)?;
        }
        for (name, help, unit, value) in gauges(&stats, &window) {
            let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
            gauge.encode(encoder.encode_descriptor(name, help, unit.as_ref(), gauge.metric_type())?)?;
        }
        encode_writes(&mut encoder, &stats)
    }
}

type Help = &'static str;

fn counters(stats: &Stats) -> [(&'static str, Help, u64); 7] {
    let Stats { commits, transactions, refused, events, events_sent, watches_expired, segments_dropped, .. } = *stats;
    [
        ("store_commits", "Durable writes; each carries one or more transactions", commits),
        ("store_transactions", "Transactions that were committed", transactions),
        ("store_transactions_refused", "Transactions whose expectations did not hold", refused),
        ("store_events", "Events that were committed", events),
        ("store_segments_dropped", "Segments of the log that left the window", segments_dropped),
        ("watch_events_sent", "Events that watchers have taken", events_sent),
        ("watch_expired", "Watchers that fell out of the window", watches_expired),
    ]
}

fn gauges(stats: &Stats, window: &Window) -> [(&'static str, Help, Option<Unit>, u64); 9] {
    let Stats { disk_bytes, watchers, channels, watchers_lagging, list_snapshots, .. } = *stats;
    let Window { oldest, newest, events, bytes } = *window;
    [
        ("store_disk", "Size on disk", Some(Unit::Bytes), disk_bytes),
        ("store_list_snapshots", "Snapshots that are kept for further pages", None, list_snapshots),
        ("store_window_oldest_version", "The oldest version that can be resumed from", None, oldest.raw()),
        ("store_window_newest_version", "The version of the last commit", None, newest.raw()),
        ("store_window_events", "Events in the window", None, events),
        ("store_window", "Size of the events in the window", Some(Unit::Bytes), bytes),
        ("watch_watchers", "Open watchers, those of this process included", None, watchers),
        ("watch_watchers_lagging", "Watchers that read the log, because memory has moved on", None, watchers_lagging),
        ("watch_channels", "Scopes that watchers share", None, channels),
    ]
}

fn encode_writes(encoder: &mut DescriptorEncoder<'_>, stats: &Stats) -> Result<(), fmt::Error> {
    let bounds_s = WRITE_BUCKETS_MS.iter().map(|bound_ms| bound_ms / 1e3).chain([f64::INFINITY]);
    let buckets: Vec<(f64, u64)> = bounds_s.zip(stats.write_buckets).collect();
    let help = "Time of a durable write, fsync included";
    encoder
        .encode_descriptor("store_write_duration", help, Some(&Unit::Seconds), MetricType::Histogram)?
        .encode_histogram::<NoLabelSet>(stats.write_seconds_sum, stats.write_buckets.iter().sum(), &buckets, None)
}

impl fmt::Debug for StoreCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreCollector")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_numbers_of_a_store_are_scraped() {
        let directory = tempfile::TempDir::new().unwrap();
        let store = Store::open(directory.path(), tidegate_store::Options::default()).unwrap();
        let metrics = Metrics::default();
        metrics.register_store(store.clone());
        let text = metrics.encode().unwrap();
        for line in [
            "# TYPE tidegate_store_commits counter".to_owned(),
            "tidegate_watch_watchers 0".to_owned(),
            format!("tidegate_store_window_newest_version {}", store.window().newest),
            "# UNIT tidegate_store_disk_bytes bytes".to_owned(),
            "tidegate_store_write_duration_seconds_bucket{le=\"+Inf\"} 0".to_owned(),
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
        store.close().await;
    }
}
