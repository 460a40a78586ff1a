//! The store: one door for writers, many for readers.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use tidegate_model::{GroupResource, ResourceVersion};
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::committer::{Command, Committer, Request};
use crate::engine::Engine;
use crate::head::{Head, Window};
use crate::last_change::LastChange;
use crate::list::{self, ListRequest, Page};
use crate::maintenance::Maintenance;
use crate::shared::Shared;
use crate::{
    CommitError, Committed, ListError, OpenError, Options, Selection, Start, Stats, StoreError, Transaction, View,
    WatchError, Watcher, row,
};

/// What may wait for the committer beside the largest transaction, which must
/// not stop the small ones: 4,096 of 32 KiB.
const QUEUE_BESIDE_BYTES_MAX: usize = 128 << 20;

/// A cheap handle. The store ends with its last handle, or when it is closed.
#[derive(Clone)]
pub struct Store(Arc<Handle>);

struct Handle {
    shared: Arc<Shared>,
    queue: Mutex<Option<mpsc::Sender<Command>>>,
    queue_kib: Arc<Semaphore>,
    queue_kib_max: usize,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Dropped to stop the background.
    stop: Mutex<Option<std::sync::mpsc::Sender<()>>>,
}

impl Store {
    /// Opens the store in `dir`, or creates one.
    pub fn open(dir: &Path, options: Options) -> Result<Self, OpenError> {
        let engine = crate::open::open(dir, &options)?;
        Ok(Self::with_engine(Arc::new(engine), options)?)
    }

    /// For an engine of one's own; it is the store's alone from now on.
    pub fn with_engine(engine: Arc<dyn Engine>, options: Options) -> Result<Self, StoreError> {
        let head = match Head::load(&*engine.snapshot()?)? {
            Some(head) => head,
            None => begin_line(&*engine, &options)?,
        };
        drop_orphans(&*engine, &head)?;
        let view = View::new(head, engine.snapshot()?);
        Self::start(Arc::new(Shared::new(engine, options, view)))
    }

    fn start(shared: Arc<Shared>) -> Result<Self, StoreError> {
        let (queue, receiver) = mpsc::channel(shared.options.queue_transactions_max.max(1));
        let (stop, stopped) = std::sync::mpsc::channel();
        let committer = Committer::new(shared.clone(), receiver);
        let maintenance = Maintenance { shared: shared.clone(), queue: queue.downgrade(), stop: stopped };
        let threads =
            vec![spawn("store-commit", move || committer.run())?, spawn("store-upkeep", move || maintenance.run())?];
        let largest = shared.options.transaction_bytes_max;
        let queue_kib_max = kib(largest) + kib(largest.min(QUEUE_BESIDE_BYTES_MAX));
        Ok(Self(Arc::new(Handle {
            shared,
            queue: Mutex::new(Some(queue)),
            queue_kib: Arc::new(Semaphore::new(queue_kib_max)),
            queue_kib_max,
            threads: Mutex::new(threads),
            stop: Mutex::new(Some(stop)),
        })))
    }

    /// Returns when the transaction is on disk and visible to readers. If the
    /// future is dropped, the transaction may still be applied.
    pub async fn commit(&self, transaction: Transaction) -> Result<Committed, CommitError> {
        let bytes = self.check(&transaction)?;
        let share = u32::try_from(kib(bytes).clamp(1, self.0.queue_kib_max)).unwrap_or(u32::MAX);
        let permit = self.0.queue_kib.clone().acquire_many_owned(share).await.map_err(|_| CommitError::Closed)?;
        let queue = self.queue().ok_or(CommitError::Closed)?;
        let (answer, answered) = oneshot::channel();
        let request = Command::Commit(Request { transaction, bytes, answer, permit });
        queue.send(request).await.map_err(|_| CommitError::Closed)?;
        drop(queue);
        answered.await.unwrap_or_else(|_| Err(self.ended()))
    }

    /// As it was opened.
    pub fn options(&self) -> &Options {
        &self.0.shared.options
    }

    /// Whether [`Self::commit`] would take it, conflicts aside; its bytes.
    pub fn check(&self, transaction: &Transaction) -> Result<usize, CommitError> {
        let options = &self.0.shared.options;
        let (writes, bytes) = (transaction.writes.len() + transaction.marks.len(), transaction.bytes());
        for (size, limit, unit) in
            [(writes, options.transaction_writes_max, "writes"), (bytes, options.transaction_bytes_max, "bytes")]
        {
            if size > limit {
                return Err(CommitError::TooLarge { size, limit, unit });
            }
        }
        for write in &transaction.writes {
            if let Some(reason) = row::key_refusal(&write.key) {
                return Err(CommitError::InvalidKey { key: write.key.clone(), reason });
            }
        }
        Ok(bytes)
    }

    /// The committer went away without an answer.
    fn ended(&self) -> CommitError {
        self.0.shared.failure().map_or(CommitError::Closed, |reason| CommitError::Unavailable(reason.clone()))
    }

    /// What is durable now. Never waits.
    pub fn view(&self) -> View {
        self.0.shared.view()
    }

    /// Reads from disk: large lists belong on a thread where nobody waits.
    pub fn list(&self, request: &ListRequest) -> Result<Page, ListError> {
        list::list(&self.0.shared.held, self.view(), request)
    }

    pub fn watch(&self, selection: Selection, start: Start) -> Result<Watcher, WatchError> {
        Watcher::new(self.0.shared.clone(), selection, start)
    }

    /// Of any object of a resource; since before the store was opened, if it
    /// has not changed since. Never older than what any view shows.
    pub fn last_change(&self, resource: &GroupResource) -> LastChange {
        self.0.shared.last_changes.of(resource)
    }

    pub fn window(&self) -> Window {
        self.view().window()
    }

    /// The first version of the number line.
    pub fn epoch(&self) -> ResourceVersion {
        self.view().head().epoch
    }

    pub fn stats(&self) -> Stats {
        let shared = &self.0.shared;
        shared.counters.stats(shared.engine.disk_bytes(), shared.held.len(), shared.hub.channel_count())
    }

    /// Why the store takes no more writes, if it does not.
    pub fn health(&self) -> Result<(), String> {
        self.0.shared.failure().map_or(Ok(()), |reason| Err(reason.clone()))
    }

    /// Applies what was queued, refuses what comes later, ends the watchers.
    /// The directory is free when the last handle, view and watcher are gone.
    pub async fn close(&self) {
        let Some(queue) = self.0.queue.lock().expect(LOCK).take() else { return };
        let (answer, closed) = oneshot::channel();
        if queue.send(Command::Close(answer)).await.is_ok() {
            drop(closed.await);
        }
        self.0.shared.held.clear();
        self.0.stop.lock().expect(LOCK).take();
    }

    fn queue(&self) -> Option<mpsc::Sender<Command>> {
        self.0.queue.lock().expect(LOCK).clone()
    }
}

const LOCK: &str = "no code panics while it holds a lock of the store";

impl Drop for Handle {
    fn drop(&mut self) {
        self.queue.lock().expect(LOCK).take();
        self.stop.lock().expect(LOCK).take();
        for thread in self.threads.lock().expect(LOCK).drain(..) {
            // The last handle may be in a rebase, which the committer drops.
            if thread.thread().id() != std::thread::current().id() {
                // A panic there was already reported, and there is nothing to save.
                drop(thread.join());
            }
        }
    }
}

fn kib(bytes: usize) -> usize {
    bytes.div_ceil(1024)
}

fn spawn(name: &'static str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, StoreError> {
    let failed = |error: std::io::Error| StoreError::Engine { doing: "start a thread", reason: error.to_string() };
    std::thread::Builder::new().name(name.into()).spawn(run).map_err(failed)
}

/// The first rows of an empty engine.
fn begin_line(engine: &dyn Engine, options: &Options) -> Result<Head, StoreError> {
    let head = Head::new(crate::line_start::first(options)?);
    engine.write(head.changes(), head.newest)?;
    Ok(head)
}

/// Segments without a row: created before a crash that came before their first
/// event, or dropped before one that came before their files went.
fn drop_orphans(engine: &dyn Engine, head: &Head) -> Result<(), StoreError> {
    for id in engine.segment_list() {
        if head.segments.iter().all(|segment| segment.id != id) {
            tracing::info!(segment = id, "dropping a part of the log that nothing refers to");
            engine.segment_drop(id)?;
        }
    }
    Ok(())
}
