//! Milliseconds since a start, and since 1970: one runs with the other.

use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::watch;
use tokio::time::{Duration, Instant};

use crate::queue::Millis;

/// Follows tokio's clock, so that a test may stop it.
#[derive(Clone, Copy)]
pub(crate) struct Clock {
    started: Instant,
    started_wall_ms: u64,
}

impl Clock {
    pub fn start() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { started: Instant::now(), started_wall_ms: millis(wall) }
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

/// Returns when it is time to stop, or whoever would say so is gone.
pub(crate) async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}
