//! One controller at work: owns its queue and its ledger, feeds its workers,
//! saves what must survive.
//!
//! Invariant: one task owns all of it.

mod intake;

use std::sync::Arc;
use std::time::Duration;

use tidegate_model::ObjectKey;
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use crate::clock::{Clock, stopped};
use crate::gate::Gate;
use crate::inbox::{Heard, Inbox};
use crate::indexer::Subscription;
use crate::known::KnownKeys;
use crate::ledger::Ledger;
use crate::left::Left;
use crate::queue::{Cause, Position, Priority, Queue, Taken};
use crate::reader::{FEED_BATCHES_MAX, Feed, Reader};
use crate::rows::{self, Unfinished};
use crate::saves::{Saved, Saves};
use crate::stalled::{Marked, Marks, Outcome};
use crate::sweep;
use crate::worker::{Finished, Run, Worker};
use crate::{ApiError, Client, Controller, ControllerReport, Fence, Plane, StateRow, verdict};

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
    saves: Saves,
    sweep: sweep::Sweeps,
    gate: Gate,
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
        let marks = Marks::new(name.clone(), kind.clone(), job.client.clone());
        let left = Left::read(&*job.plane, name, kind, &clock, marks).await?;
        let (sender, feed) = mpsc::channel(FEED_BATCHES_MAX);
        let reader = Reader { plane: job.plane.clone(), controller: name.clone(), kind: kind.clone(), feed: sender };
        let reader = AbortOnDrop(tokio::spawn(reader.run(left.checkpoint)).abort_handle());
        let worker = Arc::new(Worker {
            reconciler: reconciler.clone(),
            deadline: options.deadline,
            attempts_max: options.attempts_max,
            kind: kind.clone(),
            client: job.client.clone(),
        });
        let saves = Saves::new(job.plane.clone(), name.clone(), job.fence.clone(), job.save_rows_max);
        let (indexes, touches) = Subscription::join(std::mem::take(&mut job.subscriptions), &kind.resource);
        Ok(Self {
            sweep: sweep::Sweeps::new(job.plane.clone(), name.clone(), kind.clone(), options.resync),
            worker,
            clock,
            queue: left.queue,
            ledger: left.ledger,
            known: KnownKeys::default(),
            received: left.checkpoint,
            workers: JoinSet::new(),
            marks: left.marks,
            inbox: Inbox::new(feed, touches),
            held: None,
            saves,
            gate: Gate::new(indexes),
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
                saved = self.saves.ended(), if self.saves.is_running() => self.take_saved(saved?),
                _ = tick.tick() => self.save(),
                marked = self.marks.next() => self.take_marked(&marked),
                heard = self.inbox.next(), if self.held.is_none() => match heard {
                    Heard::Feed(feed) => self.take_feed(feed),
                    Heard::Touched(touched) => self.hear_touched(touched),
                },
                Some(swept) = self.sweep.next(), if self.held.is_none() => self.take_feed(swept),
                Some(finished) = self.workers.join_next() => self.take_finished(finished),
                () = tokio::time::sleep_until(due) => {}
            }
        }
    }

    fn next_due(&self) -> Instant {
        let far = Instant::now() + Duration::from_secs(3600);
        // What is due while nobody is free starts when somebody is.
        let due = self.queue.next_due().filter(|_| self.has_free_worker() && self.gate.is_open());
        let due = due.into_iter().chain(self.marks.next_due()).min();
        due.map_or(far, |due| self.clock.instant(due).min(far))
    }

    fn start_workers(&mut self) {
        while self.has_free_worker() {
            let Some(Taken { key, failures, generation }) = self.gate.take(&mut self.queue, self.clock.now()) else {
                return;
            };
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
        self.workers.len() < self.job.controller.options.concurrency.max(1)
    }

    fn take_finished(&mut self, finished: Result<Finished, tokio::task::JoinError>) {
        // A worker contains panics and is not aborted while we live.
        if let Ok(finished) = finished {
            self.settle(finished);
        }
    }

    fn settle(&mut self, finished: Finished) {
        let Finished { run, verdict, panicked, absent } = finished;
        self.counted.reconciles += 1;
        self.counted.panics += u64::from(panicked);
        let backoff = &self.job.controller.options.backoff;
        let (done, row) = verdict::settle(&run, verdict, self.ledger.row(&run.key), backoff, &self.clock);
        if let Some(row) = row.as_ref().filter(|row| row.failures > 0) {
            self.failed(&run.key, row);
        }
        if absent {
            self.ledger.absent(&run.key);
        }
        self.ledger.note(&run.key, row);
        self.queue.done(&run.key, done, self.clock.now());
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
        let Some(held) = self.held.as_ref().filter(|_| !self.saves.is_running()) else { return };
        let changes = self.fresh(held).map(rows::known).collect();
        self.saves.begin_known(changes);
    }

    fn save(&mut self) {
        self.publish();
        if self.saves.is_running() {
            return;
        }
        let report = serde_json::to_vec(&*self.job.report.borrow()).unwrap_or_default();
        let save = self.ledger.plan(&mut self.queue, self.received, report).unwrap_or_default();
        save.forgotten.iter().for_each(|key| self.known.remove(key));
        self.saves.begin(save);
    }

    fn take_saved(&mut self, saved: Option<Saved>) {
        match saved {
            None => {}
            Some(Saved::Known) => {
                if let Some(held) = self.held.take() {
                    self.take_known_feed(held);
                }
            }
            Some(Saved::Save { save, requests }) => {
                for key in self.ledger.saved(&mut self.queue, save) {
                    self.marks.want(key, self.clock.now());
                }
                requests.iter().for_each(|request| self.release(request));
                self.save_known();
            }
        }
    }

    fn release(&mut self, request: &StateRow) {
        let keys = self.ledger.release(&request.name, self.clock.wall_ms(self.clock.now()));
        tracing::info!(controller = %self.job.controller.name, keys = keys.len(), "an operator has what failed tried now");
        for key in &keys {
            tracing::debug!(controller = %self.job.controller.name, %key, "released");
            self.add(key, Priority::High, None, Cause::Renewed);
        }
    }

    async fn drain(mut self) -> Result<(), ApiError> {
        // The next life reads it again.
        self.held = None;
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
        let saved = self.saves.ended().await?;
        self.take_saved(saved);
        self.save();
        self.saves.ended().await.map(drop)
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
            lease_namespace: self.job.fence.namespace.to_string(),
            lease_name: self.job.fence.name.to_string(),
            lease_transitions: self.job.fence.transitions,
            queue_depth: counts.ready,
            oldest_waiting_ms: self.queue.oldest_waiting().map(|since| self.clock.wall_ms(since)),
            in_flight: counts.running,
            delayed: counts.delayed,
            retrying: counts.retrying,
            quarantined: counts.parked,
            reconciles: self.counted.reconciles,
            failures: self.counted.failures,
            panics: self.counted.panics,
            checkpoint: checkpoint.map(|version| version.to_string()),
            received: self.received.map(|version| version.to_string()),
            behind_since_ms: self.counted.behind_since,
            stopped: None,
        });
    }
}
