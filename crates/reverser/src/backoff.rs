//! How long to wait before the next attempt.

use std::time::Duration;

/// Doubles from `min` to `max`; an attempt that succeeds starts it over.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    min: Duration,
    max: Duration,
    attempts: u32,
}

impl Backoff {
    pub fn new(min: Duration, max: Duration) -> Self {
        Self { min, max, attempts: 0 }
    }

    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    pub fn reset(&mut self) {
        self.attempts = 0;
    }

    /// `chance` is from 0 to 1: many that failed together do not come back
    /// together.
    pub fn next(&mut self, chance: f64) -> Duration {
        let doubled = self.min.saturating_mul(1 << self.attempts.min(20)).min(self.max);
        self.attempts = self.attempts.saturating_add(1);
        doubled.mul_f64(0.5 + chance.clamp(0.0, 1.0) / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_up_to_its_limit() {
        let mut backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(30));
        let waits: Vec<_> = (0..9).map(|_| backoff.next(1.0).as_millis()).collect();
        assert_eq!(waits, [500, 1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000]);
        backoff.reset();
        assert_eq!(backoff.next(0.0).as_millis(), 250);
        assert_eq!(backoff.attempts(), 1);
    }
}
