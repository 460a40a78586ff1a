//! Plain numbers for whoever exports them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Upper bounds of the histogram of durable writes; the last bucket is open.
pub const WRITE_BUCKETS_MS: [f64; 12] = [0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 500.0, 2500.0];

#[derive(Clone, Debug, PartialEq)]
pub struct Stats {
    /// Durable writes of the engine; each carries one or more transactions.
    pub commits: u64,
    pub transactions: u64,
    pub refused: u64,
    pub events: u64,
    pub write_seconds_sum: f64,
    /// How many writes took at most the bound at the same place of
    /// [`WRITE_BUCKETS_MS`]; not cumulative, one more for all above.
    pub write_buckets: [u64; WRITE_BUCKETS_MS.len() + 1],
    pub disk_bytes: u64,
    pub watchers: u64,
    /// Scopes that they share.
    pub channels: u64,
    /// Of them, those that read the log because memory has moved on.
    pub watchers_lagging: u64,
    pub events_sent: u64,
    pub watches_expired: u64,
    pub list_snapshots: u64,
    pub segments_dropped: u64,
}

#[derive(Default)]
pub(crate) struct Counters {
    pub commits: AtomicU64,
    pub transactions: AtomicU64,
    pub refused: AtomicU64,
    pub events: AtomicU64,
    pub write_us: AtomicU64,
    pub write_buckets: [AtomicU64; WRITE_BUCKETS_MS.len() + 1],
    pub events_sent: AtomicU64,
    pub watches_expired: AtomicU64,
    pub segments_dropped: AtomicU64,
    pub watchers: Arc<AtomicU64>,
    pub watchers_lagging: Arc<AtomicU64>,
}

impl Counters {
    pub fn write_done(&self, took: Duration) {
        let ms = took.as_secs_f64() * 1000.0;
        let bucket = WRITE_BUCKETS_MS.iter().position(|bound| ms <= *bound).unwrap_or(WRITE_BUCKETS_MS.len());
        self.write_buckets[bucket].fetch_add(1, Relaxed);
        self.write_us.fetch_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Relaxed);
        self.commits.fetch_add(1, Relaxed);
    }

    pub fn stats(&self, disk_bytes: u64, list_snapshots: usize, channels: usize) -> Stats {
        Stats {
            commits: self.commits.load(Relaxed),
            transactions: self.transactions.load(Relaxed),
            refused: self.refused.load(Relaxed),
            events: self.events.load(Relaxed),
            write_seconds_sum: self.write_us.load(Relaxed) as f64 / 1e6,
            write_buckets: std::array::from_fn(|at| self.write_buckets[at].load(Relaxed)),
            disk_bytes,
            watchers: self.watchers.load(Relaxed),
            watchers_lagging: self.watchers_lagging.load(Relaxed),
            events_sent: self.events_sent.load(Relaxed),
            watches_expired: self.watches_expired.load(Relaxed),
            list_snapshots: list_snapshots as u64,
            channels: channels as u64,
            segments_dropped: self.segments_dropped.load(Relaxed),
        }
    }
}

/// Counts one while it lives.
pub(crate) struct Present(Arc<AtomicU64>);

impl Present {
    pub fn new(count: &Arc<AtomicU64>) -> Self {
        count.fetch_add(1, Relaxed);
        Self(count.clone())
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
