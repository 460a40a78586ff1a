//! The handle: telling a branch something never waits.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

use super::limits::Limits;
use super::queue::{Queue, Scope, Ticket};
use super::status::BranchStatus;
use crate::change::{Change, Listed};

/// Which destination: its namespace and name, as `namespace/name`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DestinationId(pub Arc<str>);

/// Cheap to clone. The task behind it ends when it is told to.
#[derive(Clone, Debug)]
pub struct Branch {
    pub(super) shared: Arc<Shared>,
    status: watch::Receiver<BranchStatus>,
}

#[derive(Debug)]
pub(super) struct Shared {
    queue: Mutex<Queue>,
    /// Something was submitted.
    pub woken: Notify,
}

impl Branch {
    pub(super) fn new(limits: Limits) -> (Self, watch::Sender<BranchStatus>) {
        let (sender, status) = watch::channel(BranchStatus::default());
        let queue = Mutex::new(Queue::new(limits.pending_bytes_max));
        (Self { shared: Arc::new(Shared { queue, woken: Notify::new() }), status }, sender)
    }

    /// One change of one object. Beyond the byte limit only its key is kept.
    pub fn submit(&self, destination: &DestinationId, change: Change) -> Ticket {
        self.tell(|queue| queue.change(destination.clone(), change))
    }

    /// Everything that there is in `scope`: what differs is written, and our
    /// files of that scope that are not listed are deleted. The list must be
    /// complete; where it is not sure to be, there is nothing to seed.
    pub fn seed(&self, destination: &DestinationId, scope: Scope, objects: impl IntoIterator<Item = Listed>) -> Ticket {
        self.tell(|queue| queue.seed(destination.clone(), scope, objects.into_iter()))
    }

    pub fn status(&self) -> watch::Receiver<BranchStatus> {
        self.status.clone()
    }

    /// Waits until everything up to `ticket` is in the remote; `false` if the
    /// branch was stopped before.
    pub async fn acknowledged(&self, ticket: Ticket) -> bool {
        self.status.clone().wait_for(|status| status.acknowledged >= ticket).await.is_ok()
    }

    fn tell(&self, tell: impl FnOnce(&mut Queue) -> Ticket) -> Ticket {
        let ticket = tell(&mut self.shared.queue());
        self.shared.woken.notify_one();
        ticket
    }
}

impl Shared {
    /// Held for one step in memory, never across an await.
    pub fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
