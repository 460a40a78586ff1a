//! What is saved of the index as it changes is the index.

use std::collections::BTreeSet;

use bytes::Bytes;
use proptest::prelude::*;
use tidegate_model::{ObjectKey, ResourceVersion};
use tidegate_runtime::{Change, Durable, Index, Item, SavedRecord, Touched};

use super::super::CatalogIndex;
use super::properties::{op, step};
use super::*;

/// An index, and its records as a manager saves them.
#[derive(Default)]
pub(super) struct Saved {
    pub index: CatalogIndex,
    pub rows: BTreeMap<ObjectKey, Bytes>,
}

impl Saved {
    pub fn follow(&mut self, shop: &Shop, id: &(CatalogKind, String)) {
        let (kind, (key, item)) = (id.0, state(shop, id));
        let mut touched = Touched::default();
        let change = item.as_ref().map_or(Change::Gone(&key), Change::Put);
        self.index.apply(&kind.of_runtime(), &[change], &mut touched);
        for key in touched.changed_keys() {
            match self.index.record(key) {
                Some(record) => drop(self.rows.insert(key.clone(), record)),
                None => drop(self.rows.remove(key)),
            }
        }
    }

    fn load(&self, backwards: bool) -> CatalogIndex {
        let loaded = CatalogIndex::default();
        let mut rows: Vec<_> = self.rows.iter().collect();
        if backwards {
            rows.reverse();
        }
        for (key, value) in rows {
            let record = SavedRecord { namespace: key.namespace.as_deref(), name: &key.name, value };
            let kind = CatalogKind::of(&key.resource).unwrap().of_runtime();
            loaded.load(&kind, &[record]).unwrap();
        }
        loaded
    }
}

/// What a watch would say of it.
pub(super) fn state(shop: &Shop, (kind, name): &(CatalogKind, String)) -> (ObjectKey, Option<Item>) {
    let key = kind.of_runtime().key(Some(SHOP), name);
    let item = shop.objects.get(&(*kind, name.clone())).map(|object| Item {
        key: key.clone(),
        version: ResourceVersion::line_start(1_763_240_000),
        json: serde_json::to_vec(object.root()).unwrap().into(),
    });
    (key, item)
}

fn due(index: &CatalogIndex) -> BTreeSet<ObjectKey> {
    let mut touched = Touched::default();
    index.audit(&mut touched);
    touched.keys().iter().cloned().collect()
}

fn check(shop: &Shop, saved: &Saved, loaded: &CatalogIndex) {
    let plan = |(kind, name): &(CatalogKind, String)| loaded.read().plan(*kind, SHOP, name).unwrap();
    let reports: BTreeMap<_, _> = shop.objects.keys().map(|id| (id.clone(), plan(id))).collect();
    assert_eq!(reports, shop.reports());
    let stale = |((kind, name), report): (&(CatalogKind, String), &Report)| {
        let is_due = !loaded.read().says(*kind, SHOP, name, report);
        is_due.then(|| kind.of_runtime().key(Some(SHOP), name))
    };
    let expected: BTreeSet<ObjectKey> = reports.iter().filter_map(stale).collect();
    assert_eq!((due(loaded), due(&saved.index)), (expected.clone(), expected));
    let mut touched = Touched::default();
    loaded.recheck(&mut touched);
    let found: BTreeSet<ObjectKey> = touched.changed_keys().iter().cloned().collect();
    assert_eq!(found, due(loaded), "a look at everybody finds nothing else");
    for (key, record) in &saved.rows {
        assert_eq!(saved.index.record(key).as_ref(), Some(record), "{key} was not saved as it changed");
    }
    let (kept, kept_before) = (loaded.read().len(), saved.index.read().len());
    assert_eq!(kept, kept_before, "no more and no less is kept");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn an_index_from_its_records_is_the_index(ops in prop::collection::vec(op(), 1..40), backwards: bool) {
        let (mut shop, mut saved) = (Shop::default(), Saved::default());
        for op in &ops {
            if let Some(id) = step(&mut shop, op) {
                saved.follow(&shop, &id);
            }
        }
        let loaded = saved.load(backwards);
        check(&shop, &saved, &loaded);
        // And goes on as the one that was saved.
        let mut loaded = Saved { index: loaded, rows: saved.rows.clone() };
        for op in &ops {
            if let Some(id) = step(&mut shop, op) {
                saved.follow(&shop, &id);
                loaded.follow(&shop, &id);
            }
        }
        check(&shop, &saved, &loaded.index);
        prop_assert_eq!(&loaded.rows, &saved.rows);
    }
}

#[test]
fn a_record_that_cannot_be_read_is_an_error() {
    let mut shop = Shop::default();
    shop.put(CatalogKind::File, "f", json!({}));
    let mut saved = Saved::default();
    saved.follow(&shop, &(CatalogKind::File, "f".into()));
    let value = saved.rows.values().next().unwrap();
    let load = |kind: CatalogKind, value: &[u8]| {
        let record = SavedRecord { namespace: Some(SHOP), name: "f", value };
        CatalogIndex::default().load(&kind.of_runtime(), &[record]).map_err(|error| error.to_string())
    };
    assert_eq!(load(CatalogKind::File, value), Ok(()));
    let cut = load(CatalogKind::File, &value[..value.len() - 1]);
    assert_eq!(cut, Err("the record of File shop/f cannot be read".into()));
    let other = load(CatalogKind::Product, value);
    assert_eq!(other, Err("the record of Product shop/f is that of another kind".into()));
}
