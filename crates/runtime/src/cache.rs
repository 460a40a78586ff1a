//! A ready-made index: what the author keeps of each object of one kind, and
//! keys by what they refer to.
//!
//! Invariant: an entry and its references change under one lock, so a reader
//! never finds a reference without its object.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use tidegate_model::ObjectKey;

use crate::{Change, Index, Item, Kind, Touched};

/// What is kept of an object; `None` to leave the object out.
pub type Projection<T> = dyn Fn(&Item) -> Option<T> + Send + Sync;
/// What an entry refers to.
pub type References<T> = dyn Fn(&T) -> Vec<ObjectKey> + Send + Sync;
/// Whom a change concerns, by what the entry was and what it is.
pub type Concerns<T> = dyn Fn(&ObjectKey, Option<&T>, Option<&T>) -> Vec<ObjectKey> + Send + Sync;

/// One writer, many readers. Costs the kept values and about 150 bytes a key.
pub struct Cache<T> {
    kind: Kind,
    project: Box<Projection<T>>,
    references: Vec<Box<References<T>>>,
    concerns: Vec<Box<Concerns<T>>>,
    state: RwLock<State<T>>,
}

struct State<T> {
    entries: HashMap<ObjectKey, T>,
    /// For each relation: by target, who refers to it.
    referrers: Vec<HashMap<ObjectKey, BTreeSet<ObjectKey>>>,
    namespaces: HashSet<Arc<str>>,
}

/// Names one relation of a cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyedBy(usize);

impl<T: Send + Sync + 'static> Cache<T> {
    pub fn new(kind: Kind, project: impl Fn(&Item) -> Option<T> + Send + Sync + 'static) -> Self {
        let state = State { entries: HashMap::new(), referrers: Vec::new(), namespaces: HashSet::new() };
        Self {
            kind,
            project: Box::new(project),
            references: Vec::new(),
            concerns: Vec::new(),
            state: RwLock::new(state),
        }
    }

    /// A relation that can be asked backwards: who refers to this key? A
    /// change of the references of an entry touches both ends.
    pub fn keyed_by(&mut self, references: impl Fn(&T) -> Vec<ObjectKey> + Send + Sync + 'static) -> KeyedBy {
        self.references.push(Box::new(references));
        self.write(|state| state.referrers.push(HashMap::new()));
        KeyedBy(self.references.len() - 1)
    }

    /// Whom else a change concerns.
    pub fn touches(
        &mut self,
        concerns: impl Fn(&ObjectKey, Option<&T>, Option<&T>) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) {
        self.concerns.push(Box::new(concerns));
    }

    /// Reads an entry in place.
    pub fn with<R>(&self, key: &ObjectKey, read: impl FnOnce(&T) -> R) -> Option<R> {
        self.read().entries.get(key).map(read)
    }

    pub fn len(&self) -> usize {
        self.read().entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Who refers to `target`, in order.
    pub fn referrers(&self, relation: KeyedBy, target: &ObjectKey) -> Vec<ObjectKey> {
        let state = self.read();
        state.referrers[relation.0].get(target).into_iter().flatten().cloned().collect()
    }

    pub fn referrer_count(&self, relation: KeyedBy, target: &ObjectKey) -> usize {
        self.read().referrers[relation.0].get(target).map_or(0, BTreeSet::len)
    }

    fn read(&self) -> RwLockReadGuard<'_, State<T>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write<R>(&self, change: impl FnOnce(&mut State<T>) -> R) -> R {
        change(&mut self.state.write().unwrap_or_else(PoisonError::into_inner))
    }

    fn put(&self, state: &mut State<T>, key: &ObjectKey, new: Option<T>, touched: &mut Touched) {
        let old = state.entries.remove(key);
        for (relation, references) in self.references.iter().enumerate() {
            let list = |value: Option<&T>| value.map(references).unwrap_or_default();
            state.refer(relation, key, &list(old.as_ref()), &list(new.as_ref()), touched);
        }
        for concerns in &self.concerns {
            touched.extend(concerns(key, old.as_ref(), new.as_ref()));
        }
        if let Some(new) = new {
            let key = self.interned(state, key);
            state.entries.insert(key, new);
        }
    }

    /// The parts that many keys have in common are kept once.
    fn interned(&self, state: &mut State<T>, key: &ObjectKey) -> ObjectKey {
        let namespace = key.namespace.as_ref().map(|namespace| match state.namespaces.get(namespace) {
            Some(known) => known.clone(),
            None => {
                state.namespaces.insert(namespace.clone());
                namespace.clone()
            }
        });
        ObjectKey { resource: self.kind.resource.clone(), namespace, name: key.name.clone() }
    }
}

impl<T> State<T> {
    fn refer(
        &mut self,
        relation: usize,
        from: &ObjectKey,
        old: &[ObjectKey],
        new: &[ObjectKey],
        touched: &mut Touched,
    ) {
        let referrers = &mut self.referrers[relation];
        for gone in old.iter().filter(|key| !new.contains(key)) {
            if let Some(known) = referrers.get_mut(gone) {
                known.remove(from);
                if known.is_empty() {
                    referrers.remove(gone);
                }
            }
            touched.add(gone.clone());
        }
        for come in new.iter().filter(|key| !old.contains(key)) {
            referrers.entry(come.clone()).or_default().insert(from.clone());
            touched.add(come.clone());
        }
    }
}

impl<T: Send + Sync + 'static> Index for Cache<T> {
    fn kinds(&self) -> Vec<Kind> {
        vec![self.kind.clone()]
    }

    fn apply(&self, _kind: &Kind, changes: &[Change<'_>], touched: &mut Touched) {
        // Projected before the lock is taken: readers wait for the insertions
        // alone.
        let projected: Vec<(&ObjectKey, Option<T>)> = changes
            .iter()
            .map(|change| match change {
                Change::Put(item) => (&item.key, (self.project)(item)),
                Change::Gone(key) => (*key, None),
            })
            .collect();
        self.write(|state| {
            for (key, new) in projected {
                self.put(state, key, new, touched);
            }
        });
    }

    fn keys(&self, _kind: &Kind) -> Vec<ObjectKey> {
        self.read().entries.keys().cloned().collect()
    }

    /// It does not know what the status of anything says.
    fn audit(&self, touched: &mut Touched) {
        touched.everything();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use serde_json::json;
    use tidegate_model::ResourceVersion;

    fn category(name: &str) -> ObjectKey {
        Kind::new("shop/v1", "Category", "categories").key(Some("ns"), name)
    }

    fn product(name: &str, category: &str) -> Item {
        let key = Kind::new("shop/v1", "Product", "products").key(Some("ns"), name);
        let json = json!({"spec": {"category": category}}).to_string();
        Item { key, version: ResourceVersion::line_start(1_763_240_000), json: Bytes::from(json) }
    }

    fn cache() -> (Cache<String>, KeyedBy) {
        let project = |item: &Item| {
            let value: serde_json::Value = item.parse().ok()?;
            value["spec"]["category"].as_str().map(Into::into)
        };
        let mut cache = Cache::new(Kind::new("shop/v1", "Product", "products"), project);
        let by = cache.keyed_by(|name: &String| vec![category(name)]);
        (cache, by)
    }

    fn apply(cache: &Cache<String>, change: Change<'_>) -> Vec<ObjectKey> {
        let mut touched = Touched::default();
        cache.apply(&cache.kind, &[change], &mut touched);
        touched.keys().to_vec()
    }

    #[test]
    fn a_product_that_moves_touches_two_categories() {
        let (cache, by) = cache();
        assert_eq!(apply(&cache, Change::Put(&product("lamp", "a"))), [category("a")]);
        assert_eq!(apply(&cache, Change::Put(&product("lamp", "a"))), []);
        assert_eq!(apply(&cache, Change::Put(&product("lamp", "b"))), [category("a"), category("b")]);
        assert_eq!(cache.referrers(by, &category("a")), []);
        assert_eq!(cache.referrers(by, &category("b")), [product("lamp", "").key]);
        assert_eq!(apply(&cache, Change::Gone(&product("lamp", "").key)), [category("b")]);
        assert!(cache.is_empty());
        assert_eq!(cache.referrer_count(by, &category("b")), 0);
    }
}
