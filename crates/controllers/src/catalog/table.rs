//! Objects of one kind by namespace and name, in slots that other objects
//! refer to.
//!
//! Invariant: a slot is in use while its object exists or something refers to
//! its name. A reference to what does not exist is a slot without facts: when
//! the object comes, whoever waits for it is found.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::num::NonZeroU32;

use hashbrown::{DefaultHashBuilder, HashTable};

/// Four bytes instead of a name. Of one table: the caller keeps them apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Slot(NonZeroU32);

impl Slot {
    pub const MIN: Self = Self(NonZeroU32::MIN);
    pub const MAX: Self = Self(NonZeroU32::MAX);

    fn from_index(index: usize) -> Self {
        let number = u32::try_from(index + 1).ok().and_then(NonZeroU32::new);
        Self(number.expect("fewer than 2^32 objects of a kind: their names alone would fill the memory"))
    }

    fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct NamespaceId(u32);

impl NamespaceId {
    pub fn new(index: usize) -> Self {
        Self(u32::try_from(index).expect("fewer than 2^32 namespaces"))
    }

    pub fn index(self) -> usize {
        self.0 as usize
    }
}

pub(crate) struct Node<F> {
    pub namespace: NamespaceId,
    pub referrers: u32,
    pub name: Box<str>,
    /// `None`: it does not exist, but something refers to it.
    pub facts: Option<F>,
}

pub(crate) struct Table<F> {
    nodes: Vec<Option<Node<F>>>,
    free: Vec<Slot>,
    lookup: HashTable<Slot>,
    hasher: DefaultHashBuilder,
    /// Slots without facts.
    absent: usize,
    /// What refers to a slot and is not here, of a catalogue that holds a part
    /// of all objects.
    elsewhere: HashMap<Slot, i64>,
}

impl<F> Default for Table<F> {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            free: Vec::new(),
            lookup: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            absent: 0,
            elsewhere: HashMap::new(),
        }
    }
}

impl<F> Table<F> {
    pub fn find(&self, namespace: NamespaceId, name: &str) -> Option<Slot> {
        let hash = self.hasher.hash_one((namespace, name));
        self.lookup.find(hash, |slot| self.is(*slot, namespace, name)).copied()
    }

    pub fn node(&self, slot: Slot) -> &Node<F> {
        self.nodes[slot.index()].as_ref().expect("a slot in use")
    }

    pub fn facts(&self, slot: Slot) -> Option<&F> {
        self.node(slot).facts.as_ref()
    }

    /// For a slot that may not be in use any more.
    pub fn known(&self, slot: Slot) -> Option<&F> {
        self.nodes[slot.index()].as_ref().and_then(|node| node.facts.as_ref())
    }

    pub fn facts_mut(&mut self, slot: Slot) -> Option<&mut F> {
        self.node_mut(slot).facts.as_mut()
    }

    pub fn name(&self, slot: Slot) -> &str {
        &self.node(slot).name
    }

    pub fn address(&self, slot: Slot) -> (NamespaceId, &str) {
        let node = self.node(slot);
        (node.namespace, &node.name)
    }

    /// How many refer to it.
    pub fn referrers(&self, slot: Slot) -> u32 {
        let elsewhere = self.elsewhere.get(&slot).copied().unwrap_or(0);
        u32::try_from(i64::from(self.node(slot).referrers) + elsewhere).unwrap_or(0)
    }

    /// So many more, or fewer, refer to it from elsewhere. The slot stays in
    /// use from here on.
    pub fn refer_elsewhere(&mut self, slot: Slot, more: i64) {
        if !self.elsewhere.contains_key(&slot) {
            self.hold(slot);
            self.elsewhere.insert(slot, -1);
        }
        self.elsewhere.entry(slot).and_modify(|count| *count += more);
    }

    /// Names that are referred to and have no object.
    pub fn absent(&self) -> usize {
        self.absent
    }

    pub fn exists(&self, slot: Slot) -> bool {
        self.node(slot).facts.is_some()
    }

    /// The slot of a name that is spoken of, in use from now on: the caller
    /// gives it facts, or a referrer with [`Self::refer`].
    pub fn slot(&mut self, namespace: NamespaceId, name: &str) -> Slot {
        if let Some(slot) = self.find(namespace, name) {
            return slot;
        }
        let node = Node { namespace, referrers: 0, name: name.into(), facts: None };
        self.absent += 1;
        let slot = match self.free.pop() {
            Some(slot) => {
                self.nodes[slot.index()] = Some(node);
                slot
            }
            None => {
                self.nodes.push(Some(node));
                Slot::from_index(self.nodes.len() - 1)
            }
        };
        let Self { nodes, lookup, hasher, .. } = self;
        let hash_of =
            |slot: &Slot| nodes[slot.index()].as_ref().map_or(0, |node| hasher.hash_one((node.namespace, &*node.name)));
        lookup.insert_unique(hash_of(&slot), slot, hash_of);
        slot
    }

    pub fn refer(&mut self, namespace: NamespaceId, name: &str) -> Slot {
        let slot = self.slot(namespace, name);
        self.node_mut(slot).referrers += 1;
        slot
    }

    pub fn release(&mut self, slot: Slot) {
        self.node_mut(slot).referrers -= 1;
        self.collect(slot);
    }

    /// Keeps the slot in use until it is let go.
    pub fn hold(&mut self, slot: Slot) -> Slot {
        self.node_mut(slot).referrers += 1;
        slot
    }

    pub fn let_go(&mut self, held: Slot) {
        self.release(held);
    }

    /// The facts before.
    pub fn replace(&mut self, slot: Slot, facts: Option<F>) -> Option<F> {
        let exists = facts.is_some();
        let before = std::mem::replace(&mut self.node_mut(slot).facts, facts);
        match (before.is_some(), exists) {
            (false, true) => self.absent -= 1,
            (true, false) => self.absent += 1,
            _ => {}
        }
        self.collect(slot);
        before
    }

    pub fn slots(&self) -> impl Iterator<Item = Slot> {
        let used = self.nodes.iter().enumerate().filter(|(_, node)| node.is_some());
        used.map(|(index, _)| Slot::from_index(index))
    }

    /// Slots in use, those without facts included.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.lookup.len()
    }

    fn is(&self, slot: Slot, namespace: NamespaceId, name: &str) -> bool {
        let node = self.node(slot);
        node.namespace == namespace && &*node.name == name
    }

    fn node_mut(&mut self, slot: Slot) -> &mut Node<F> {
        self.nodes[slot.index()].as_mut().expect("a slot in use")
    }

    fn collect(&mut self, slot: Slot) {
        let node = self.node(slot);
        if node.referrers > 0 || node.facts.is_some() {
            return;
        }
        let hash = self.hasher.hash_one((node.namespace, &*node.name));
        if let Ok(entry) = self.lookup.find_entry(hash, |other| *other == slot) {
            entry.remove();
        }
        self.nodes[slot.index()] = None;
        self.absent -= 1;
        self.free.push(slot);
    }
}
