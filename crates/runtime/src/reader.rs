//! List-then-watch of a controller's own kind, from its checkpoint.
//!
//! Invariant: what is handed on is in order and complete from where it says it
//! begins. A list names what is known and gone, too.

use std::sync::Arc;

use tidegate_model::{ObjectKey, ResourceVersion};
use tokio::sync::mpsc;

use crate::attended::interrupted;
use crate::clock::Retry;
use crate::known_rows::{Compared, KnownRows};
use crate::queue::Position;
use crate::{ApiError, Fault, Item, Kind, Plane, Touched, WatchEvent};

/// Batches on their way to the driver. A batch has at most 512 events or one
/// page of keys, about 100 bytes each.
pub(crate) const FEED_BATCHES_MAX: usize = 8;

#[derive(Debug)]
pub(crate) enum Feed {
    /// A page of a list. `fresh` are those of `keys` that were not known.
    Listed {
        keys: Vec<Listed>,
        fresh: Vec<ObjectKey>,
        gone: Vec<ObjectKey>,
    },
    /// Events follow from here on.
    ListEnd {
        version: ResourceVersion,
    },
    Events {
        events: Vec<Seen>,
        reached: ResourceVersion,
    },
    /// A page of a sweep.
    Swept {
        keys: Vec<Listed>,
        fresh: Vec<ObjectKey>,
    },
    /// Not read but heard of an index, perhaps before the reader comes to it.
    Touched {
        touched: Touched,
        fresh: Vec<ObjectKey>,
    },
}

#[derive(Debug)]
pub(crate) struct Listed {
    pub key: ObjectKey,
    pub generation: i64,
}

#[derive(Debug)]
pub(crate) struct Seen {
    pub key: ObjectKey,
    pub what: Happened,
    /// A watch from here sees it again.
    pub after: ResourceVersion,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Happened {
    Came { generation: i64 },
    Changed { generation: i64 },
    Went,
}

impl Listed {
    pub fn of(item: &Item) -> Self {
        Self { key: item.key.clone(), generation: item.generation() }
    }
}

pub(crate) struct Reader {
    pub plane: Arc<dyn Plane>,
    pub controller: Arc<str>,
    pub kind: Kind,
    pub feed: mpsc::Sender<Feed>,
}

/// The driver has gone.
struct Ended;

impl Reader {
    /// Runs until the driver goes.
    pub async fn run(self, mut from: Position) {
        let mut retry = Retry::new(&self.controller);
        loop {
            let outcome = match from {
                Some(version) => self.follow(version, &mut from, &mut retry).await,
                None => self.list(&mut from).await,
            };
            match outcome {
                Err(Ended) => return,
                Ok(Err(error)) if error.is(Fault::Expired) => {
                    tracing::warn!(controller = %self.controller, %error, "listing again");
                    from = None;
                    retry.wait().await;
                }
                Ok(Err(error)) => {
                    interrupted!(error, controller = %self.controller, "reading is interrupted: trying again");
                    retry.wait().await;
                }
                Ok(Ok(())) => retry.succeeded(),
            }
        }
    }

    async fn follow(
        &self,
        version: ResourceVersion,
        from: &mut Position,
        retry: &mut Retry,
    ) -> Result<Result<(), ApiError>, Ended> {
        let mut stream = match self.plane.watch(&self.kind, version).await {
            Ok(stream) => stream,
            Err(error) => return Ok(Err(error)),
        };
        let mut after = version;
        loop {
            let events = match stream.next().await {
                Ok(events) => events,
                Err(error) => return Ok(Err(error)),
            };
            retry.succeeded();
            let events: Vec<Seen> = events.into_iter().filter_map(|event| seen(event, &mut after)).collect();
            self.send(Feed::Events { events, reached: after }).await?;
            *from = Some(after);
        }
    }

    async fn list(&self, from: &mut Position) -> Result<Result<(), ApiError>, Ended> {
        let mut known = KnownRows::new(self.plane.clone(), &self.controller, &self.kind);
        let mut next: Option<String> = None;
        loop {
            let page = match self.plane.list(&self.kind, next.as_deref()).await {
                Ok(page) => page,
                Err(error) => return Ok(Err(error)),
            };
            let is_last = page.next.is_none();
            let Compared { fresh, gone } = match known.compare(&page.items, is_last).await {
                Ok(compared) => compared,
                Err(error) => return Ok(Err(error)),
            };
            self.send(Feed::Listed { keys: page.items.iter().map(Listed::of).collect(), fresh, gone }).await?;
            next = page.next;
            if is_last {
                self.send(Feed::ListEnd { version: page.version }).await?;
                *from = Some(page.version);
                return Ok(Ok(()));
            }
        }
    }

    async fn send(&self, feed: Feed) -> Result<(), Ended> {
        self.feed.send(feed).await.map_err(|_| Ended)
    }
}

/// `None` for a bookmark. Moves `after` to the event.
fn seen(event: WatchEvent, after: &mut ResourceVersion) -> Option<Seen> {
    let before = std::mem::replace(after, event.version());
    let (item, what) = match event {
        WatchEvent::Added(item) => {
            let generation = item.generation();
            (item, Happened::Came { generation })
        }
        WatchEvent::Modified(item) => {
            let generation = item.generation();
            (item, Happened::Changed { generation })
        }
        WatchEvent::Deleted(item) => (item, Happened::Went),
        WatchEvent::Bookmark(_) => return None,
    };
    Some(Seen { key: item.key, what, after: before })
}
