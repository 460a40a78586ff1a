//! How long to wait before the next attempt.

use std::time::Duration;

const DELAY_MIN: Duration = Duration::from_millis(250);
const DELAY_MAX: Duration = Duration::from_secs(10);

/// Doubles from 250 ms to 10 s. Half of each delay is left to chance, so that
/// the clients of a server that restarts do not come back in one moment.
#[derive(Default)]
pub struct Backoff {
    failures: u32,
}

impl Backoff {
    /// `chance` is from 0 to 1.
    pub fn next(&mut self, chance: f64) -> Duration {
        let full = DELAY_MIN.saturating_mul(1 << self.failures.min(16)).min(DELAY_MAX);
        self.failures = self.failures.saturating_add(1);
        let delay = full.mul_f64(0.5 + chance.clamp(0.0, 1.0) / 2.0);
        delay.clamp(DELAY_MIN, DELAY_MAX)
    }

    /// Something arrived: the next loss is a first one.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delays(chance: f64) -> Vec<u128> {
        let mut backoff = Backoff::default();
        (0..8).map(|_| backoff.next(chance).as_millis()).collect()
    }

    #[test]
    fn delays_double_up_to_the_limit() {
        assert_eq!(delays(1.0), [250, 500, 1000, 2000, 4000, 8000, 10_000, 10_000]);
        assert_eq!(delays(0.0), [250, 250, 500, 1000, 2000, 4000, 5000, 5000]);
    }

    #[test]
    fn a_success_starts_over() {
        let mut backoff = Backoff { failures: u32::MAX };
        assert_eq!(backoff.next(1.0), DELAY_MAX);
        backoff.reset();
        assert_eq!(backoff.next(1.0), DELAY_MIN);
    }
}
