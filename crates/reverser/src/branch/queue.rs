//! What waits to be written, in order, within a bound.
//!
//! Nothing leaves the queue before it is in the remote: a batch is a copy, and
//! [`Queue::acknowledge`] removes what its push carried. Contents beyond the
//! byte limit are dropped at once and only their keys kept, with everybody who
//! had a part in them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tidegate_git::{ObjectId, blob_id};
use tidegate_model::mirror::ResourceKey;
use tokio::time::Instant;

use super::handle::DestinationId;
use crate::change::{Author, Change, Content, Listed, State, Version, What};
use crate::spool::Spooled;

/// A change without its content: the key, the version, the author and their
/// places in the maps. Counted, so that changes without content are bounded.
const CHANGE_BYTES: usize = 512;

/// The place of a submission; later ones are greater.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Ticket(pub(super) u64);

/// Which files a complete list speaks for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Scope {
    /// All below the base folder.
    Whole,
    /// One type, in one namespace or in all.
    Type { group: Arc<str>, version: Arc<str>, resource: Arc<str>, namespace: Option<Arc<str>> },
    /// Those of the listed objects of a type: nothing is deleted.
    Listed { group: Arc<str>, version: Arc<str>, resource: Arc<str> },
}

/// What is to be written of one object.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Wanted {
    State(State),
    /// The same, out of memory.
    Spooled {
        version: Version,
        content: Spooled,
    },
    /// Too much to keep: read it again. What it was as a blob tells whether
    /// Git has it already, and whether somebody else has changed it since.
    Reread {
        version: Version,
        blob: Option<ObjectId>,
    },
    Gone(Version),
}

#[derive(Clone, PartialEq, Debug)]
pub(super) struct Pending {
    pub destination: DestinationId,
    pub item: Item,
}

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Item {
    Change { key: ResourceKey, wanted: Wanted, author: Author, seen_at: Instant },
    Seed { scope: Scope, objects: Arc<Vec<(ResourceKey, Wanted)>> },
}

#[derive(Debug)]
pub(super) struct Queue {
    pending: BTreeMap<Ticket, Pending>,
    /// The last waiting change of each object.
    latest: HashMap<(DestinationId, ResourceKey), Ticket>,
    /// The waiting seed of each scope.
    seeds: HashMap<(DestinationId, Scope), Ticket>,
    next: u64,
    files: usize,
    bytes: usize,
    bytes_max: usize,
}

impl Queue {
    pub fn new(bytes_max: usize) -> Self {
        let (pending, latest, seeds) = Default::default();
        Self { pending, latest, seeds, next: 1, files: 0, bytes: 0, bytes_max }
    }

    pub fn change(&mut self, destination: DestinationId, change: Change) -> Ticket {
        let at = (destination, change.key);
        let mut author = change.author;
        let earlier = self.latest.get(&at).copied().filter(|ticket| self.absorbs(*ticket, &author));
        if let Some(Pending { item: Item::Change { wanted, author: of, .. }, .. }) =
            earlier.and_then(|t| self.remove(t))
        {
            author = whose(&wanted, &of, &change.what, author);
        }
        let wanted = match change.what {
            What::Put(state) => self.keep(state),
            What::Delete(version) => Wanted::Gone(version),
        };
        let (destination, key) = at.clone();
        let item = Item::Change { key, wanted, author, seen_at: change.seen_at };
        let ticket = self.push(Pending { destination, item });
        self.latest.insert(at, ticket);
        ticket
    }

    /// Replaces a waiting seed of the same scope: each is complete.
    pub fn seed(&mut self, destination: DestinationId, scope: Scope, objects: impl Iterator<Item = Listed>) -> Ticket {
        let at = (destination.clone(), scope.clone());
        if let Some(ticket) = self.seeds.get(&at).copied() {
            self.remove(ticket);
        }
        let objects = objects.map(|listed| self.keep_listed(listed)).collect();
        let ticket = self.push(Pending { destination, item: Item::Seed { scope, objects: Arc::new(objects) } });
        self.seeds.insert(at, ticket);
        ticket
    }

    /// Drops what waits for a destination that is no more.
    pub fn forget(&mut self, destination: &DestinationId) {
        let of_it = |(ticket, pending): (&Ticket, &Pending)| (&pending.destination == destination).then_some(*ticket);
        let tickets: Vec<_> = self.pending.iter().filter_map(of_it).collect();
        tickets.into_iter().for_each(|ticket| drop(self.remove(ticket)));
    }

    /// Everything that waits, in order, and the last ticket of it. Contents
    /// are shared, not copied.
    pub fn batch(&self) -> (Vec<Pending>, Ticket) {
        (self.pending.values().cloned().collect(), self.last())
    }

    /// The newest ticket that was given out.
    pub fn last(&self) -> Ticket {
        Ticket(self.next - 1)
    }

    /// What was in a batch up to `ticket` is in the remote.
    pub fn acknowledge(&mut self, ticket: Ticket) {
        let done: Vec<_> = self.pending.range(..=ticket).map(|(ticket, _)| *ticket).collect();
        done.into_iter().for_each(|ticket| drop(self.remove(ticket)));
    }

    /// Objects that wait.
    pub fn files(&self) -> usize {
        self.files
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    pub fn has_seed(&self) -> bool {
        !self.seeds.is_empty()
    }

    /// One person's changes of one object are one change. What is to be read
    /// again will show every later change, too. When memory is short, several
    /// people's changes of one object are one.
    fn absorbs(&self, earlier: Ticket, author: &Author) -> bool {
        let Some(Item::Change { wanted, author: of, .. }) = self.pending.get(&earlier).map(|pending| &pending.item)
        else {
            return false;
        };
        of == author || matches!(wanted, Wanted::Reread { .. }) || self.weight() >= self.bytes_max
    }

    fn keep_listed(&mut self, Listed { key, version, content }: Listed) -> (ResourceKey, Wanted) {
        let wanted = match content {
            Content::Held(yaml) => self.keep(State { version, yaml }),
            Content::Spooled(content) => Wanted::Spooled { version, content },
            Content::Dropped(blob) => Wanted::Reread { version, blob },
        };
        (key, wanted)
    }

    fn keep(&mut self, state: State) -> Wanted {
        if self.weight() + state.yaml.len() > self.bytes_max {
            return Wanted::Reread { blob: blob_id(&state.yaml).ok(), version: state.version };
        }
        self.bytes += state.yaml.len();
        Wanted::State(state)
    }

    fn weight(&self) -> usize {
        self.bytes + (self.pending.len() - self.seeds.len()) * CHANGE_BYTES
    }

    fn push(&mut self, pending: Pending) -> Ticket {
        let ticket = Ticket(self.next);
        self.next += 1;
        self.files += pending.files();
        self.pending.insert(ticket, pending);
        ticket
    }

    fn remove(&mut self, ticket: Ticket) -> Option<Pending> {
        let pending = self.pending.remove(&ticket)?;
        self.files -= pending.files();
        self.bytes -= pending.bytes();
        match &pending.item {
            Item::Change { key, .. } => {
                let at = (pending.destination.clone(), key.clone());
                if self.latest.get(&at) == Some(&ticket) {
                    self.latest.remove(&at);
                }
            }
            Item::Seed { scope, .. } => _ = self.seeds.remove(&(pending.destination.clone(), scope.clone())),
        }
        Some(pending)
    }
}

/// Whose the change is that `earlier` and `later` become. A deletion is the
/// deleter's, whatever was there before; so is what somebody makes anew.
fn whose(earlier: &Wanted, earlier_author: &Author, later: &What, later_author: Author) -> Author {
    match (earlier, later) {
        (_, What::Delete(_)) | (Wanted::Gone(_), _) => later_author,
        _ => earlier_author.and(&later_author),
    }
}

impl Pending {
    fn files(&self) -> usize {
        match &self.item {
            Item::Change { .. } => 1,
            Item::Seed { objects, .. } => objects.len(),
        }
    }

    fn bytes(&self) -> usize {
        match &self.item {
            Item::Change { wanted, .. } => wanted.bytes(),
            Item::Seed { objects, .. } => objects.iter().map(|(_, wanted)| wanted.bytes()).sum(),
        }
    }
}

impl Wanted {
    fn bytes(&self) -> usize {
        if let Self::State(state) = self { state.yaml.len() } else { 0 }
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
