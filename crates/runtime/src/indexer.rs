//! Keeps an index filled and up to date, and tells controllers whom a change
//! concerns.
//!
//! Invariant: one task applies changes. A subscriber hears an audit first, and
//! then every change that the audit has not seen.

use std::collections::HashSet;
use std::sync::Arc;

use tidegate_model::{GroupResource, ObjectKey};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::index::Stage;
use crate::index_preview::Previewing;
use crate::index_reader::{Batch, follow};
use crate::index_saver::{Ask, Saver};
use crate::unsaved::{Position, Unsaved};
use crate::{Change, Durable, Index, IndexHandle, Kind, Plane, Touched, WatchEvent};

/// Batches on their way to the index: a page of a list has at most 32 MiB, so
/// this bounds what is held while the index is filled.
const BATCHES_MAX: usize = 2;
/// What a driver has not taken yet; it takes at once but for its own saving.
const TOUCHES_MAX: usize = 64;

pub(crate) struct Indexer {
    index: Arc<dyn Index>,
    saved: Option<SavedSide>,
    pub(crate) plane: Arc<dyn Plane>,
    filled: watch::Sender<bool>,
    pub(crate) subscribing: mpsc::UnboundedReceiver<Subscriber>,
    pub(crate) subscribers: Vec<Subscriber>,
    lives: Lives,
}

/// How long an index is kept up to date.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lives {
    WithManager,
    /// Until the last handle of it is dropped.
    WithHandles,
}

/// Of an index that is durable.
struct SavedSide {
    index: Arc<dyn Durable>,
    rows_max: usize,
    asked: mpsc::Receiver<Ask>,
}

/// A controller that wants to hear of touched keys.
pub(crate) struct Subscriber {
    pub resource: GroupResource,
    pub touches: mpsc::Sender<Touched>,
}

/// One index of one controller.
pub(crate) struct Subscription {
    pub subscribe: mpsc::UnboundedSender<Subscriber>,
}

impl Subscription {
    /// How many audits to wait for, and where touched keys come.
    pub fn join(all: Vec<Self>, resource: &GroupResource) -> (usize, mpsc::Receiver<Touched>) {
        let (sender, touches) = mpsc::channel(TOUCHES_MAX);
        for subscription in &all {
            let subscriber = Subscriber { resource: resource.clone(), touches: sender.clone() };
            // An index that has ended ends with the manager.
            let _ = subscription.subscribe.send(subscriber);
        }
        (all.len(), touches)
    }
}

impl Indexer {
    pub fn new(index: Arc<dyn Index>, plane: Arc<dyn Plane>, lives: Lives) -> (Self, IndexHandle) {
        let (filled, filled_at) = watch::channel(false);
        let (subscribe, subscribing) = mpsc::unbounded_channel();
        let handle = IndexHandle { filled: filled_at, subscribe };
        (Self { index, saved: None, plane, filled, subscribing, subscribers: Vec::new(), lives }, handle)
    }

    /// `rows_max` of one write.
    pub fn durable(index: Arc<dyn Durable>, plane: Arc<dyn Plane>, rows_max: usize) -> (Self, IndexHandle, Saver) {
        let (indexer, handle) = Self::new(index.clone(), plane, Lives::WithManager);
        let (asking, asked) = mpsc::channel(1);
        let saver = Saver { name: index.name().into(), asking };
        (Self { saved: Some(SavedSide { index, rows_max, asked }), ..indexer }, handle, saver)
    }

    /// Runs until it is aborted, or nobody needs it any more.
    pub async fn run(mut self) {
        let kinds = self.index.kinds();
        let (mut held, mut followers, mut asked) = match self.saved.take() {
            Some(SavedSide { index, rows_max, asked }) => {
                let (held, followers) = self.resume(index, rows_max, &kinds).await;
                (held, followers, Some(asked))
            }
            None => (Held::new(&kinds), self.follow(&kinds, None), None),
        };
        self.fill(&mut held).await;
        let mut has_handles = true;
        while has_handles || self.lives == Lives::WithManager {
            tokio::select! {
                // Batches last: of the others there are few, and they must
                // not wait for a long list.
                biased;
                subscriber = self.subscribing.recv(), if has_handles => match subscriber {
                    Some(subscriber) => self.welcome(subscriber).await,
                    None => has_handles = false,
                },
                Some(ask) = hear(&mut asked) => {
                    if let Some(unsaved) = &mut held.unsaved {
                        // A term that has ended does not wait for it.
                        let _ = ask.answer.send(unsaved.step(ask.before));
                    }
                }
                Some((at, batch)) = followers.batches.recv() => self.take(&kinds[at], &mut held, at, batch).await,
                else => return,
            }
        }
    }

    /// Watches every kind from `position`, or lists first.
    pub(crate) fn follow(&self, kinds: &[Kind], position: Option<&Position>) -> Followers {
        let (sender, batches) = mpsc::channel(BATCHES_MAX);
        let mut tasks = JoinSet::new();
        for (at, kind) in kinds.iter().enumerate() {
            let from = position.map(|position| position.versions[at]);
            tasks.spawn(follow(self.plane.clone(), kind.clone(), at, from, sender.clone()));
        }
        Followers { batches, _tasks: tasks }
    }

    async fn take(&mut self, kind: &Kind, held: &mut Held, at: usize, batch: Batch) {
        let touched = self.absorb(kind, held, at, batch);
        if *self.filled.borrow() {
            self.tell(&touched).await;
        } else {
            self.fill(held).await;
        }
    }

    /// Says whom it concerns.
    pub(crate) fn absorb(&self, kind: &Kind, held: &mut Held, at: usize, batch: Batch) -> Touched {
        let mut touched = Touched::default();
        let mut reached = None;
        match batch {
            Batch::ListStart => held.fills[at].missing = self.index.keys(kind).into_iter().collect(),
            Batch::Page(items) => {
                let changes: Vec<Change<'_>> = items.iter().map(Change::Put).collect();
                self.index.apply(kind, &changes, &mut touched);
                for item in &items {
                    held.fills[at].missing.remove(&item.key);
                }
            }
            Batch::ListEnd(version) => {
                let gone = held.fills[at].end();
                let changes: Vec<Change<'_>> = gone.iter().map(Change::Gone).collect();
                self.index.apply(kind, &changes, &mut touched);
                reached = Some(version);
                held.unsaved.iter_mut().for_each(Unsaved::listed);
            }
            Batch::Events(events) => {
                let changes: Vec<Change<'_>> = events.iter().filter_map(change).collect();
                self.index.apply(kind, &changes, &mut touched);
                reached = events.last().map(WatchEvent::version);
            }
        }
        if let Some(unsaved) = &mut held.unsaved {
            unsaved.applied(at, reached, touched.take_changed());
        }
        touched
    }

    /// If everything is there now.
    async fn fill(&mut self, held: &mut Held) {
        if held.fills.iter().all(|fill| fill.ended) {
            held.preview = None;
            self.filled.send_replace(true);
            let waiting = std::mem::take(&mut self.subscribers);
            self.audit(waiting).await;
        }
    }

    pub(crate) async fn tell(&mut self, touched: &Touched) {
        if touched.is_empty() {
            return;
        }
        let mut gone = Vec::new();
        for (at, subscriber) in self.subscribers.iter().enumerate() {
            let touched = touched.only(&subscriber.resource);
            if !touched.is_empty() && subscriber.touches.send(touched).await.is_err() {
                gone.push(at);
            }
        }
        gone.into_iter().rev().for_each(|at| drop(self.subscribers.swap_remove(at)));
    }

    /// Those who come together share an audit.
    async fn welcome(&mut self, first: Subscriber) {
        let mut new = vec![first];
        while let Ok(another) = self.subscribing.try_recv() {
            new.push(another);
        }
        if *self.filled.borrow() {
            self.audit(new).await;
        } else {
            self.subscribers.extend(new);
        }
    }

    async fn audit(&mut self, new: Vec<Subscriber>) {
        let mut touched = Touched::of(Stage::Audit);
        self.index.audit(&mut touched);
        for subscriber in new {
            if subscriber.touches.send(touched.only(&subscriber.resource)).await.is_ok() {
                self.subscribers.push(subscriber);
            }
        }
    }
}

/// What the task knows of the index.
pub(crate) struct Held {
    fills: Vec<Fill>,
    pub unsaved: Option<Unsaved>,
    /// Answers until everything is there.
    pub preview: Option<Previewing>,
}

impl Held {
    pub fn new(kinds: &[Kind]) -> Self {
        let fills = kinds.iter().map(|_| Fill::default()).collect();
        Self { fills, unsaved: None, preview: None }
    }

    /// No kind has to be listed.
    pub fn is_loaded(&mut self) {
        self.fills.iter_mut().for_each(|fill| fill.ended = true);
    }
}

/// The watches of all kinds.
pub(crate) struct Followers {
    /// By the kind's place.
    pub batches: mpsc::Receiver<(usize, Batch)>,
    _tasks: JoinSet<()>,
}

#[derive(Default)]
struct Fill {
    /// What the index held when the list began that runs, and what has not
    /// shown up in it.
    missing: HashSet<ObjectKey>,
    /// The kind was listed or loaded once.
    ended: bool,
}

impl Fill {
    /// What is gone.
    fn end(&mut self) -> Vec<ObjectKey> {
        self.ended = true;
        let mut gone: Vec<ObjectKey> = self.missing.drain().collect();
        gone.sort_unstable();
        gone
    }
}

/// Never, for an index that is not durable.
async fn hear(asked: &mut Option<mpsc::Receiver<Ask>>) -> Option<Ask> {
    match asked {
        Some(asked) => asked.recv().await,
        None => std::future::pending().await,
    }
}

pub(crate) fn change(event: &WatchEvent) -> Option<Change<'_>> {
    match event {
        WatchEvent::Added(item) | WatchEvent::Modified(item) => Some(Change::Put(item)),
        WatchEvent::Deleted(item) => Some(Change::Gone(&item.key)),
        WatchEvent::Bookmark(_) => None,
    }
}
