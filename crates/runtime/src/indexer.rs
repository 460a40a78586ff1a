//! Keeps an index filled and up to date, and tells controllers whom a change
//! concerns.
//!
//! Invariant: one task applies changes. A subscriber hears an audit first, and
//! then every change that the audit has not seen.

use std::collections::HashSet;
use std::sync::Arc;

use tidegate_model::{GroupResource, ObjectKey, ResourceVersion};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::reader::Retry;
use crate::{ApiError, Change, Fault, Index, IndexHandle, Item, Kind, Plane, Touched, WatchEvent};

/// Batches on their way to the index: a page of a list has at most 32 MiB, so
/// this bounds what is held while the index is filled.
const BATCHES_MAX: usize = 2;
/// What a driver has not taken yet; it takes at once but for its own saving.
const TOUCHES_MAX: usize = 64;

pub(crate) struct Indexer {
    index: Arc<dyn Index>,
    plane: Arc<dyn Plane>,
    filled: watch::Sender<bool>,
    subscribing: mpsc::UnboundedReceiver<Subscriber>,
    subscribers: Vec<Subscriber>,
}

/// A controller that wants to hear of touched keys.
pub(crate) struct Subscriber {
    resource: GroupResource,
    touches: mpsc::Sender<Touched>,
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

/// What a follower of one kind hands over.
enum Batch {
    Page(Vec<Item>),
    ListEnd,
    Events(Vec<WatchEvent>),
}

impl Indexer {
    pub fn new(index: Arc<dyn Index>, plane: Arc<dyn Plane>) -> (Self, IndexHandle) {
        let (filled, filled_at) = watch::channel(false);
        let (subscribe, subscribing) = mpsc::unbounded_channel();
        let handle = IndexHandle { filled: filled_at, subscribe };
        (Self { index, plane, filled, subscribing, subscribers: Vec::new() }, handle)
    }

    /// Runs until it is aborted.
    pub async fn run(mut self) {
        let (sender, mut batches) = mpsc::channel(BATCHES_MAX);
        let mut followers = JoinSet::new();
        let kinds = self.index.kinds();
        for (at, kind) in kinds.iter().enumerate() {
            followers.spawn(follow(self.plane.clone(), kind.clone(), at, sender.clone()));
        }
        let mut fills: Vec<Fill> = kinds.iter().map(|_| Fill::default()).collect();
        if kinds.is_empty() {
            self.filled.send_replace(true);
        }
        loop {
            tokio::select! {
                Some((at, batch)) = batches.recv() => self.take(&kinds[at], &mut fills, at, batch).await,
                Some(subscriber) = self.subscribing.recv() => self.welcome(subscriber).await,
                else => return,
            }
        }
    }

    async fn take(&mut self, kind: &Kind, fills: &mut [Fill], at: usize, batch: Batch) {
        let mut touched = Touched::default();
        match batch {
            Batch::Page(items) => {
                let changes: Vec<Change<'_>> = items.iter().map(Change::Put).collect();
                self.index.apply(kind, &changes, &mut touched);
                fills[at].page(&*self.index, kind, &items);
            }
            Batch::ListEnd => {
                let gone = fills[at].end();
                let changes: Vec<Change<'_>> = gone.iter().map(Change::Gone).collect();
                self.index.apply(kind, &changes, &mut touched);
            }
            Batch::Events(events) => {
                let changes: Vec<Change<'_>> = events.iter().filter_map(change).collect();
                self.index.apply(kind, &changes, &mut touched);
            }
        }
        if *self.filled.borrow() {
            self.tell(&touched).await;
        } else if fills.iter().all(|fill| fill.ended) {
            self.filled.send_replace(true);
            let waiting = std::mem::take(&mut self.subscribers);
            self.audit(waiting).await;
        }
    }

    async fn tell(&mut self, touched: &Touched) {
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
        let mut touched = Touched::of_audit();
        self.index.audit(&mut touched);
        for subscriber in new {
            if subscriber.touches.send(touched.only(&subscriber.resource)).await.is_ok() {
                self.subscribers.push(subscriber);
            }
        }
    }
}

/// What of a kind has not shown up in a new list.
#[derive(Default)]
struct Fill {
    /// `None` between lists.
    missing: Option<HashSet<ObjectKey>>,
    ended: bool,
}

impl Fill {
    fn page(&mut self, index: &dyn Index, kind: &Kind, items: &[Item]) {
        // The first list finds nothing; asking would copy what it just filled.
        let has_held = self.ended;
        let missing = self.missing.get_or_insert_with(|| match has_held {
            true => index.keys(kind).into_iter().collect(),
            false => HashSet::new(),
        });
        for item in items {
            missing.remove(&item.key);
        }
    }

    fn end(&mut self) -> Vec<ObjectKey> {
        self.ended = true;
        self.missing.take().into_iter().flatten().collect()
    }
}

fn change(event: &WatchEvent) -> Option<Change<'_>> {
    match event {
        WatchEvent::Added(item) | WatchEvent::Modified(item) => Some(Change::Put(item)),
        WatchEvent::Deleted(item) => Some(Change::Gone(&item.key)),
        WatchEvent::Bookmark(_) => None,
    }
}

/// List, then watch, for ever.
async fn follow(plane: Arc<dyn Plane>, kind: Kind, at: usize, batches: mpsc::Sender<(usize, Batch)>) {
    let mut retry = Retry::default();
    let mut from = None;
    loop {
        let error = match from {
            None => match list(&*plane, &kind, at, &batches).await {
                Ok(version) => {
                    from = version;
                    continue;
                }
                Err(error) => error,
            },
            Some(version) => watch_from(&*plane, &kind, at, &batches, version, &mut from, &mut retry).await,
        };
        if batches.is_closed() {
            return;
        }
        if error.is(Fault::Expired) {
            from = None;
        }
        tracing::warn!(%kind, %error, "an index is interrupted: reading again");
        retry.wait().await;
    }
}

async fn list(
    plane: &dyn Plane,
    kind: &Kind,
    at: usize,
    batches: &mpsc::Sender<(usize, Batch)>,
) -> Result<Option<ResourceVersion>, ApiError> {
    let mut next: Option<String> = None;
    loop {
        let page = plane.list(kind, next.as_deref()).await?;
        let _ = batches.send((at, Batch::Page(page.items))).await;
        next = page.next;
        if next.is_none() {
            let _ = batches.send((at, Batch::ListEnd)).await;
            return Ok(Some(page.version));
        }
    }
}

async fn watch_from(
    plane: &dyn Plane,
    kind: &Kind,
    at: usize,
    batches: &mpsc::Sender<(usize, Batch)>,
    version: ResourceVersion,
    from: &mut Option<ResourceVersion>,
    retry: &mut Retry,
) -> ApiError {
    let mut stream = match plane.watch(kind, version).await {
        Ok(stream) => stream,
        Err(error) => return error,
    };
    loop {
        match stream.next().await {
            Ok(events) => {
                *retry = Retry::default();
                let reached = events.last().map(WatchEvent::version);
                if batches.send((at, Batch::Events(events))).await.is_err() {
                    return ApiError::new(Fault::Unavailable, "the index has ended");
                }
                *from = reached.or(*from);
            }
            Err(error) => return error,
        }
    }
}
