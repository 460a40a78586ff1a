//! Everything that may be chosen when a store is opened, with defaults that
//! need no choice.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[derive(Clone, Debug)]
pub struct Options {
    pub window: WindowLimits,
    /// The log is dropped in pieces of a `segments`-th of the window: so much
    /// of it may be missing when a limit has just been reached.
    pub segments: u32,
    /// How often the background looks for something to drop.
    pub maintenance_interval: Duration,
    /// An idle watcher is told the newest version at most this often.
    pub bookmark_interval: Duration,
    pub watchers_max: usize,
    /// Events kept in memory for live watchers, whichever limit comes first.
    pub live_events_max: usize,
    pub live_bytes_max: usize,
    /// Paged lists that hold their snapshot between two pages.
    pub list_snapshots_max: usize,
    pub list_snapshot_ttl: Duration,
    /// A million objects and what defines them: the first push of a large
    /// repository is one transaction as any other. Each takes about 500 bytes
    /// besides its own while it is committed.
    pub transaction_writes_max: usize,
    /// While it is committed, a transaction is in memory about twice: the row
    /// of the object and that of its event. So is the journal that a restart
    /// reads.
    pub transaction_bytes_max: usize,
    /// Transactions that wait for the committer: more of them wait outside.
    pub queue_transactions_max: usize,
    pub cache_bytes: u64,
    /// Per table. The engine holds a few of them in memory while it writes.
    pub memtable_bytes: u64,
    pub on_loss: OnLoss,
    /// Distance of two versions; 1 but in tests, where clients must not depend
    /// on it.
    pub version_stride: u64,
    pub clock: Clock,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WindowLimits {
    pub age: Duration,
    pub events: u64,
    pub bytes: u64,
}

/// What to do with a store that lacks writes which were acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnLoss {
    Refuse,
    /// Keep what is there and begin a new epoch, so that no client mistakes
    /// the gap for continuity.
    NewEpoch,
}

impl Default for WindowLimits {
    fn default() -> Self {
        Self { age: Duration::from_secs(24 * 60 * 60), events: 5_000_000, bytes: 4 << 30 }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            window: WindowLimits::default(),
            segments: 16,
            maintenance_interval: Duration::from_secs(1),
            bookmark_interval: Duration::from_secs(10),
            watchers_max: 100_000,
            live_events_max: 32_768,
            live_bytes_max: 32 << 20,
            list_snapshots_max: 256,
            list_snapshot_ttl: Duration::from_secs(5 * 60),
            transaction_writes_max: 1_100_000,
            transaction_bytes_max: 2 << 30,
            queue_transactions_max: 4096,
            cache_bytes: 32 << 20,
            memtable_bytes: 16 << 20,
            on_loss: OnLoss::Refuse,
            version_stride: 1,
            clock: Clock::default(),
        }
    }
}

/// Milliseconds since 1970, injected so that tests decide what time it is.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> u64 + Send + Sync>);

impl Clock {
    pub fn new(now_ms: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(now_ms))
    }

    pub fn now_ms(&self) -> u64 {
        (self.0)()
    }
}

impl Default for Clock {
    fn default() -> Self {
        let since_1970 = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::new(move || u64::try_from(since_1970().as_millis()).unwrap_or(u64::MAX))
    }
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clock")
    }
}
