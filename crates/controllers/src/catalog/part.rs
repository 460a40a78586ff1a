//! A part of the catalogue: what a few changes need, while the whole is loaded.
//!
//! It holds the objects that have changed, and those that their reports depend
//! on, as they were saved. Of everything else it knows how many refer to the
//! objects that it holds. So a product that moves is two categories and itself,
//! of however many.
//!
//! Invariant: what it answers is what the whole catalogue would. It does not
//! answer for collections, which ask for the labels of all products, nor for a
//! variant whose SKU somebody else may have.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tidegate_model::ObjectKey;
use tidegate_runtime::{BoxError, Change, Kind, Preview, Touched};

use super::index::{Due, facts_of, objects_of};
use super::record::{Around, Record};
use super::{Catalog, CatalogKind, Facts, Slot, Touched as Concerned};

/// Of all records together: names that are referred to and have no object.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Summary {
    absent_categories: usize,
    absent_products: usize,
}

impl Summary {
    pub fn of(catalog: &Catalog) -> Self {
        Self { absent_categories: catalog.taxonomy.table.absent(), absent_products: catalog.products.absent() }
    }

    pub fn to_json(self) -> Value {
        // Numbers can be written.
        serde_json::to_value(self).unwrap_or_default()
    }

    pub fn from_json(json: &Value) -> Option<Self> {
        Self::deserialize(json).ok()
    }

    /// Whether an object without a record may be referred to.
    fn may_be_awaited(&self, kind: CatalogKind) -> bool {
        match kind {
            CatalogKind::CategoryTaxonomy => self.absent_categories > 0,
            CatalogKind::Product => self.absent_products > 0,
            CatalogKind::Collection | CatalogKind::File | CatalogKind::ProductVariant => false,
        }
    }
}

pub(super) struct Part {
    catalog: Catalog,
    summary: Summary,
    asked: HashSet<ObjectKey>,
    wanted: Vec<ObjectKey>,
    /// Those whose report depends on more than what is here.
    unsure: HashSet<ObjectKey>,
    /// To be looked at with the next change: others may have changed before
    /// they came.
    loaded: Concerned,
}

impl Part {
    pub fn new(summary: Summary) -> Self {
        Self {
            catalog: Catalog::default(),
            summary,
            asked: HashSet::new(),
            wanted: Vec::new(),
            unsure: HashSet::new(),
            loaded: Concerned::default(),
        }
    }

    pub fn answers(&self, key: &ObjectKey) -> bool {
        self.asked.contains(key) && !self.unsure.contains(key)
    }

    pub fn due(&self, key: &ObjectKey) -> Option<Due> {
        if self.answers(key) { self.catalog.due(key) } else { None }
    }

    pub fn needs(&mut self, kind: CatalogKind, changes: &[Change<'_>]) -> Vec<ObjectKey> {
        let objects = objects_of(changes);
        for (key, facts) in facts_of(kind, &objects) {
            self.want(key.clone());
            self.want_references(key, facts.as_ref());
        }
        std::mem::take(&mut self.wanted)
    }

    fn want(&mut self, key: ObjectKey) {
        if self.asked.insert(key.clone()) {
            self.wanted.push(key);
        }
    }

    fn want_references(&mut self, key: &ObjectKey, facts: Option<&Facts<'_>>) {
        for (kind, name) in facts.into_iter().flat_map(Facts::references) {
            self.want(ObjectKey { resource: kind.resource(), namespace: key.namespace.clone(), name: name.into() });
        }
    }

    pub fn load(&mut self, key: &ObjectKey, record: Option<&[u8]>) -> Result<(), BoxError> {
        let Some((kind, namespace)) = address(key) else { return Ok(()) };
        let Some(record) = record else {
            if self.summary.may_be_awaited(kind) {
                self.unsure.insert(key.clone());
            }
            return Ok(());
        };
        let Record { facts, around, due: _ } = Record::read(kind, namespace, &key.name, record)?;
        self.want_references(key, Some(&facts));
        let is_rival = matches!(&facts, Facts::Variant(variant) if variant.claim().is_some() && !around.holds_sku);
        if is_rival || kind == CatalogKind::Collection {
            self.unsure.insert(key.clone());
        }
        let slot = self.catalog.enter_part(namespace, &key.name, facts, around);
        self.loaded.add(kind, slot);
        Ok(())
    }

    pub fn apply(&mut self, kind: CatalogKind, changes: &[Change<'_>], touched: &mut Touched) {
        let objects = objects_of(changes);
        let mut concerned = std::mem::take(&mut self.loaded);
        let mut answered: HashSet<ObjectKey> = HashSet::new();
        for (key, facts) in facts_of(kind, &objects) {
            let namespace = key.namespace.as_deref().unwrap_or_default();
            if kind == CatalogKind::Collection || self.claims_anew(namespace, &key.name, facts.as_ref()) {
                self.unsure.insert(key.clone());
            }
            let itself = self.catalog.change(kind, namespace, &key.name, facts, &mut concerned);
            concerned.extend(kind, itself);
            answered.insert(key.clone());
        }
        answered.extend(self.catalog.review(concerned).due);
        touched.extend(answered.into_iter().filter(|key| self.answers(key)));
    }

    /// Somebody who is not here may have the SKU that it asks for now.
    fn claims_anew(&self, namespace: &str, name: &str, facts: Option<&Facts<'_>>) -> bool {
        let Some(Facts::Variant(after)) = facts else { return false };
        let found = self.catalog.namespaces.find(namespace);
        let before = found.and_then(|namespace| self.catalog.variants.find(namespace, name));
        let before = before.and_then(|slot| self.catalog.variant_facts(slot));
        after.claim().is_some() && before.and_then(|before| before.claim()) != after.claim()
    }
}

impl Catalog {
    /// Takes in an object as it was saved: what refers to it is counted in
    /// `around`, and so is itself in what it refers to.
    fn enter_part(&mut self, namespace: &str, name: &str, facts: Facts<'_>, around: Around) -> Slot {
        let namespace = self.namespaces.id(namespace);
        let kind = facts.kind();
        let targets: Vec<(CatalogKind, String)> =
            facts.references().map(|(kind, name)| (kind, name.to_owned())).collect();
        let slot = self.put(namespace, name, facts, &mut Concerned::default());
        let Around { referrers, children, .. } = around;
        match kind {
            CatalogKind::CategoryTaxonomy => {
                self.taxonomy.child_elsewhere(slot, i64::from(children));
                self.taxonomy.table.refer_elsewhere(slot, i64::from(referrers) - i64::from(children));
            }
            CatalogKind::Product => self.products.refer_elsewhere(slot, i64::from(referrers)),
            CatalogKind::Collection | CatalogKind::File | CatalogKind::ProductVariant => {}
        }
        for (target, name) in targets {
            if let Some(slot) = self.find(target, namespace, &name) {
                self.is_here(kind, target, slot);
            }
        }
        slot
    }

    /// One of those that refer to `target` is not elsewhere any more.
    fn is_here(&mut self, source: CatalogKind, target: CatalogKind, slot: Slot) {
        match (source, target) {
            (CatalogKind::CategoryTaxonomy, CatalogKind::CategoryTaxonomy) => self.taxonomy.child_elsewhere(slot, -1),
            (_, CatalogKind::CategoryTaxonomy) => self.taxonomy.table.refer_elsewhere(slot, -1),
            (_, CatalogKind::Product) => self.products.refer_elsewhere(slot, -1),
            _ => {}
        }
    }
}

fn address(key: &ObjectKey) -> Option<(CatalogKind, &str)> {
    Some((CatalogKind::of(&key.resource)?, key.namespace.as_deref()?))
}

/// Who answers: nobody here, as long as the whole catalogue does.
#[derive(Default)]
pub(super) struct Ahead(RwLock<Answering>);

#[derive(Default)]
enum Answering {
    #[default]
    Whole,
    Part(Box<Part>),
    /// It has fallen behind.
    Nobody,
}

impl Ahead {
    /// `None` if it is not for a part to say; otherwise what there is to write.
    pub fn due(&self, key: &ObjectKey) -> Option<Option<Due>> {
        match &*self.read() {
            Answering::Whole => None,
            Answering::Part(part) => Some(part.due(key)),
            Answering::Nobody => Some(None),
        }
    }

    pub fn begin(self: &Arc<Self>, summary: Summary) -> CatalogPreview {
        *self.write() = Answering::Part(Box::new(Part::new(summary)));
        CatalogPreview(self.clone())
    }

    fn read(&self) -> RwLockReadGuard<'_, Answering> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Answering> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn part<R: Default>(&self, work: impl FnOnce(&mut Part) -> R) -> R {
        match &mut *self.write() {
            Answering::Part(part) => work(part),
            Answering::Whole | Answering::Nobody => R::default(),
        }
    }
}

pub(super) struct CatalogPreview(Arc<Ahead>);

impl Preview for CatalogPreview {
    fn needs(&mut self, kind: &Kind, changes: &[Change<'_>]) -> Vec<ObjectKey> {
        let Some(kind) = CatalogKind::of(&kind.resource) else { return Vec::new() };
        self.0.part(|part| part.needs(kind, changes))
    }

    fn load(&mut self, key: &ObjectKey, record: Option<&[u8]>) -> Result<(), BoxError> {
        match &mut *self.0.write() {
            Answering::Part(part) => part.load(key, record),
            Answering::Whole | Answering::Nobody => Ok(()),
        }
    }

    fn apply(&mut self, kind: &Kind, changes: &[Change<'_>], touched: &mut Touched) {
        let Some(kind) = CatalogKind::of(&kind.resource) else { return };
        self.0.part(|part| part.apply(kind, changes, touched));
    }

    fn close(&mut self) {
        *self.0.write() = Answering::Nobody;
    }
}

impl Drop for CatalogPreview {
    fn drop(&mut self) {
        *self.0.write() = Answering::Whole;
    }
}
