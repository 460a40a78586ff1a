//! From a commit to the watchers that it concerns.
//!
//! Invariant: publishing never waits for a watcher. Events stay in one buffer
//! of a bounded size; a channel holds only their places, and a watcher only
//! its cursor. Whoever is too late finds the place gone and reads the log.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use tidegate_model::{GroupResource, ResourceVersion};
use tokio::sync::Notify;

use crate::hub_index::Index;
use crate::{Event, Options, Selection};

/// Places that a channel remembers, at 16 bytes: 128 KiB for a busy channel.
const CHANNEL_EVENTS_MAX: usize = 8192;

pub(crate) struct Hub {
    index: Mutex<Index>,
    recent: RwLock<Recent>,
    /// Every event up to this version is in its channels.
    published: AtomicU64,
    is_closed: AtomicBool,
    live_events_max: usize,
    live_bytes_max: usize,
}

/// The live buffer. Places are dense and ascending.
#[derive(Default)]
struct Recent {
    events: VecDeque<Arc<Event>>,
    first: u64,
    bytes: usize,
}

/// What watchers of one scope share.
pub(crate) struct Channel {
    ring: Mutex<Ring>,
    pub wake: Notify,
}

struct Ring {
    /// Version and place of each event, ascending.
    entries: VecDeque<(ResourceVersion, u64)>,
    /// Whoever has not seen this version has missed something here.
    evicted: ResourceVersion,
    /// The last batch that added something, by its newest version.
    batch: ResourceVersion,
}

/// What a channel has for a cursor.
pub(crate) enum Live {
    Events(Vec<Arc<Event>>),
    /// Nothing; and nothing is missing up to this version.
    UpTo(ResourceVersion),
    /// The cursor is older than what memory holds.
    Behind,
    Closed,
}

/// Keeps its channel in the hub until it is dropped.
pub(crate) struct Subscription {
    pub channel: Arc<Channel>,
    hub: Arc<Hub>,
    key: ChannelKey,
}

/// The narrowest scope that contains a selection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ChannelKey {
    pub resource: GroupResource,
    pub namespace: Option<Arc<str>>,
    pub name: Option<Arc<str>>,
    pub label: Option<(Box<str>, Box<str>)>,
}

impl Hub {
    pub fn new(newest: ResourceVersion, options: &Options) -> Arc<Self> {
        Arc::new(Self {
            index: Mutex::new(Index::new(newest)),
            recent: RwLock::default(),
            published: AtomicU64::new(newest.raw()),
            is_closed: AtomicBool::new(false),
            live_events_max: options.live_events_max.max(1),
            live_bytes_max: options.live_bytes_max,
        })
    }

    pub fn subscribe(self: &Arc<Self>, selection: &Selection) -> Subscription {
        let key = ChannelKey::of(selection);
        let channel = self.index.lock().expect(LOCK).join(&key);
        Subscription { channel, hub: self.clone(), key }
    }

    /// The events are durable, and the view that holds them is published: a
    /// watcher that falls behind here finds them there.
    pub fn publish(&self, events: &[Arc<Event>], newest: ResourceVersion) {
        let mut touched: Vec<Arc<Channel>> = Vec::new();
        let mut index = self.index.lock().expect(LOCK);
        let mut recent = self.recent.write().expect(LOCK);
        for event in events {
            let mut place = None;
            index.channels_of(event, &mut |channel| {
                let place = *place.get_or_insert_with(|| recent.keep(event, self));
                if channel.push(event.version, place, newest) {
                    touched.push(channel.clone());
                }
            });
        }
        index.pushed = newest;
        drop((recent, index));
        self.published.store(newest.raw(), Ordering::Release);
        // One wake-up per channel and batch, after all of it is in place.
        touched.iter().for_each(|channel| channel.wake.notify_waiters());
    }

    /// The next events after `cursor`, at most `limit`.
    pub fn read(&self, channel: &Channel, cursor: ResourceVersion, limit: usize) -> Live {
        // Both before the ring: what was published then is in the ring now.
        let is_closed = self.is_closed.load(Ordering::Acquire);
        let published = ResourceVersion::from_raw(self.published.load(Ordering::Acquire));
        match channel.places(cursor, limit) {
            None => Live::Behind,
            Some(places) if places.is_empty() && is_closed => Live::Closed,
            Some(places) if places.is_empty() => Live::UpTo(published),
            Some(places) => self.fetch(&places).map_or(Live::Behind, Live::Events),
        }
    }

    fn fetch(&self, places: &[u64]) -> Option<Vec<Arc<Event>>> {
        let recent = self.recent.read().expect(LOCK);
        let event = |place: &u64| recent.events.get(usize::try_from(place.checked_sub(recent.first)?).ok()?).cloned();
        places.iter().map(event).collect()
    }

    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.index.lock().expect(LOCK).each(&mut |channel| channel.wake.notify_waiters());
    }

    pub fn channel_count(&self) -> usize {
        let mut count = 0;
        self.index.lock().expect(LOCK).each(&mut |_| count += 1);
        count
    }
}

impl Recent {
    /// Puts the event into the live buffer; returns its place.
    fn keep(&mut self, event: &Arc<Event>, hub: &Hub) -> u64 {
        let place = self.first + self.events.len() as u64;
        self.bytes += event.object.len();
        self.events.push_back(event.clone());
        while self.events.len() > hub.live_events_max || self.bytes > hub.live_bytes_max {
            let Some(oldest) = self.events.pop_front() else { break };
            self.bytes -= oldest.object.len();
            self.first += 1;
        }
        place
    }
}

const LOCK: &str = "no code panics while it holds a lock of the hub";

impl Channel {
    /// For events after `pushed`.
    pub fn new(pushed: ResourceVersion) -> Arc<Self> {
        let ring = Ring { entries: VecDeque::new(), evicted: pushed, batch: pushed };
        Arc::new(Self { ring: Mutex::new(ring), wake: Notify::new() })
    }

    /// Whether it is the first event of its batch here.
    fn push(&self, version: ResourceVersion, place: u64, batch: ResourceVersion) -> bool {
        let mut ring = self.ring.lock().expect(LOCK);
        ring.entries.push_back((version, place));
        if ring.entries.len() > CHANNEL_EVENTS_MAX
            && let Some((evicted, _)) = ring.entries.pop_front()
        {
            ring.evicted = evicted;
        }
        std::mem::replace(&mut ring.batch, batch) != batch
    }

    fn places(&self, cursor: ResourceVersion, limit: usize) -> Option<Vec<u64>> {
        let ring = self.ring.lock().expect(LOCK);
        if cursor < ring.evicted {
            return None;
        }
        let start = ring.entries.partition_point(|(version, _)| *version <= cursor);
        Some(ring.entries.range(start..).take(limit).map(|(_, place)| *place).collect())
    }
}

impl ChannelKey {
    fn of(selection: &Selection) -> Self {
        let Selection { resource, namespace, name, labels, fields: _ } = selection.clone();
        let label = labels.equality().map(|(key, value)| (key.into(), value.into()));
        Self { resource, namespace, name, label }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.hub.index.lock().expect(LOCK).leave(&self.key);
    }
}
