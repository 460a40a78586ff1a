//! One batch: a look at the remote, a plan on what is there, a push.
//!
//! Invariant: a batch is acknowledged after its push and only then. A push that
//! was not answered is remembered, because it may have arrived.

use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::metrics::gauge::Gauge;
use tidegate_git::{Draft, Pushed, Remote};
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::again::Again;
use super::attempt::{Attempt, Batch, is_open};
use super::clone::{BareClone, CloneError};
use super::foreign::Folders;
use super::metrics::{BranchLabels, GitMetrics};
use super::plan::{Context, PlanError, Planner, Report};
use super::queue::{Item, Pending};
use super::rivals::Rivals;
use super::turns::Turn;
use super::worker::{WorkError, Worker};

impl Worker {
    /// Everything that waits, into the remote.
    pub(super) async fn work(&mut self) -> Result<(), WorkError> {
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
    pub(super) async fn prepare(&mut self, remote: &Remote) -> Result<(), WorkError> {
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
    pub(super) fn discard(&mut self) {
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
