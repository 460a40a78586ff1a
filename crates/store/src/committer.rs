//! The one writer: takes what waits, makes it durable with one write, then
//! shows it.
//!
//! Invariant: view, hub, answer, in this order and only after the engine said
//! that the batch is durable. After a failed write nothing more is written and
//! nothing of the batch is shown: what is on disk is unknown until a restart.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use tidegate_model::ResourceVersion;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use crate::engine::{Change, SegmentId};
use crate::head::{Head, Segment};
use crate::shared::Shared;
use crate::stage::{Stage, Staged};
use crate::{CommitError, Committed, StoreError, Transaction, View};

/// Transactions of one write. More would only make the first of them wait.
const BATCH_TRANSACTIONS_MAX: usize = 1024;
/// Bytes of one write, unless a single transaction has more.
const BATCH_BYTES_MAX: usize = 16 << 20;

pub(crate) enum Command {
    Commit(Request),
    /// Forget the segments that left the window; answers with those that the
    /// engine may now drop.
    Trim(oneshot::Sender<Vec<SegmentId>>),
    /// After what was queued before it.
    Close(oneshot::Sender<()>),
}

pub(crate) struct Request {
    pub transaction: Transaction,
    pub bytes: usize,
    pub answer: oneshot::Sender<Answer>,
    /// Its share of the queue.
    pub permit: OwnedSemaphorePermit,
}

type Answer = Result<Committed, CommitError>;
type Answers = Vec<(oneshot::Sender<Answer>, Answer)>;

pub(crate) struct Committer {
    shared: Arc<Shared>,
    queue: mpsc::Receiver<Command>,
}

impl Committer {
    pub fn new(shared: Arc<Shared>, queue: mpsc::Receiver<Command>) -> Self {
        Self { shared, queue }
    }

    /// Ends with the last handle of the store, or when it is closed.
    pub fn run(mut self) {
        let _guard = PanicGuard(self.shared.clone());
        let mut next = None;
        while let Some(command) = next.take().or_else(|| self.queue.blocking_recv()) {
            match command {
                Command::Commit(request) => next = self.commit(request),
                Command::Trim(answer) => drop(answer.send(self.trim())),
                Command::Close(answer) => {
                    self.queue.close();
                    self.refuse_rest();
                    self.shared.hub.close();
                    // Whoever closed may have gone; the store is closed all the same.
                    let _ = answer.send(());
                    return;
                }
            }
        }
        self.shared.hub.close();
    }

    /// Commits the request with all that wait behind it; returns the command
    /// that ended the batch, if one did.
    fn commit(&mut self, first: Request) -> Option<Command> {
        let mut bytes = first.bytes;
        let mut batch = vec![first];
        let mut end = None;
        while batch.len() < BATCH_TRANSACTIONS_MAX && bytes < BATCH_BYTES_MAX {
            match self.queue.try_recv() {
                Ok(Command::Commit(request)) => {
                    bytes += request.bytes;
                    batch.push(request);
                }
                Ok(other) => {
                    end = Some(other);
                    break;
                }
                Err(_) => break,
            }
        }
        self.commit_batch(batch);
        end
    }

    fn commit_batch(&self, batch: Vec<Request>) {
        let (answers, permits): (Answers, Vec<_>) = match self.head_with_room() {
            Ok(head) => self.admit(batch, head),
            Err(reason) => refuse(batch, &CommitError::Unavailable(reason)),
        };
        drop(permits);
        let refused = answers.iter().filter(|(_, answer)| answer.is_err()).count();
        self.shared.counters.transactions.fetch_add((answers.len() - refused) as u64, Relaxed);
        self.shared.counters.refused.fetch_add(refused as u64, Relaxed);
        for (sender, answer) in answers {
            // A writer that went away is not told; its transaction stands.
            drop(sender.send(answer));
        }
    }

    fn admit(&self, batch: Vec<Request>, head: Head) -> (Answers, Vec<OwnedSemaphorePermit>) {
        let view = self.shared.view();
        let options = &self.shared.options;
        let mut stage = Stage::new(&view, head, options.clock.now_ms(), options.version_stride);
        let admitted = batch.into_iter().map(|request| {
            let Request { transaction, answer, permit, .. } = request;
            ((answer, stage.admit(transaction)), permit)
        });
        let (mut answers, permits): (Answers, Vec<_>) = admitted.unzip();
        let written = stage.finish().and_then(|staged| self.write(staged));
        if let Err(error) = written {
            let reason = self.shared.fail(error.to_string());
            for (_, answer) in answers.iter_mut().filter(|(_, answer)| answer.is_ok()) {
                *answer = Err(CommitError::Unavailable(reason.clone()));
            }
        }
        (answers, permits)
    }

    fn write(&self, staged: Option<Staged>) -> Result<(), StoreError> {
        let Some(Staged { head, changes, events }) = staged else { return Ok(()) };
        let newest = head.newest;
        self.persist(changes, newest)?;
        // Before the view: whoever reads an object there can tell whether what
        // judges it is as new.
        self.shared.last_changes.note(&events);
        self.show(head)?;
        self.shared.hub.publish(&events, newest);
        self.shared.counters.events.fetch_add(events.len() as u64, Relaxed);
        Ok(())
    }

    fn persist(&self, changes: Vec<Change>, newest: ResourceVersion) -> Result<(), StoreError> {
        let started = Instant::now();
        self.shared.engine.write(changes, newest)?;
        self.shared.counters.write_done(started.elapsed());
        Ok(())
    }

    fn show(&self, head: Head) -> Result<(), StoreError> {
        self.shared.publish(View::new(head, self.shared.engine.snapshot()?));
        Ok(())
    }

    /// The head, with a segment that takes the next events.
    fn head_with_room(&self) -> Result<Head, String> {
        if let Some(reason) = self.shared.failure() {
            return Err(reason.clone());
        }
        let mut head = self.shared.view().head().clone();
        let now_ms = self.shared.options.clock.now_ms();
        if head.is_full(&self.shared.options, now_ms) {
            self.roll(&mut head, now_ms).map_err(|error| self.shared.fail(error.to_string()))?;
        }
        Ok(head)
    }

    fn roll(&self, head: &mut Head, now_ms: u64) -> Result<(), StoreError> {
        if let Some(full) = head.segments.last() {
            self.shared.engine.segment_seal(full.id)?;
        }
        // An id is not used again, even if the rows that named it are gone.
        let known = head.segments.iter().map(|segment| segment.id).chain(self.shared.engine.segment_list());
        let id = known.max().map_or(1, |id| id + 1);
        self.shared.engine.segment_create(id)?;
        head.segments.push(Segment::new(id, head.newest.next(), now_ms));
        Ok(())
    }

    fn trim(&self) -> Vec<SegmentId> {
        if self.shared.failure().is_some() {
            return Vec::new();
        }
        self.try_trim().unwrap_or_else(|error| {
            self.shared.fail(error.to_string());
            Vec::new()
        })
    }

    /// A store that nobody writes to outlives its window, too: then the segment
    /// that is being filled makes room for an empty one and goes with the rest.
    /// The new one is created first; after a crash in between it is one that no
    /// row names, which the next start drops.
    fn try_trim(&self) -> Result<Vec<SegmentId>, StoreError> {
        let options = &self.shared.options;
        let now_ms = options.clock.now_ms();
        let mut head = self.shared.view().head().clone();
        if head.is_past(options, now_ms) {
            self.roll(&mut head, now_ms)?;
        }
        let count = head.expired_segments(options, now_ms);
        if count == 0 {
            return Ok(Vec::new());
        }
        let (dropped, changes) = head.drop_segments(count);
        self.persist(changes, head.newest)?;
        self.show(head)?;
        Ok(dropped)
    }

    fn refuse_rest(&mut self) {
        while let Ok(command) = self.queue.try_recv() {
            if let Command::Commit(request) = command {
                drop(request.answer.send(Err(CommitError::Closed)));
            }
        }
    }
}

/// Without its committer a store takes no writes: then it says so.
struct PanicGuard(Arc<Shared>);

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail("the committer panicked; see the log for it".into());
            self.0.hub.close();
        }
    }
}

fn refuse(batch: Vec<Request>, error: &CommitError) -> (Answers, Vec<OwnedSemaphorePermit>) {
    batch.into_iter().map(|request| ((request.answer, Err(error.clone())), request.permit)).unzip()
}
