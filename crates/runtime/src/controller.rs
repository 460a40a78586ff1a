//! A controller: one kind, what reconciles it, and how.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tidegate_model::ObjectKey;

use crate::{IndexHandle, Kind, Next, ReconcileError, Reconciler};

/// How a controller works; the defaults need no choice.
#[derive(Clone, Debug)]
pub struct ControllerOptions {
    /// Reconciles at once.
    pub concurrency: usize,
    pub backoff: Backoff,
    /// A reconcile that takes longer is stopped and counts as failed.
    pub deadline: Duration,
    /// A key that failed so often in a row is quarantined. With the default
    /// backoff that takes about half an hour.
    pub attempts_max: u32,
    /// Every key is reconciled at least this often, at low priority.
    pub resync: Duration,
}

impl Default for ControllerOptions {
    fn default() -> Self {
        Self {
            concurrency: 16,
            backoff: Backoff::default(),
            deadline: Duration::from_secs(60),
            attempts_max: 15,
            resync: Duration::from_secs(10 * 60 * 60),
        }
    }
}

/// The delay before the next attempt: doubles from `first` to `max`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Backoff {
    pub first: Duration,
    pub max: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { first: Duration::from_millis(500), max: Duration::from_secs(5 * 60) }
    }
}

impl Backoff {
    /// After `failures` in a row, of which there is at least one. `chance` is
    /// from 0 to 1: a quarter of the delay is left to it, so that keys that
    /// failed together do not come back together.
    pub fn delay(&self, failures: u32, chance: f64) -> Duration {
        let doubled = self.first.saturating_mul(1 << failures.saturating_sub(1).min(30));
        doubled.min(self.max).mul_f64(0.75 + 0.25 * chance.clamp(0.0, 1.0))
    }
}

/// Built once, then given to a [`Manager`](crate::Manager).
#[derive(Clone)]
pub struct Controller {
    pub(crate) name: Arc<str>,
    pub(crate) kind: Kind,
    pub(crate) reconciler: Arc<dyn DynReconciler>,
    pub(crate) indexes: Vec<IndexHandle>,
    pub(crate) options: ControllerOptions,
}

impl Controller {
    /// `name` identifies the controller's durable state: letters, digits, `-`
    /// and `.`, and never that of another controller.
    pub fn new(name: &str, kind: Kind, reconciler: impl Reconciler) -> Self {
        Self {
            name: name.into(),
            kind,
            reconciler: Arc::new(reconciler),
            indexes: Vec::new(),
            options: ControllerOptions::default(),
        }
    }

    /// Reconciles what the index touches, and begins when it is filled.
    #[must_use]
    pub fn index(mut self, index: &IndexHandle) -> Self {
        self.indexes.push(index.clone());
        self
    }

    #[must_use]
    pub fn options(mut self, options: ControllerOptions) -> Self {
        self.options = options;
        self
    }

    #[must_use]
    pub fn concurrency(mut self, concurrency: usize) -> Self {
        self.options.concurrency = concurrency;
        self
    }
}

/// A [`Reconciler`] whose future is boxed, so that controllers fit in a list.
pub(crate) trait DynReconciler: Send + Sync + 'static {
    fn run(self: Arc<Self>, key: ObjectKey) -> BoxFuture<'static, Result<Next, ReconcileError>>;
}

impl<R: Reconciler> DynReconciler for R {
    fn run(self: Arc<Self>, key: ObjectKey) -> BoxFuture<'static, Result<Next, ReconcileError>> {
        Box::pin(async move { self.reconcile(&key).await })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_doubles_up_to_its_limit() {
        let backoff = Backoff::default();
        for (failures, chance, expected_ms) in
            [(1, 1.0, 500), (2, 1.0, 1000), (3, 0.0, 1500), (10, 1.0, 256_000), (11, 1.0, 300_000), (99, 0.0, 225_000)]
        {
            assert_eq!(backoff.delay(failures, chance), Duration::from_millis(expected_ms), "{failures} {chance}");
        }
    }
}
