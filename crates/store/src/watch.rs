//! A watcher: each change of its selection once, in order, or `Expired`.
//!
//! Invariant: all that a watcher is, is its cursor. Every event up to it was
//! handed out, none after it. Whether the next ones come from memory or from
//! the log is decided anew each time, so there is no state to get out of step.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tidegate_model::{EventType, ObjectKey, ResourceVersion};
use tokio::time::Instant;

use crate::hub::{Live, Subscription};
use crate::replay::{self, LogPiece, ObjectPiece};
use crate::shared::Shared;
use crate::stats::Present;
use crate::{Event, Selection, StoreError, View, WatchError};

/// Items of one batch.
pub const WATCH_BATCH_ITEMS_MAX: usize = 512;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    /// The objects as they are, then what changes.
    Initial,
    /// What changed after a version that a list, a get or an event returned.
    After(ResourceVersion),
    Now,
}

#[derive(Clone, Debug)]
pub enum WatchItem {
    Event {
        /// What the change is to this selection.
        kind: EventType,
        event: Arc<Event>,
    },
    /// Nothing is missing up to `version`, and a watch may resume from it.
    Bookmark { version: ResourceVersion, initial_end: bool },
}

impl WatchItem {
    /// What the reader knows of then.
    fn version(&self) -> ResourceVersion {
        match self {
            Self::Event { event, .. } => event.version,
            Self::Bookmark { version, .. } => *version,
        }
    }
}

pub struct Watcher {
    shared: Arc<Shared>,
    selection: Arc<Selection>,
    subscription: Subscription,
    phase: Phase,
    cursor: ResourceVersion,
    /// The newest version that the reader knows from an item.
    told: ResourceVersion,
    told_at: Instant,
    _present: Present,
    lagging: Option<Present>,
}

enum Phase {
    Initial { view: View, after: Option<ObjectKey> },
    InitialEnd,
    Changes,
}

impl Watcher {
    pub(crate) fn new(shared: Arc<Shared>, selection: Selection, start: Start) -> Result<Self, WatchError> {
        let limit = shared.options.watchers_max;
        let present = Present::new(&shared.counters.watchers);
        if shared.counters.watchers.load(Relaxed) > limit as u64 {
            return Err(WatchError::TooMany { limit });
        }
        let view = shared.view();
        let (phase, cursor) = match start {
            Start::Initial => (Phase::Initial { view: view.clone(), after: None }, view.version()),
            Start::After(version) => (Phase::Changes, shared.check_cursor(&view, version)?),
            Start::Now => (Phase::Changes, view.version()),
        };
        Ok(Self {
            subscription: shared.hub.subscribe(&selection),
            selection: Arc::new(selection),
            shared,
            phase,
            cursor,
            told: cursor,
            told_at: Instant::now(),
            _present: present,
            lagging: None,
        })
    }

    /// From here a new watch goes on without a gap. Before the bookmark that
    /// ends an initial list it says nothing: the list is not complete.
    pub fn cursor(&self) -> ResourceVersion {
        self.cursor
    }

    /// The next items: never none, at most [`WATCH_BATCH_ITEMS_MAX`]. Dropping
    /// the future loses nothing.
    pub async fn next(&mut self) -> Result<Vec<WatchItem>, WatchError> {
        loop {
            let items = match &self.phase {
                Phase::Initial { .. } => self.next_objects().await?,
                Phase::InitialEnd => self.end_initial(),
                Phase::Changes => self.next_changes().await?,
            };
            if !items.is_empty() {
                let events = items.iter().filter(|item| matches!(item, WatchItem::Event { .. })).count();
                self.shared.counters.events_sent.fetch_add(events as u64, Relaxed);
                self.told = items.last().map_or(self.told, WatchItem::version);
                self.told_at = Instant::now();
                return Ok(items);
            }
        }
    }

    async fn next_objects(&mut self) -> Result<Vec<WatchItem>, WatchError> {
        let Phase::Initial { view, after } = &self.phase else { return Ok(Vec::new()) };
        let (view, after, selection) = (view.clone(), after.clone(), self.selection.clone());
        let read = move || replay::read_objects(&view, &selection, after.as_ref(), WATCH_BATCH_ITEMS_MAX);
        let ObjectPiece { items, after: next } = off_thread(read).await?;
        match (&mut self.phase, next) {
            (Phase::Initial { after, .. }, Some(next)) => *after = Some(next),
            (phase, _) => *phase = Phase::InitialEnd,
        }
        Ok(items)
    }

    fn end_initial(&mut self) -> Vec<WatchItem> {
        self.phase = Phase::Changes;
        vec![WatchItem::Bookmark { version: self.cursor, initial_end: true }]
    }

    async fn next_changes(&mut self) -> Result<Vec<WatchItem>, WatchError> {
        let channel = self.subscription.channel.clone();
        // Listens before it looks: a wake-up in between is not lost.
        let woken = channel.wake.notified();
        tokio::pin!(woken);
        woken.as_mut().enable();
        match self.shared.hub.read(&channel, self.cursor, WATCH_BATCH_ITEMS_MAX) {
            Live::Events(events) => Ok(self.take_live(events)),
            Live::Behind => self.take_log().await,
            Live::Closed => Err(WatchError::Closed),
            Live::UpTo(version) => {
                self.cursor = self.cursor.max(version);
                if self.lagging.take().is_some() {
                    // It has read the log to its end, and learns so at once.
                    return Ok(self.bookmark());
                }
                let due = self.told_at + self.bookmark_interval();
                if due > Instant::now() {
                    tokio::select! {
                        () = woken => {}
                        () = tokio::time::sleep_until(due) => {}
                    }
                    return Ok(Vec::new());
                }
                let bookmark = self.bookmark();
                if bookmark.is_empty() {
                    // Nothing new in the store: ask again after an interval.
                    self.told_at = Instant::now();
                }
                Ok(bookmark)
            }
        }
    }

    fn take_live(&mut self, events: Vec<Arc<Event>>) -> Vec<WatchItem> {
        self.lagging = None;
        let mut items = Vec::with_capacity(events.len());
        let mut bytes = 0;
        for event in events {
            if bytes > replay::PIECE_BYTES_MAX {
                break;
            }
            self.cursor = event.version;
            if let Some(kind) = self.selection.label_transition(&event) {
                bytes += event.object.len();
                items.push(WatchItem::Event { kind, event });
            }
        }
        items
    }

    async fn take_log(&mut self) -> Result<Vec<WatchItem>, WatchError> {
        if self.lagging.is_none() {
            self.lagging = Some(Present::new(&self.shared.counters.watchers_lagging));
        }
        let view = self.shared.view();
        self.shared.check_cursor(&view, self.cursor)?;
        let (selection, cursor) = (self.selection.clone(), self.cursor);
        let read = move || replay::read_log(&view, &selection, cursor, WATCH_BATCH_ITEMS_MAX);
        let LogPiece { items, cursor } = off_thread(read).await?;
        self.cursor = cursor;
        // A long way without a match is progress that the reader must know.
        let is_due = self.told_at.elapsed() >= self.bookmark_interval();
        Ok(if items.is_empty() && is_due { self.bookmark() } else { items })
    }

    fn bookmark(&self) -> Vec<WatchItem> {
        let is_news = self.cursor > self.told;
        is_news.then_some(WatchItem::Bookmark { version: self.cursor, initial_end: false }).into_iter().collect()
    }

    fn bookmark_interval(&self) -> Duration {
        self.shared.options.bookmark_interval
    }
}

/// The engine reads from disk: not on a thread that others wait for.
async fn off_thread<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let panicked = |error: tokio::task::JoinError| StoreError::Engine { doing: "read", reason: error.to_string() };
    tokio::task::spawn_blocking(read).await.map_err(panicked)?
}
