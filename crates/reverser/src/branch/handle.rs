//! The handle: telling a branch something never waits.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate_git::Remote;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::destination::Destination;
use super::limits::Limits;
use super::metrics::{BranchLabels, GitMetrics};
use super::queue::{Queue, Scope, Ticket};
use super::reader::Reader;
use super::status::BranchStatus;
use super::window::{Due, Window};
use super::worker::{BranchConfig, Destinations, Worker};
use crate::change::{Change, Listed};

/// Which destination: its namespace and name, as `namespace/name`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DestinationId(pub Arc<str>);

/// Cheap to clone. The task behind it ends when it is stopped, or when the
/// last handle goes.
#[derive(Clone, Debug)]
pub struct Branch {
    shared: Arc<Shared>,
    status: watch::Receiver<BranchStatus>,
    task: Arc<Task>,
}

/// What the handle and the task share.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<SharedState>,
    /// Something was submitted.
    pub woken: Notify,
    /// There is a new way to the remote.
    pub remote_changed: Notify,
}

#[derive(Debug)]
struct SharedState {
    queue: Queue,
    window: Window,
    is_due: bool,
    remote: Arc<Remote>,
    destinations: Destinations,
}

#[derive(Debug)]
struct Task(Mutex<Option<JoinHandle<()>>>);

impl Branch {
    /// Looks at the remote at once: what is wrong with it shows in the status.
    pub fn start(config: BranchConfig, remote: Remote, reader: Arc<dyn Reader>, metrics: GitMetrics) -> Self {
        let (sender, status) = watch::channel(BranchStatus::default());
        let shared = Arc::new(Shared::new(remote, config.limits.pending_bytes_max));
        let labels = BranchLabels { repository: shared.remote().url.to_string(), branch: config.branch.clone() };
        let worker = Worker::new(config, shared.clone(), sender, reader, metrics, labels);
        let task = Arc::new(Task(Mutex::new(Some(tokio::spawn(worker.run())))));
        Self { shared, status, task }
    }

    /// The destination as it is from now on. One that changes its folder or
    /// its encryption is to be seeded again.
    pub fn set_destination(&self, id: &DestinationId, destination: Destination) {
        let mut state = self.shared.state();
        let mut destinations = BTreeMap::clone(&state.destinations);
        destinations.insert(id.clone(), destination);
        state.destinations = Arc::new(destinations);
    }

    /// The destination is no more: what waits for it is dropped, and its files
    /// stay as they are. To remove them, seed it with nothing first.
    pub fn forget(&self, id: &DestinationId) {
        let mut state = self.shared.state();
        let mut destinations = BTreeMap::clone(&state.destinations);
        destinations.remove(id);
        state.destinations = Arc::new(destinations);
        state.queue.forget(id);
    }

    /// Another address or secret; a wait for the next attempt ends.
    pub fn set_remote(&self, remote: Remote) {
        self.shared.state().remote = Arc::new(remote);
        self.shared.remote_changed.notify_one();
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

    /// What waits is written now, without waiting for silence. The last of it,
    /// to wait for with [`Self::acknowledged`].
    pub fn flush(&self) -> Ticket {
        let mut state = self.shared.state();
        state.is_due = true;
        let ticket = state.queue.last();
        drop(state);
        self.shared.woken.notify_one();
        ticket
    }

    pub fn status(&self) -> watch::Receiver<BranchStatus> {
        self.status.clone()
    }

    /// Waits until everything up to `ticket` is in the remote; `false` if the
    /// branch was stopped before.
    pub async fn acknowledged(&self, ticket: Ticket) -> bool {
        self.status.clone().wait_for(|status| status.acknowledged >= ticket).await.is_ok()
    }

    /// Ends the task, and a push that is under way with it: when this returns,
    /// nothing more reaches the remote from here.
    pub async fn stop(&self) {
        let task = self.task.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            task.abort();
            let _ = task.await;
        }
    }

    fn tell(&self, tell: impl FnOnce(&mut Queue) -> Ticket) -> Ticket {
        let mut state = self.shared.state();
        let ticket = tell(&mut state.queue);
        state.window.note(Instant::now());
        drop(state);
        self.shared.woken.notify_one();
        ticket
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        let task = self.0.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        task.into_iter().for_each(|task| task.abort());
    }
}

impl Shared {
    fn new(remote: Remote, pending_bytes_max: usize) -> Self {
        let state = SharedState {
            queue: Queue::new(pending_bytes_max),
            window: Window::default(),
            is_due: false,
            remote: Arc::new(remote),
            destinations: Destinations::default(),
        };
        Self { state: Mutex::new(state), woken: Notify::new(), remote_changed: Notify::new() }
    }

    pub fn remote(&self) -> Arc<Remote> {
        self.state().remote.clone()
    }

    pub fn destinations(&self) -> Destinations {
        self.state().destinations.clone()
    }

    /// Objects that wait.
    pub fn depth(&self) -> usize {
        self.state().queue.files()
    }

    /// What waits, of destinations and remote as they are at this moment.
    pub fn batch(&self) -> (Vec<super::queue::Pending>, Ticket) {
        let mut state = self.state();
        state.is_due = false;
        state.queue.batch()
    }

    pub fn due(&self, limits: &Limits) -> Due {
        let state = self.state();
        match state.window.due(Instant::now(), state.queue.files(), state.queue.bytes(), limits) {
            Due::At(_) if state.is_due || state.queue.has_seed() => Due::Now,
            due => due,
        }
    }

    /// A batch that was taken at `started` is in the remote; how much waits.
    pub fn acknowledge(&self, ticket: Ticket, started: Instant) -> usize {
        let mut state = self.state();
        state.queue.acknowledge(ticket);
        let is_empty = state.queue.is_empty();
        state.window.restart(started, is_empty);
        state.queue.files()
    }

    /// Held for one step in memory, never across an await.
    fn state(&self) -> MutexGuard<'_, SharedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
