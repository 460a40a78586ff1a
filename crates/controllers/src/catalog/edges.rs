//! A relation between slots: for each target, what refers to it.

use std::collections::BTreeSet;
use std::ops::Bound;

use super::table::Slot;

/// About 12 bytes a pair, whether one target has all of them or each has one.
#[derive(Default)]
pub(crate) struct Edges(BTreeSet<(Slot, Slot)>);

impl Edges {
    pub fn insert(&mut self, target: Slot, source: Slot) {
        self.0.insert((target, source));
    }

    pub fn remove(&mut self, target: Slot, source: Slot) {
        self.0.remove(&(target, source));
    }

    pub fn of(&self, target: Slot) -> impl Iterator<Item = Slot> {
        let bounds = (Bound::Included((target, Slot::MIN)), Bound::Included((target, Slot::MAX)));
        self.0.range(bounds).map(|(_, source)| *source)
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}
