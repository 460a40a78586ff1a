//! Milliseconds since a start, and since 1970: one runs with the other. And
//! what keeps things from happening at the same moment.

use std::hash::{DefaultHasher, Hash, Hasher};

use tokio::sync::watch;
use tokio::time::{Duration, Instant};

use crate::Backoff;
use crate::queue::Millis;

/// Follows tokio's clock, so that a test may stop it.
#[derive(Clone, Copy)]
pub(crate) struct Clock {
    started: Instant,
    started_wall_ms: u64,
}

impl Clock {
    pub fn start(wall_ms: u64) -> Self {
        Self { started: Instant::now(), started_wall_ms: wall_ms }
    }

    pub fn now(&self) -> Millis {
        millis(self.started.elapsed())
    }

    pub fn wall_ms(&self, at: Millis) -> u64 {
        self.started_wall_ms.saturating_add(at)
    }

    /// A time of an earlier life, on this clock.
    pub fn at_wall_ms(&self, wall_ms: u64) -> Millis {
        wall_ms.saturating_sub(self.started_wall_ms)
    }

    pub fn instant(&self, at: Millis) -> Instant {
        self.started + Duration::from_millis(at)
    }
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// From 0 to 1, another for each: of things that wait, so that they do not
/// come back together. The same every time, so that a simulation repeats.
pub(crate) fn spread(of: impl Hash) -> f64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish() as f64 / u64::MAX as f64
}

/// Waits between attempts to reach the server: 250 ms doubling to 10 s, a
/// quarter of it by who waits.
pub(crate) struct Retry {
    who: u64,
    failures: u32,
}

impl Retry {
    pub fn new(who: impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        who.hash(&mut hasher);
        Self { who: hasher.finish(), failures: 0 }
    }

    pub fn succeeded(&mut self) {
        self.failures = 0;
    }

    pub async fn wait(&mut self) {
        self.failures += 1;
        let backoff = Backoff { first: Duration::from_millis(250), max: Duration::from_secs(10) };
        tokio::time::sleep(backoff.delay(self.failures, spread((self.who, self.failures)))).await;
    }
}

/// Returns when it is time to stop, or whoever would say so is gone.
pub(crate) async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}
