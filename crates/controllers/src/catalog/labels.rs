//! Which collections a product is a member of, by its labels.
//!
//! Products with the same labels share one label set. A collection is matched
//! against label sets, never against products: a new collection costs the
//! number of different sets that carry its required pair, and a product that
//! changes its labels the number of collections that it enters or leaves.

use std::collections::BTreeSet;
use std::ops::Bound;

use tidegate_model::{LabelSelector, Labels};
use xxhash_rust::xxh3::xxh3_64;

use super::collections::Collection;
use super::table::{NamespaceId, Slot, Table};
use super::{CatalogKind, Touched};

pub(crate) struct LabelSet {
    labels: Labels,
    /// Those that select it, in order.
    collections: Vec<Slot>,
}

#[derive(Default)]
pub(crate) struct LabelIndex {
    /// By their text; its referrers are products.
    sets: Table<LabelSet>,
    sets_by_pair: PairIndex,
    collections_by_pair: PairIndex,
}

impl LabelIndex {
    /// One product more that has these labels.
    pub fn enter(&mut self, namespace: NamespaceId, labels: &[(&str, &str)], collections: &Table<Collection>) -> Slot {
        let set = self.sets.refer(namespace, &text(labels));
        if !self.sets.exists(set) {
            let labels: Labels = labels.iter().copied().collect();
            let pairs = || pairs(&labels).chain([ANY]);
            let found: BTreeSet<Slot> = pairs().flat_map(|pair| self.collections_by_pair.of(namespace, pair)).collect();
            let selects = |slot: &Slot| collections.facts(*slot).is_some_and(|collection| collection.selects(&labels));
            let collections = found.into_iter().filter(selects).collect();
            for pair in pairs() {
                self.sets_by_pair.insert(namespace, pair, set);
            }
            self.sets.replace(set, Some(LabelSet { labels, collections }));
        }
        set
    }

    /// In the order of their keys.
    pub fn labels(&self, set: Slot) -> Vec<(&str, &str)> {
        self.sets.facts(set).map(|set| set.labels.iter().collect()).unwrap_or_default()
    }

    pub fn leave(&mut self, set: Slot) {
        let node = self.sets.node(set);
        if node.referrers == 1 {
            let namespace = node.namespace;
            if let Some(before) = self.sets.replace(set, None) {
                for pair in pairs(&before.labels).chain([ANY]) {
                    self.sets_by_pair.remove(namespace, pair, set);
                }
            }
        }
        self.sets.release(set);
    }

    /// Counts a product that has left `before` and is in `after`.
    pub fn count_move(
        &self,
        before: Option<Slot>,
        after: Option<Slot>,
        collections: &mut Table<Collection>,
        touched: &mut Touched,
    ) {
        if before == after {
            return;
        }
        let of = |set: Option<Slot>| set.and_then(|set| self.sets.facts(set)).map_or(&[][..], |set| &set.collections);
        let (left, entered) = (of(before), of(after));
        for (members, others, step) in [(left, entered, -1), (entered, left, 1)] {
            for slot in members.iter().filter(|slot| others.binary_search(slot).is_err()) {
                if let Some(collection) = collections.facts_mut(*slot) {
                    collection.product_count += step;
                    touched.add(CatalogKind::Collection, *slot);
                }
            }
        }
    }

    /// Makes `slot` a collection that selects with `selector`, or none; says
    /// how many products it has then.
    pub fn select(
        &mut self,
        namespace: NamespaceId,
        slot: Slot,
        before: Option<&LabelSelector>,
        after: Option<&LabelSelector>,
    ) -> i64 {
        if let Some(before) = before {
            let pair = required_pair(before);
            self.collections_by_pair.remove(namespace, pair, slot);
            for set in self.sets_by_pair.of(namespace, pair).collect::<Vec<_>>() {
                self.with_collections(set, |collections| {
                    if let Ok(at) = collections.binary_search(&slot) {
                        collections.remove(at);
                    }
                });
            }
        }
        let Some(after) = after else { return 0 };
        let pair = required_pair(after);
        self.collections_by_pair.insert(namespace, pair, slot);
        let mut count = 0;
        for set in self.sets_by_pair.of(namespace, pair).collect::<Vec<_>>() {
            if !self.sets.facts(set).is_some_and(|set| after.matches(&set.labels)) {
                continue;
            }
            count += i64::from(self.sets.node(set).referrers);
            self.with_collections(set, |collections| {
                if let Err(at) = collections.binary_search(&slot) {
                    collections.insert(at, slot);
                }
            });
        }
        count
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.sets.len()
    }

    fn with_collections(&mut self, set: Slot, change: impl FnOnce(&mut Vec<Slot>)) {
        if let Some(set) = self.sets.facts_mut(set) {
            change(&mut set.collections);
        }
    }
}

/// Label keys and values have neither of the two separators.
fn text(labels: &[(&str, &str)]) -> String {
    let mut text = String::with_capacity(labels.iter().map(|(key, value)| key.len() + value.len() + 2).sum());
    for (key, value) in labels {
        for part in [key, "=", value, ","] {
            text.push_str(part);
        }
    }
    text
}

/// A pair's hash. Two pairs of one hash are harmless: what is found by it is
/// matched again.
type Pair = u64;

/// The pair of a selector that requires none, and one that every set has.
const ANY: Pair = 0;

fn pair_of(key: &str, value: &str) -> Pair {
    xxh3_64(format!("{key}={value}").as_bytes()).max(1)
}

fn pairs(labels: &Labels) -> impl Iterator<Item = Pair> {
    labels.iter().map(|(key, value)| pair_of(key, value))
}

fn required_pair(selector: &LabelSelector) -> Pair {
    selector.equality().map_or(ANY, |(key, value)| pair_of(key, value))
}

#[derive(Default)]
struct PairIndex(BTreeSet<(NamespaceId, Pair, Slot)>);

impl PairIndex {
    fn insert(&mut self, namespace: NamespaceId, pair: Pair, slot: Slot) {
        self.0.insert((namespace, pair, slot));
    }

    fn remove(&mut self, namespace: NamespaceId, pair: Pair, slot: Slot) {
        self.0.remove(&(namespace, pair, slot));
    }

    fn of(&self, namespace: NamespaceId, pair: Pair) -> impl Iterator<Item = Slot> {
        let bounds = (Bound::Included((namespace, pair, Slot::MIN)), Bound::Included((namespace, pair, Slot::MAX)));
        self.0.range(bounds).map(|(_, _, slot)| *slot)
    }
}
