//! The manager: runs controllers while it holds the lease.
//!
//! Invariant: a controller runs under one term of the lease. When the term
//! ends, for whatever reason, everything in memory goes with it and the next
//! term begins from what was saved. Indexes outlive terms, so a manager that
//! stands by is ready to take over.

mod stopped;
mod term;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use self::term::Term;
use crate::attended::{Attended, interrupted};
use crate::clock::{Retry, millis, stopped};
use crate::driver::AbortOnDrop;
use crate::index_saver::Saver;
use crate::indexer::{Indexer, Lives};
use crate::{
    ApiError, Client, Controller, ControllerReport, Durable, Fault, Fence, Index, IndexHandle, Lease, LeaseRequest,
    Plane, rows,
};

#[derive(Clone, Debug)]
pub struct ManagerOptions {
    /// The lease that the manager works under.
    pub lease_namespace: Arc<str>,
    pub lease_name: Arc<str>,
    /// Who we are. The lease lets a holder that comes back take over from its
    /// earlier life at once, so no two living managers may share it.
    pub holder: Arc<str>,
    /// The ClusterRole that allows what its controllers need: named in the log
    /// when something is refused.
    pub role: Option<Arc<str>>,
    pub lease_duration: Duration,
    pub lease_renewal: Duration,
    /// How often checkpoints, retries and quarantine are saved.
    pub save_interval: Duration,
    /// Rows in one write of state: about 200 bytes each, so that one request
    /// stays at 1 MiB.
    pub save_rows_max: usize,
    /// On shutdown, what is in flight has so long to finish.
    pub drain: Duration,
    /// The time of day in milliseconds since 1970, in which it is kept when
    /// what is delayed is due.
    pub wall_ms: fn() -> u64,
}

impl ManagerOptions {
    /// `name` is for people: the holder is told apart from others of the same
    /// name, and from its own earlier lives, by a word that is drawn here.
    pub fn new(lease_namespace: &str, lease_name: &str, name: &str) -> Self {
        let life = rand::random::<u32>();
        Self::sole(lease_namespace, lease_name, &format!("{name}-{life:08x}"))
    }

    /// For a manager of which something else sees to it that only one lives,
    /// such as the lock of its store: it need not wait until the lease of its
    /// earlier life has ended.
    pub fn sole(lease_namespace: &str, lease_name: &str, holder: &str) -> Self {
        Self {
            lease_namespace: lease_namespace.into(),
            lease_name: lease_name.into(),
            holder: holder.into(),
            role: None,
            lease_duration: Duration::from_secs(15),
            lease_renewal: Duration::from_secs(5),
            save_interval: Duration::from_secs(1),
            save_rows_max: 5_000,
            drain: Duration::from_secs(20),
            wall_ms: || millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()),
        }
    }

    /// How long a term lasts that is not renewed. It is renewed three times as
    /// often, so that two renewals may fail.
    pub fn lease_duration(mut self, duration: Duration) -> Self {
        (self.lease_duration, self.lease_renewal) = (duration, duration / 3);
        self
    }
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AddError {
    #[error("there is a controller `{0}` already: give this one another name")]
    NameTaken(Arc<str>),
    #[error("`{0}` is not a controller's name: use letters, digits, `-` and `.`, 63 at most")]
    InvalidName(Arc<str>),
}

/// A cheap handle.
#[derive(Clone)]
pub struct Manager(Arc<Inner>);

struct Inner {
    plane: Arc<dyn Plane>,
    options: ManagerOptions,
    term: watch::Sender<Option<Fence>>,
    state: Mutex<State>,
    changed: Notify,
    /// A controller has ended.
    ended: Notify,
}

#[derive(Default)]
struct State {
    controllers: BTreeMap<Arc<str>, Controller>,
    /// Not yet running.
    indexers: Vec<Indexer>,
    savers: Vec<Saver>,
    reports: BTreeMap<Arc<str>, watch::Receiver<ControllerReport>>,
    /// In the term that runs.
    running: BTreeSet<Arc<str>>,
    /// Why the manager can neither lead nor stand by.
    trouble: Option<String>,
    /// Whom it stands by for, as the log has it.
    leader: Option<Arc<str>>,
}

impl Manager {
    pub fn new(plane: Arc<dyn Plane>, options: ManagerOptions) -> Self {
        Self(Arc::new(Inner {
            plane: Arc::new(Attended::new(plane, options.role.clone())),
            options,
            term: watch::Sender::new(None),
            state: Mutex::default(),
            changed: Notify::new(),
            ended: Notify::new(),
        }))
    }

    /// Writes under the manager's lease.
    pub fn client(&self) -> Client {
        Client::fenced(self.0.plane.clone(), self.0.term.subscribe())
    }

    /// Keeps `index` filled and up to date for as long as the manager runs.
    pub fn index(&self, index: Arc<dyn Index>) -> IndexHandle {
        self.keep(index, Lives::WithManager)
    }

    /// The same, until the last handle is dropped; a controller that names the
    /// index holds one.
    pub fn index_while_used(&self, index: Arc<dyn Index>) -> IndexHandle {
        self.keep(index, Lives::WithHandles)
    }

    fn keep(&self, index: Arc<dyn Index>, lives: Lives) -> IndexHandle {
        let (indexer, handle) = Indexer::new(index, self.0.plane.clone(), lives);
        self.state(|state| state.indexers.push(indexer));
        self.0.changed.notify_one();
        handle
    }

    /// The same, and saves it while the manager leads: a restart loads it.
    pub fn durable_index(&self, index: Arc<dyn Durable>) -> IndexHandle {
        let (indexer, handle, saver) = Indexer::durable(index, self.0.plane.clone(), self.0.options.save_rows_max);
        self.state(|state| {
            state.indexers.push(indexer);
            state.savers.push(saver);
        });
        self.0.changed.notify_one();
        handle
    }

    /// Also while the manager runs.
    pub fn add(&self, controller: Controller) -> Result<(), AddError> {
        let name = controller.name.clone();
        if !is_name(&name) {
            return Err(AddError::InvalidName(name));
        }
        self.state(|state| match state.controllers.contains_key(&name) {
            true => Err(AddError::NameTaken(name)),
            false => {
                state.controllers.insert(name, controller);
                Ok(())
            }
        })?;
        self.0.changed.notify_one();
        Ok(())
    }

    /// Stops a controller; it drains first. Its state stays, for when it is
    /// added again.
    pub fn remove(&self, name: &str) {
        self.state(|state| {
            state.controllers.remove(name);
            state.reports.remove(name);
        });
        self.0.changed.notify_one();
    }

    /// The same, and returns when it has ended.
    pub async fn stop(&self, name: &str) {
        self.remove(name);
        self.ended(name).await;
    }

    /// Returns when no such controller runs here.
    async fn ended(&self, name: &str) {
        loop {
            let ended = self.0.ended.notified();
            if !self.state(|state| state.running.contains(name)) {
                return;
            }
            ended.await;
        }
    }

    pub fn options(&self) -> &ManagerOptions {
        &self.0.options
    }

    /// Of the controllers that run here now.
    pub fn reports(&self) -> Vec<ControllerReport> {
        self.state(|state| state.reports.values().map(|report| report.borrow().clone()).collect())
    }

    pub fn is_leading(&self) -> bool {
        self.0.term.borrow().is_some()
    }

    /// Why the manager cannot work; that it stands by, or that an object is
    /// bad, is no reason.
    pub fn health(&self) -> Result<(), String> {
        self.state(|state| state.trouble.clone()).map_or(Ok(()), Err)
    }

    /// Leads or stands by until `stop` is true, then drains, saves, and gives
    /// the lease back.
    pub async fn run(&self, stop: watch::Receiver<bool>) {
        let mut indexers = Indexers::default();
        let mut stopping = stop.clone();
        let mut retry = Retry::new(&self.0.options.holder);
        while !*stop.borrow() {
            let waited = tokio::select! {
                biased;
                () = stopped(&mut stopping) => return,
                outcome = self.acquire(&mut indexers) => outcome,
            };
            let Some((fence, since)) = waited else { continue };
            self.lead(fence, since, &mut indexers, stop.clone()).await;
            if since.elapsed() > self.0.options.lease_duration {
                retry.succeeded();
            }
            // What ends every term at once, such as a full disk, must not
            // become a storm of leases.
            tokio::select! {
                biased;
                () = stopped(&mut stopping) => return,
                () = retry.wait() => {}
            }
        }
    }

    /// One attempt; `None` after a wait if it is somebody else's, or of no use.
    async fn acquire(&self, indexers: &mut Indexers) -> Option<(Fence, Instant)> {
        indexers.start(self);
        let asked = Instant::now();
        let answer = self.ask_for_lease().await;
        self.state(|state| {
            state.trouble = answer.as_ref().err().map(|error| format!("the manager cannot lead: {error}"))
        });
        match answer {
            Ok(Ok(fence)) => return Some((fence, asked)),
            Ok(Err(leader)) => self.stand_by(leader),
            Err(error) => interrupted!(error, "the manager cannot lead: trying again"),
        }
        tokio::time::sleep(self.0.options.lease_renewal).await;
        None
    }

    /// Inside: a term of ours, or whose it is.
    async fn ask_for_lease(&self) -> Result<Result<Fence, Arc<str>>, ApiError> {
        let ManagerOptions { lease_namespace, lease_name, holder, lease_duration, .. } = &self.0.options;
        let (namespace, name) = (lease_namespace.clone(), lease_name.clone());
        let (holder, duration) = (holder.clone(), *lease_duration);
        let request = LeaseRequest::Acquire {
            namespace: namespace.clone(),
            name: name.clone(),
            holder: holder.clone(),
            duration,
        };
        let Lease { holder: theirs, transitions } = self.0.plane.lease(&request).await?;
        if theirs != holder {
            return Ok(Err(theirs));
        }
        let fence = Fence { namespace, name, holder, transitions };
        match self.try_state(&fence).await {
            // Another manager may be allowed to.
            Err(error) if error.is(Fault::Forbidden) => {
                self.release(&fence).await;
                Err(error)
            }
            _ => Ok(Ok(fence)),
        }
    }

    /// A term in which nothing may be saved would end at once.
    async fn try_state(&self, fence: &Fence) -> Result<(), ApiError> {
        let Some(name) = self.state(|state| state.controllers.keys().next().cloned()) else { return Ok(()) };
        self.0.plane.state_read(&name, rows::CHECKPOINT, None).await?;
        self.0.plane.state_write(&name, Some(fence), Vec::new()).await
    }

    fn stand_by(&self, leader: Arc<str>) {
        let is_new = self.state(|state| state.leader.replace(leader.clone()).as_ref() != Some(&leader));
        if is_new {
            tracing::info!(%leader, "another manager leads: standing by");
        }
    }

    async fn lead(&self, fence: Fence, since: Instant, indexers: &mut Indexers, stop: watch::Receiver<bool>) {
        tracing::info!(holder = %fence.holder, term = fence.transitions, "leading");
        self.state(|state| state.leader = None);
        self.0.term.send_replace(Some(fence.clone()));
        // Whatever still runs at its end is stopped, and the lease keeps its
        // writes out.
        let ended = Term::new(self, fence.clone()).run(since, indexers, stop).await;
        self.0.term.send_replace(None);
        self.state(|state| {
            state.reports.clear();
            state.running.clear();
        });
        self.0.ended.notify_waiters();
        match ended {
            Ok(()) => self.release(&fence).await,
            Err(error) if error.is_said_for_all() => tracing::info!(%error, "the term has ended"),
            Err(error) => tracing::warn!(%error, "the term has ended"),
        }
    }

    async fn release(&self, fence: &Fence) {
        if let Err(error) = self.0.plane.lease(&LeaseRequest::Release { fence: fence.clone() }).await {
            tracing::warn!(%error, "the lease was not given back: it ends by itself");
        }
    }

    fn state<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        change(&mut self.0.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The indexes that run; they end with it.
#[derive(Default)]
struct Indexers(Vec<AbortOnDrop>);

impl Indexers {
    fn start(&mut self, manager: &Manager) {
        self.0.retain(|indexer| !indexer.0.is_finished());
        for indexer in manager.state(|state| std::mem::take(&mut state.indexers)) {
            self.0.push(AbortOnDrop(tokio::spawn(indexer.run()).abort_handle()));
        }
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 63
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'))
}
