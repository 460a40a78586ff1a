//! One controller at work: owns its queue and its ledger, feeds its workers,
//! saves what must survive.
//!
//! Invariant: one task owns all of it. One write of state is on its way at a
//! time, so writes take effect in the order in which they were decided.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tidegate_model::ObjectKey;
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use crate::clock::{Clock, millis, spread, stopped};
use crate::inbox::{Heard, Inbox};
use crate::index::Touched;
use crate::indexer::Subscription;
use crate::known::KnownKeys;
use crate::ledger::{Ledger, Save};
use crate::queue::{Cause, Done, Position, Priority, Queue, Taken, Trigger};
use crate::reader::{FEED_BATCHES_MAX, Feed, Happened, Listed, Reader, Seen};
use crate::rows::{self, Stalled, Unfinished};
use crate::stalled::{Marked, Marks, Outcome};
use crate::sweep;
use crate::worker::{Finished, Run, Verdict, Worker};
use crate::{ApiError, Client, Controller, ControllerReport, Fence, Plane, StateChange, StateRow};

/// Everything that a driver is given.
pub(crate) struct Job {
    pub controller: Controller,
    pub plane: Arc<dyn Plane>,
    pub client: Client,
    pub fence: Fence,
    pub save_interval: Duration,
    pub save_rows_max: usize,
    pub drain: Duration,
    pub wall_ms: fn() -> u64,
    pub report: watch::Sender<ControllerReport>,
    /// True when it is time to stop.
    pub stop: watch::Receiver<bool>,
    pub subscriptions: Vec<Subscription>,
}

pub(crate) struct Driver {
    job: Job,
    worker: Arc<Worker>,
    clock: Clock,
    queue: Queue,
    ledger: Ledger,
    known: KnownKeys,
    received: Position,
    workers: JoinSet<Finished>,
    marks: Marks,
    inbox: Inbox,
    /// Waits until the keys in it are known.
    held: Option<Feed>,
    saving: Option<Saving>,
    sweep: sweep::Sweeps,
    /// Indexes that have not been audited: nothing runs before.
    audits_missing: usize,
    counted: Counted,
    _reader: AbortOnDrop,
}

#[derive(Default)]
struct Counted {
    reconciles: u64,
    failures: u64,
    panics: u64,
    /// Since when the checkpoint stands although events have come.
    behind_since: Option<u64>,
}

struct Saving {
    write: BoxFuture<'static, Result<Vec<StateRow>, ApiError>>,
    /// `None` for the keys of `held`.
    save: Option<Save>,
}

pub(crate) struct AbortOnDrop(pub AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Driver {
    /// Reads what an earlier life left.
    pub async fn start(mut job: Job) -> Result<Self, ApiError> {
        let clock = Clock::start((job.wall_ms)());
        let Controller { name, kind, reconciler, options, .. } = &job.controller;
        let (mut queue, mut ledger) = (Queue::default(), Ledger::default());
        let mut marks = Marks::new(kind.clone(), job.client.clone());
        let rows = job.plane.state_read(name, rows::CHECKPOINT, None).await?;
        let checkpoint = rows.iter().find(|row| row.name == rows::CHECKPOINT).and_then(rows::read_checkpoint);
        ledger.restore_checkpoint(checkpoint);
        let mut after: Option<String> = None;
        loop {
            let rows = job.plane.state_read(name, rows::UNFINISHED, after.as_deref()).await?;
            let Some(last) = rows.last() else { break };
            after = Some(last.name.clone());
            for (key, row) in rows.iter().filter_map(|row| rows::read_unfinished(kind, row)) {
                let due = row.due_ms.map(|due| clock.at_wall_ms(due));
                let failures = if due.is_none() { row.failures.max(1) } else { row.failures };
                queue.restore(&key, failures, row.generation, due, clock.now());
                if row.stalled.is_some_and(|stalled| stalled != Stalled::Shown) {
                    marks.want(key.clone(), clock.now());
                }
                ledger.restore(key, row);
            }
        }
        let (sender, feed) = mpsc::channel(FEED_BATCHES_MAX);
        let reader = Reader { plane: job.plane.clone(), controller: name.clone(), kind: kind.clone(), feed: sender };
        let reader = AbortOnDrop(tokio::spawn(reader.run(checkpoint)).abort_handle());
        let worker = Arc::new(Worker {
            reconciler: reconciler.clone(),
            deadline: options.deadline,
            attempts_max: options.attempts_max,
            kind: kind.clone(),
            client: job.client.clone(),
        });
        let (audits_missing, touches) = Subscription::join(std::mem::take(&mut job.subscriptions), &kind.resource);
        Ok(Self {
            sweep: sweep::Sweeps::new(job.plane.clone(), kind.clone(), options.resync),
            worker,
            clock,
            queue,
            ledger,
            known: KnownKeys::default(),
            received: checkpoint,
            workers: JoinSet::new(),
            marks,
            inbox: Inbox::new(feed, touches),
            held: None,
            saving: None,
            audits_missing,
            counted: Counted::default(),
            _reader: reader,
            job,
        })
    }

    /// Until it is told to stop, then drains and saves. An error means that
    /// the term must end: state could not be saved.
    pub async fn run(mut self) -> Result<(), ApiError> {
        let mut tick = tokio::time::interval(self.job.save_interval);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut stop = self.job.stop.clone();
        loop {
            while let Some(finished) = self.workers.try_join_next() {
                self.take_finished(finished);
            }
            self.start_workers();
            self.start_marks();
            let due = self.next_due();
            tokio::select! {
                // In this order: what is rare, what just changed, the rest.
                // Runs that ended do not wait for any of it: see above.
                biased;
                () = stopped(&mut stop) => return self.drain().await,
                rows = write(&mut self.saving), if self.saving.is_some() => self.take_saved(rows?),
                _ = tick.tick() => self.save(),
                marked = self.marks.next() => self.take_marked(&marked),
                heard = self.inbox.next(), if self.held.is_none() => match heard {
                    Heard::Feed(feed) => self.take_feed(feed),
                    Heard::Touched(touched) => self.hear_touched(touched),
                },
                Some(keys) = self.sweep.next() => self.take_sweep(&keys),
                Some(finished) = self.workers.join_next() => self.take_finished(finished),
                () = tokio::time::sleep_until(due) => {}
            }
        }
    }

    fn next_due(&self) -> Instant {
        let far = Instant::now() + Duration::from_secs(3600);
        // What is due while nobody is free starts when somebody is.
        let due = self.queue.next_due().filter(|_| self.has_free_worker());
        let due = due.into_iter().chain(self.marks.next_due()).min();
        due.map_or(far, |due| self.clock.instant(due).min(far))
    }

    fn start_workers(&mut self) {
        while self.has_free_worker() {
            let Some(Taken { key, failures, generation }) = self.queue.take(self.clock.now()) else { return };
            let row = self.ledger.row(&key);
            let attempts = if failures == 0 { 0 } else { row.map_or(0, |row| row.attempts) };
            let gone = self.ledger.is_gone(&key);
            self.workers.spawn(self.worker.clone().run(Run { key, generation, failures, attempts, gone }));
        }
    }

    fn start_marks(&mut self) {
        while let Some(key) = self.marks.take(self.clock.now()) {
            // Otherwise it is wanted again when its row is saved.
            if let Some(wanted) = self.ledger.stalled_due(&key) {
                self.marks.write(key, wanted);
            }
        }
    }

    fn take_marked(&mut self, marked: &Marked) {
        self.marks.ended(marked, self.clock.now());
        if marked.outcome == Outcome::Settled {
            self.ledger.stalled_is(&marked.key, marked.shown);
            // What it should say may be another by now.
            if self.ledger.stalled_due(&marked.key).is_some() {
                self.marks.want(marked.key.clone(), self.clock.now());
            }
        }
    }

    fn has_free_worker(&self) -> bool {
        self.audits_missing == 0 && self.workers.len() < self.job.controller.options.concurrency.max(1)
    }

    fn take_feed(&mut self, feed: Feed) {
        // Known before it is reconciled: what a crash leaves behind is found.
        if self.fresh(&feed).next().is_some() {
            self.held = Some(feed);
            self.save_known();
        } else {
            self.take_known_feed(feed);
        }
    }

    /// Keys that must be known before they are reconciled. Of those in events
    /// not only what came: an earlier term may have seen its end already, and
    /// forgotten it, without having saved that it did.
    fn fresh<'f>(&'f self, feed: &'f Feed) -> Box<dyn Iterator<Item = &'f ObjectKey> + 'f> {
        match feed {
            Feed::Listed { fresh, .. } | Feed::Touched { fresh, .. } => Box::new(fresh.iter()),
            Feed::Events { events, .. } => {
                Box::new(events.iter().map(|seen| &seen.key).filter(|key| !self.known.contains(key)))
            }
            Feed::ListEnd { .. } => Box::new(std::iter::empty()),
        }
    }

    /// An index may know an object before our own reader does, and an object
    /// that is reconciled must be known.
    fn hear_touched(&mut self, touched: Touched) {
        let fresh = touched.keys().iter().filter(|key| !self.known.contains(key)).cloned().collect();
        self.take_feed(Feed::Touched { touched, fresh });
    }

    fn take_known_feed(&mut self, feed: Feed) {
        match feed {
            Feed::Touched { touched, fresh } => {
                fresh.iter().for_each(|key| self.known.insert(key));
                self.take_touched(&touched);
            }
            Feed::Listed { keys, gone, fresh: _ } => {
                for Listed { key, generation } in &keys {
                    self.ledger.came(key);
                    self.ledger.doubt_stalled(key);
                    self.known.insert(key);
                    self.add(key, Priority::Low, Some(None), Cause::State { generation: *generation });
                }
                for key in &gone {
                    self.ledger.went(key);
                    self.known.insert(key);
                    self.add(key, Priority::Low, Some(None), Cause::Release);
                }
            }
            Feed::ListEnd { version } => self.received = Some(version),
            Feed::Events { events, reached } => {
                for Seen { key, what, after } in &events {
                    let cause = match what {
                        Happened::Changed { generation } => Cause::State { generation: *generation },
                        Happened::Came | Happened::Went => Cause::Release,
                    };
                    self.known.insert(key);
                    match what {
                        Happened::Came => self.ledger.came(key),
                        Happened::Went => self.ledger.went(key),
                        Happened::Changed { .. } => {}
                    }
                    self.add(key, Priority::High, Some(Some(*after)), cause);
                }
                self.received = Some(reached);
            }
        }
    }

    fn take_touched(&mut self, touched: &Touched) {
        if touched.is_audit() {
            self.audits_missing -= 1;
        }
        if touched.is_everything() {
            self.sweep.begin();
        }
        // Found again by the next audit, so nothing is owed.
        let priority = if touched.is_audit() { Priority::Low } else { Priority::High };
        for key in touched.keys() {
            self.ledger.touched(key);
            self.add(key, priority, None, Cause::Touch);
        }
        for key in touched.renewed_keys() {
            self.add(key, priority, None, Cause::Renewed);
        }
    }

    fn take_sweep(&mut self, keys: &[Listed]) {
        for Listed { key, generation } in keys {
            self.add(key, Priority::Low, None, Cause::State { generation: *generation });
        }
    }

    fn add(&mut self, key: &ObjectKey, priority: Priority, owed: Option<Position>, cause: Cause) {
        self.queue.add(key, Trigger { priority, owed, cause }, self.clock.now());
    }

    fn take_finished(&mut self, finished: Result<Finished, tokio::task::JoinError>) {
        // A worker contains panics and is not aborted while we live.
        if let Ok(finished) = finished {
            self.settle(finished);
        }
    }

    fn settle(&mut self, finished: Finished) {
        let Finished { run: Run { key, generation, failures, attempts, .. }, verdict, panicked, absent } = finished;
        let now = self.clock.now();
        self.counted.reconciles += 1;
        self.counted.panics += u64::from(panicked);
        let before = self.ledger.row(&key).filter(|_| failures > 0);
        let since_ms = before.map_or(self.clock.wall_ms(now), |row| row.since_ms);
        let failures = failures + 1;
        // What an object shows is taken away however its key leaves.
        let shows = self.ledger.row(&key).is_some_and(|row| row.stalled.is_some());
        let row = |failures, attempts, due: Option<u64>, error| {
            let due_ms = due.map(|due| self.clock.wall_ms(due));
            let stalled = (shows || due.is_none()).then_some(Stalled::Due);
            Some(Unfinished { failures, attempts, generation, due_ms, error, since_ms, stalled })
        };
        let (done, row) = match verdict {
            Verdict::Done if shows => {
                let row = row(0, 0, Some(now), String::new());
                (Done::Success, row.map(|row| Unfinished { stalled: Some(Stalled::Leaving), ..row }))
            }
            Verdict::Done => (Done::Success, None),
            Verdict::Again(delay) => {
                let due = now.saturating_add(millis(delay));
                (Done::Again { due }, row(0, 0, Some(due), String::new()))
            }
            Verdict::Retry { counts, error } => {
                let delay = self.job.controller.options.backoff.delay(failures, spread((&key, failures)));
                let due = now + millis(delay);
                (Done::Retry { due }, row(failures, attempts + u32::from(counts), Some(due), error))
            }
            Verdict::Park { error } => (Done::Park, row(failures, attempts + 1, None, error)),
        };
        if let Some(row) = row.as_ref().filter(|row| row.failures > 0) {
            self.failed(&key, row);
        }
        if absent {
            self.ledger.absent(&key);
        }
        self.ledger.note(&key, row);
        self.queue.done(&key, done, now);
    }

    fn failed(&mut self, key: &ObjectKey, row: &Unfinished) {
        self.counted.failures += 1;
        let (controller, error) = (&self.job.controller.name, &row.error);
        if row.is_quarantined() {
            tracing::error!(%controller, %key, %error, "quarantined");
        } else {
            tracing::debug!(%controller, %key, %error, failures = row.failures, "a reconcile failed");
        }
    }

    fn save_known(&mut self) {
        if self.saving.is_some() {
            return;
        }
        let Some(held) = &self.held else { return };
        let changes = self.fresh(held).map(rows::known).collect();
        self.saving = Some(Saving { write: self.write(changes, Releases::Leave), save: None });
    }

    fn save(&mut self) {
        self.publish();
        if self.saving.is_some() {
            return;
        }
        let report = serde_json::to_vec(&*self.job.report.borrow()).unwrap_or_default();
        let save = self.ledger.plan(&mut self.queue, self.received, report).unwrap_or_default();
        save.forgotten.iter().for_each(|key| self.known.remove(key));
        let write = self.write(save.changes.clone(), Releases::Read);
        self.saving = Some(Saving { write, save: Some(save) });
    }

    fn write(
        &self,
        changes: Vec<StateChange>,
        releases: Releases,
    ) -> BoxFuture<'static, Result<Vec<StateRow>, ApiError>> {
        let (plane, name, fence) = (self.job.plane.clone(), self.job.controller.name.clone(), self.job.fence.clone());
        let rows_max = self.job.save_rows_max.max(1);
        Box::pin(async move {
            // In order: what is said to be recorded comes before the
            // checkpoint that relies on it.
            for chunk in changes.chunks(rows_max) {
                plane.state_write(&name, Some(&fence), chunk.to_vec()).await?;
            }
            match releases {
                Releases::Read => plane.state_read(&name, rows::RELEASE, None).await,
                Releases::Leave => Ok(Vec::new()),
            }
        })
    }

    fn take_saved(&mut self, releases: Vec<StateRow>) {
        let Some(Saving { save, .. }) = self.saving.take() else { return };
        match save {
            None => {
                if let Some(held) = self.held.take() {
                    self.take_known_feed(held);
                }
            }
            Some(save) => {
                for key in self.ledger.saved(&mut self.queue, save) {
                    self.marks.want(key, self.clock.now());
                }
                releases.into_iter().for_each(|row| self.release(&row));
                self.save_known();
            }
        }
    }

    fn release(&mut self, request: &StateRow) {
        let now = self.clock.wall_ms(self.clock.now());
        for key in self.ledger.release(&request.name, now) {
            tracing::info!(controller = %self.job.controller.name, %key, "released from quarantine");
            self.add(&key, Priority::High, None, Cause::Release);
        }
    }

    async fn drain(mut self) -> Result<(), ApiError> {
        let until = Instant::now() + self.job.drain;
        while !self.workers.is_empty() {
            match tokio::time::timeout_at(until, self.workers.join_next()).await {
                Ok(Some(finished)) => self.take_finished(finished),
                Ok(None) => break,
                Err(_) => {
                    tracing::warn!(controller = %self.job.controller.name, left = self.workers.len(), "reconciles did not end in time: they run again at the next start");
                    self.workers.shutdown().await;
                }
            }
        }
        if self.saving.is_some() {
            let rows = write(&mut self.saving).await?;
            self.take_saved(rows);
        }
        if self.saving.is_none() {
            self.save();
        }
        write(&mut self.saving).await.map(drop)
    }

    fn publish(&mut self) {
        let counts = self.queue.counts();
        let checkpoint = self.ledger.checkpoint();
        let is_behind = self.queue.owed_without([].iter()).is_some();
        let now = self.clock.wall_ms(self.clock.now());
        self.counted.behind_since = is_behind.then(|| self.counted.behind_since.unwrap_or(now));
        let Controller { name, kind, .. } = &self.job.controller;
        self.job.report.send_replace(ControllerReport {
            controller: name.to_string(),
            api_version: kind.api_version.to_string(),
            kind: kind.kind.to_string(),
            leader: self.job.fence.holder.to_string(),
            queue_depth: counts.ready,
            oldest_waiting_ms: self.queue.oldest_waiting().map(|since| self.clock.wall_ms(since)),
            in_flight: counts.running,
            delayed: counts.delayed,
            quarantined: counts.parked,
            reconciles: self.counted.reconciles,
            failures: self.counted.failures,
            panics: self.counted.panics,
            checkpoint: checkpoint.map(|version| version.to_string()),
            received: self.received.map(|version| version.to_string()),
            behind_since_ms: self.counted.behind_since,
        });
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Releases {
    Read,
    Leave,
}

async fn write(saving: &mut Option<Saving>) -> Result<Vec<StateRow>, ApiError> {
    match saving {
        Some(saving) => (&mut saving.write).await,
        None => Ok(Vec::new()),
    }
}
