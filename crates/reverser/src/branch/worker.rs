//! The task behind a branch: waits until a batch is due, has it written and
//! pushed (`work.rs`), and again.
//!
//! Invariant: whatever goes wrong is answered by looking at the remote again
//! and planning again on what is there.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tidegate_git::{Draft, DraftError, Program};
use tokio::sync::watch;
use tokio::time::Instant;

use super::attempt::Attempts;
use super::clone::{BareClone, CloneError, Housekeeping};
use super::destination::Destination;
use super::failure::failure;
use super::foreign::Folders;
use super::handle::{DestinationId, Shared};
use super::limits::Limits;
use super::message::Operator;
use super::metrics::{BranchLabels, GitMetrics};
use super::plan::PlanError;
use super::reader::Reader;
use super::status::BranchStatus;
use super::turns::Turns;
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
    pub clone: Option<BareClone>,
    /// On top of what the remote has, as far as we know.
    pub draft: Option<Draft>,
    /// When the remote is looked at although nothing changed here.
    look_at: Instant,
    pub folders: Folders,
    pub attempts: Attempts,
    pub memory: SecretMemory,
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
    pub(super) fn looked(&mut self) {
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

/// Objects that are not as git wrote them.
fn is_damage(error: &WorkError) -> bool {
    matches!(error, WorkError::Plan(PlanError::Draft(DraftError::Read { .. } | DraftError::Kind(..))))
}

pub(super) type Destinations = Arc<BTreeMap<DestinationId, Destination>>;
