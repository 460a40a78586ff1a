//! Keys that have a durable row `known/`, as far as this term has seen them.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use tidegate_model::ObjectKey;

/// Hashes of 64 bits instead of keys: about 16 bytes each, so a million keys
/// take 16 MiB. The chance that any two of a million are equal is one in 10^7,
/// and then a key is reconciled a moment before its row is written.
#[derive(Default)]
pub(crate) struct KnownKeys {
    hashes: HashSet<u64>,
    hasher: RandomState,
}

impl KnownKeys {
    /// `false` may also mean that this term has not come across it.
    pub fn contains(&self, key: &ObjectKey) -> bool {
        self.hashes.contains(&self.hasher.hash_one(key))
    }

    pub fn insert(&mut self, key: &ObjectKey) {
        self.hashes.insert(self.hasher.hash_one(key));
    }

    pub fn remove(&mut self, key: &ObjectKey) {
        self.hashes.remove(&self.hasher.hash_one(key));
    }
}
