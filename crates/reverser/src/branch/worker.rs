//! The task behind a branch: waits for a batch, writes it, pushes it.
//!
//! Invariant: a batch is acknowledged after its push and only then. Whatever
//! goes wrong before is answered by looking at the remote again and planning
//! again on what is there.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prometheus_client::metrics::gauge::Gauge;
use tidegate_git::{Draft, DraftError, Program, Pushed, Remote};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::Instant;

use super::again::Again;
use super::attempt::{Attempt, Attempts, Batch, is_open};
use super::clone::{BareClone, CloneError, Housekeeping};
use super::destination::Destination;
use super::failure::failure;
use super::foreign::Folders;
use super::handle::{DestinationId, Shared};
use super::limits::Limits;
use super::message::Operator;
use super::metrics::{BranchLabels, GitMetrics};
use super::plan::{Context, PlanError, Planner, Report};
use super::queue::{Item, Pending};
use super::reader::Reader;
use super::rivals::Rivals;
use super::status::BranchStatus;
use super::turns::{Turn, Turns};
use super::window::Due;
use crate::backoff::Backoff;
use crate::lease::Term;
use crate::secrets::SecretMemory;

const BACKOFF_MIN: Duration = Duration::from_millis(500);
const BACKOFF_MAX: Duration = Duration::from_secs(60);
/// What a branch is, and where it is kept.
#[derive(Clone, Debug)]
pub struct BranchConfig {
    pub program: Program,
    /// Of this branch alone; made if it is not there.
    pub clone_dir: PathBuf,
    pub branch: String,
    pub operator: Operator,
    /// Which cluster it mirrors.
    pub cluster_uid: Arc<str>,
    pub limits: Limits,
    pub turns: Turns,
    /// Nothing is pushed after it.
    pub term: Term,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum WorkError {
    #[error(transparent)]
    Clone(#[from] CloneError),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error("nothing is pushed: the lease was not renewed, and another replica may work")]
    TermOver,
    #[error(
        "the host says that the branch has moved, and it has not: look for a lock of the branch, and for room, at the host"
    )]
    NotMoved,
    #[error("the task that writes the commits ended before its time")]
    Lost,
}

pub(super) struct Worker {
    pub config: BranchConfig,
    pub shared: Arc<Shared>,
    pub status: watch::Sender<BranchStatus>,
    pub reader: Arc<dyn Reader>,
    pub metrics: GitMetrics,
    pub labels: BranchLabels,
    clone: Option<BareClone>,
    /// On top of what the remote has, as far as we know.
    draft: Option<Draft>,
    /// When the remote is looked at although nothing changed here.
    look_at: Instant,
    folders: Folders,
    attempts: Attempts,
    memory: SecretMemory,
}

impl Worker {
    pub fn new(
        config: BranchConfig,
        shared: Arc<Shared>,
        status: watch::Sender<BranchStatus>,
        reader: Arc<dyn Reader>,
        metrics: GitMetrics,
        labels: BranchLabels,
    ) -> Self {
        metrics.announce(&labels);
        let (clone, draft, look_at) = (None, None, Instant::now());
        let (folders, attempts, memory) = (Folders::default(), Attempts::default(), SecretMemory::default());
        Self { config, shared, status, reader, metrics, labels, clone, draft, look_at, folders, attempts, memory }
    }

    /// Until it is stopped. Dropping it at any await is a stop, too: nothing
    /// is lost that is not acknowledged.
    pub async fn run(mut self) {
        let mut backoff = Backoff::new(BACKOFF_MIN, BACKOFF_MAX);
        let mut is_first = true;
        loop {
            // The first look at the remote does not wait for a change: an
            // address or a secret that is wrong shows at once.
            if !std::mem::take(&mut is_first) {
                self.wait().await;
            }
            loop {
                match self.work().await {
                    Ok(()) => break backoff.reset(),
                    Err(error) => {
                        self.failed(&error, backoff.attempts() + 1).await;
                        self.pause(backoff.next(rand::random())).await;
                    }
                }
            }
            if self.wants_tidying(Housekeeping::Overdue) {
                self.tidy().await;
            }
        }
    }

    /// Until a batch is due, or there is another secret or address: whether
    /// that one is good shows at once, not with the next change. Or until the
    /// remote has not been looked at for long.
    async fn wait(&mut self) {
        loop {
            let woken = self.shared.woken.notified();
            let at = match self.shared.due(&self.config.limits) {
                Due::Now => return,
                Due::Never => None,
                Due::At(at) => Some(at),
            };
            // Time for housekeeping is when nothing has come for a while: a
            // change that came meanwhile would have to wait for its end.
            let idle_at = Instant::now() + self.config.limits.idle;
            let is_idle = at.is_none();
            let is_time = is_idle && self.wants_tidying(Housekeeping::Due);
            tokio::select! {
                () = woken => {}
                () = tokio::time::sleep_until(at.unwrap_or(idle_at)), if at.is_some() => {}
                () = tokio::time::sleep_until(idle_at), if is_time => self.tidy().await,
                () = self.shared.remote_changed.notified() => return self.draft = None,
                () = tokio::time::sleep_until(self.look_at), if is_idle => return self.draft = None,
            }
        }
    }

    /// Not all branches at once, though they may have started together.
    fn looked(&mut self) {
        let wait = self.config.limits.refresh.mul_f64(0.75 + rand::random::<f64>() / 4.0);
        self.look_at = Instant::now() + wait;
    }

    /// A new secret or address ends the wait: it may be the remedy.
    async fn pause(&mut self, wait: Duration) {
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = self.shared.remote_changed.notified() => {}
        }
    }

    /// Everything that waits, into the remote.
    async fn work(&mut self) -> Result<(), WorkError> {
        let _turn = self.turn().await?;
        let mut rivals = Rivals::default();
        loop {
            let started = Instant::now();
            let remote = self.shared.remote();
            self.prepare(&remote).await?;
            rivals.look(self.draft.as_ref().and_then(Draft::base))?;
            let (pending, ticket) = self.shared.batch();
            let report = self.plan(pending.clone()).await?;
            let batch = Batch { pending, ticket, report, started };
            match self.push(&remote).await {
                Ok(Pushed::Done) => {
                    self.done(batch);
                    return Ok(());
                }
                Ok(Pushed::Moved) => {
                    self.discard();
                    self.metrics.rebase_retries.get_or_create(&self.labels).inc();
                    rivals.wait().await;
                }
                Err(error) => {
                    self.remember(batch, &error);
                    return Err(error);
                }
            }
        }
    }

    /// It may have arrived: the next look at the remote tells.
    fn remember(&mut self, batch: Batch, error: &WorkError) {
        let Some((draft, head)) = self.draft.as_mut().and_then(|draft| draft.head().map(|head| (draft, head))) else {
            return;
        };
        let mut folders = Folders::default();
        if is_open(error) && folders.leave(draft, &self.shared.destinations()).is_ok() {
            self.attempts.add(Attempt { head, batch, folders });
        }
    }

    async fn turn(&mut self) -> Result<(Turn, Active), WorkError> {
        let turn = self.config.turns.take().await.ok_or(WorkError::Lost)?;
        Ok((turn, Active::new(&self.metrics, &self.labels)))
    }

    /// The clone, and a draft on what the remote has.
    async fn prepare(&mut self, remote: &Remote) -> Result<(), WorkError> {
        let clone = match &mut self.clone {
            Some(clone) => clone,
            none => {
                let config = &self.config;
                none.insert(BareClone::open(config.program.clone(), &config.clone_dir, &config.branch).await?)
            }
        };
        if self.draft.is_none() {
            let head = clone.fetch(remote, self.attempts.depth()).await?;
            let draft = Draft::open(&clone.repository, head.as_ref()).map_err(PlanError::from)?;
            let arrived = self.attempts.arrived(&clone.repository, head.as_ref()).await.map_err(CloneError::from)?;
            self.status.send_modify(|status| status.head = head);
            self.begin(draft, arrived)?;
        }
        Ok(())
    }

    /// On what the remote has, which may not be what we left there.
    fn begin(&mut self, mut draft: Draft, arrived: Option<Attempt>) -> Result<(), WorkError> {
        self.looked();
        let arrived = arrived.map(|Attempt { batch, folders, .. }| {
            self.folders = folders;
            batch
        });
        let found = self.folders.find(&mut draft, &self.shared.destinations()).map_err(PlanError::from)?;
        self.draft = Some(draft);
        for destination in found {
            tracing::warn!(branch = %self.config.branch, destination = %destination.0,
                "somebody else changed files of ours; the cluster is compared with them again");
            self.metrics.foreign_changes.get_or_create(&self.labels).inc();
            self.status.send_modify(|status| status.destinations.entry(destination).or_default().disturbed += 1);
        }
        if let Some(batch) = arrived {
            tracing::info!(branch = %self.config.branch, "a push that was not answered had arrived");
            self.done(batch);
        }
        Ok(())
    }

    /// On a thread of its own: it reads, hashes and compresses.
    async fn plan(&mut self, batch: Vec<Pending>) -> Result<Report, WorkError> {
        let (Some(mut draft), mut memory) = (self.draft.take(), std::mem::take(&mut self.memory)) else {
            return Err(WorkError::Lost);
        };
        let (operator, destinations) = (self.config.operator.clone(), self.shared.destinations());
        let cluster_uid = self.config.cluster_uid.clone();
        let (reader, runtime, files_max) = (self.reader.clone(), Handle::current(), self.config.limits.files_max);
        let planned = tokio::task::spawn_blocking(move || {
            let time_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
            let again = Again::new(reader, runtime);
            let context = Context {
                operator: &operator,
                cluster_uid: &cluster_uid,
                destinations: &destinations,
                files_max,
                time_s,
                again: &again,
            };
            let report = Planner::new(&context, &mut draft, &mut memory).write(&batch);
            (report, draft, memory)
        });
        let (report, draft, memory) = planned.await.map_err(|_| WorkError::Lost)?;
        (self.memory, self.draft) = (memory, Some(draft));
        Ok(report?)
    }

    /// What the remote has now is unknown, so the draft is of no use.
    fn discard(&mut self) {
        if let Some(draft) = self.draft.take() {
            draft.discard();
        }
    }

    async fn push(&mut self, remote: &Remote) -> Result<Pushed, WorkError> {
        let (Some(draft), Some(clone)) = (&mut self.draft, &mut self.clone) else { return Err(WorkError::Lost) };
        let Some(new) = draft.head().filter(|_| draft.is_ahead()) else { return Ok(Pushed::Done) };
        if !self.config.term.is_on() {
            return Err(WorkError::TermOver);
        }
        let started = Instant::now();
        let pushed = clone.push(remote, draft.base().as_ref(), &new).await?;
        self.metrics.push_seconds.get_or_create(&self.labels).observe(started.elapsed().as_secs_f64());
        if pushed == Pushed::Done {
            draft.rebase_on_head();
        }
        Ok(pushed)
    }

    fn done(&mut self, Batch { pending, ticket, report, started }: Batch) {
        self.attempts.clear();
        let depth = self.shared.acknowledge(ticket, started);
        self.metrics.note(&self.labels, &report, depth);
        let changes = pending.iter().filter_map(|pending| match &pending.item {
            Item::Change { seen_at, .. } => Some(seen_at),
            Item::Seed { .. } => None,
        });
        self.metrics.lag(&self.labels, changes.map(Instant::elapsed));
        if let Some(head) = self.draft.as_ref().and_then(Draft::head).filter(|_| report.commits > 0) {
            tracing::info!(branch = %self.config.branch, commit = %head, commits = report.commits,
                written = report.written, deleted = report.deleted, "pushed");
        }
        let head = self.draft.as_ref().and_then(Draft::head);
        let known = self.shared.destinations();
        self.looked();
        if let Some(Err(error)) = self.draft.as_mut().map(|draft| self.folders.leave(draft, &known)) {
            // Whoever reads it next finds it damaged, too.
            tracing::debug!(branch = %self.config.branch, %error, "failed to read what was pushed");
        }
        self.status.send_modify(|status| {
            (status.head, status.acknowledged, status.queue_depth, status.failure) = (head, ticket, depth, None);
            status.note(report.destinations, &known);
        });
    }

    async fn failed(&mut self, error: &WorkError, attempts: u32) {
        // A push may have arrived, or a plan have failed half-way.
        self.discard();
        let failure = failure(error, attempts, &self.config.clone_dir);
        tracing::warn!(branch = %self.config.branch, attempts, reason = failure.reason.as_str(), "{}", failure.message);
        if let Some(clone) = &self.clone {
            clone.remove_unfinished();
        }
        let depth = self.shared.depth();
        self.metrics.failed(&self.labels, failure.reason);
        self.metrics.queue_depth.get_or_create(&self.labels).set(i64::try_from(depth).unwrap_or(i64::MAX));
        self.status.send_modify(|status| (status.failure, status.queue_depth) = (Some(failure), depth));
        if is_damage(error) {
            let remade = match &mut self.clone {
                Some(clone) => clone.remake().await,
                None => Ok(()),
            };
            if let Err(error) = remade {
                tracing::warn!(branch = %self.config.branch, "failed to make the clone again: {error}");
                self.clone = None;
            }
        }
    }

    /// Housekeeping is not work: it fails quietly and is tried again.
    async fn tidy(&mut self) {
        let Some(_turn) = self.config.turns.take().await else { return };
        let remote = self.shared.remote();
        // What we left there is to be compared before it may be collected.
        self.draft = None;
        let tidied = match self.prepare(&remote).await {
            Ok(()) => self.collect().await,
            Err(error) => Err(error),
        };
        if let Err(error) = tidied {
            tracing::debug!(branch = %self.config.branch, "failed to tidy the clone: {error}");
            self.draft = None;
        }
    }

    async fn collect(&mut self) -> Result<(), WorkError> {
        let (Some(clone), Some(draft)) = (&mut self.clone, self.draft.take()) else { return Err(WorkError::Lost) };
        let head = draft.base();
        drop(draft);
        clone.collect().await?;
        self.draft = Some(Draft::open(&clone.repository, head.as_ref()).map_err(PlanError::from)?);
        Ok(())
    }

    fn wants_tidying(&self, housekeeping: Housekeeping) -> bool {
        self.clone.as_ref().is_some_and(|clone| clone.packs() >= housekeeping.packs_min())
    }
}

/// Counts a branch that is at work.
struct Active(Gauge);

impl Active {
    fn new(metrics: &GitMetrics, labels: &BranchLabels) -> Self {
        let gauge = metrics.active_workers.get_or_create_owned(labels);
        gauge.inc();
        Self(gauge)
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Objects that are not as git wrote them.
fn is_damage(error: &WorkError) -> bool {
    matches!(error, WorkError::Plan(PlanError::Draft(DraftError::Read { .. } | DraftError::Kind(..))))
}

pub(super) type Destinations = Arc<BTreeMap<DestinationId, Destination>>;
