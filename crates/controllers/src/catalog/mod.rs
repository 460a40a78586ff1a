//! The catalogue as one index: what is in it, what refers to what, and what
//! each object's status should say.
//!
//! Pure: a change goes in ([`Catalog::apply`]) and says whose report it may
//! have changed; [`Catalog::plan`] is the report of one object.
//!
//! Invariant: the index depends on the objects in it alone, not on the order
//! in which they came. Work is in proportion to what a change touches: nothing
//! here walks the objects of a namespace.

mod categories;
mod collections;
mod edges;
mod facts;
mod files;
mod index;
mod labels;
mod part;
mod pricing;
mod products;
mod record;
mod shared;
mod skus;
mod table;
mod taxonomy;
mod variants;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, LazyLock};

use tidegate_model::{GroupResource, Object, ObjectKey};

use collections::Collection;
use edges::Edges;
use facts::{Common, Facts, Options, Selected};
use files::File;
pub use index::{CatalogIndex, CatalogReconciler, add_to};
use labels::LabelIndex;
use pricing::Pricing;
use products::Product;
use shared::Shared;
use skus::Skus;
use table::{NamespaceId, Slot, Table};
pub use taxonomy::CATEGORY_DEPTH_MAX;
use taxonomy::Taxonomy;
use variants::Variant;

use crate::report::Report;

pub const GROUP: &str = "catalog.gitstore.dev";
pub const API_VERSION: &str = "catalog.gitstore.dev/v1beta1";

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CatalogKind {
    CategoryTaxonomy,
    Collection,
    File,
    Product,
    ProductVariant,
}

impl CatalogKind {
    pub const ALL: [Self; 5] =
        [Self::CategoryTaxonomy, Self::Collection, Self::File, Self::Product, Self::ProductVariant];

    pub fn kind(self) -> &'static str {
        match self {
            Self::CategoryTaxonomy => "CategoryTaxonomy",
            Self::Collection => "Collection",
            Self::File => "File",
            Self::Product => "Product",
            Self::ProductVariant => "ProductVariant",
        }
    }

    pub fn plural(self) -> &'static str {
        match self {
            Self::CategoryTaxonomy => "categorytaxonomies",
            Self::Collection => "collections",
            Self::File => "files",
            Self::Product => "products",
            Self::ProductVariant => "productvariants",
        }
    }

    pub fn of(resource: &GroupResource) -> Option<Self> {
        let of_group = &*resource.group == GROUP;
        Self::ALL.into_iter().find(|kind| of_group && kind.plural() == &*resource.plural)
    }

    fn resource(self) -> GroupResource {
        static RESOURCES: LazyLock<[GroupResource; CatalogKind::ALL.len()]> =
            LazyLock::new(|| CatalogKind::ALL.map(|kind| GroupResource::new(GROUP, kind.plural())));
        RESOURCES[self as usize].clone()
    }

    /// The conditions that its reconciler owns, besides those of kstatus.
    fn conditions(self) -> &'static [&'static str] {
        match self {
            Self::CategoryTaxonomy => categories::CONDITIONS,
            Self::Product => products::CONDITIONS,
            Self::ProductVariant => variants::CONDITIONS,
            Self::Collection | Self::File => &[],
        }
    }
}

#[derive(Default)]
pub struct Catalog {
    namespaces: Namespaces,
    taxonomy: Taxonomy,
    products: Table<Product>,
    variants: Table<Variant>,
    collections: Table<Collection>,
    files: Table<File>,
    category_products: Edges,
    product_variants: Edges,
    /// By the kind of the user.
    file_users: [Edges; CatalogKind::ALL.len()],
    labels: LabelIndex,
    skus: Skus,
    options: Shared<Options>,
    selected: Shared<Selected>,
    pricing: Shared<Pricing>,
    /// Those whose status does not say what is to be said.
    due: BTreeSet<(CatalogKind, Slot)>,
}

impl Catalog {
    /// Takes in the state of one object, `None` if it is gone. Returns the
    /// other objects whose report it may have changed.
    pub fn apply(&mut self, kind: CatalogKind, namespace: &str, name: &str, object: Option<&Object>) -> Vec<ObjectKey> {
        let facts = object.map(|object| Facts::of(kind, object));
        let mut touched = Touched::default();
        let itself = self.change(kind, namespace, name, facts, &mut touched);
        let others = touched.0.iter().filter_map(|(kind, slot)| self.key(*kind, *slot)).collect();
        touched.extend(kind, itself);
        self.review(touched);
        others
    }

    /// The same for many: each change adds to `touched` what [`Self::review`]
    /// has to look at, but for the object itself, which is returned.
    fn change(
        &mut self,
        kind: CatalogKind,
        namespace: &str,
        name: &str,
        facts: Option<Facts<'_>>,
        touched: &mut Touched,
    ) -> Option<Slot> {
        let namespace = self.namespaces.id(namespace);
        match facts {
            Some(facts) => Some(self.put(namespace, name, facts, touched)),
            None => {
                let slot = self.find(kind, namespace, name)?;
                self.remove(kind, slot, touched);
                Some(slot)
            }
        }
    }

    fn put(&mut self, namespace: NamespaceId, name: &str, facts: Facts<'_>, touched: &mut Touched) -> Slot {
        match facts {
            Facts::Category(facts) => {
                let slot = self.taxonomy.table.slot(namespace, name);
                self.apply_category(slot, Some(facts), touched);
                slot
            }
            Facts::Product(facts) => {
                let slot = self.products.slot(namespace, name);
                self.apply_product(slot, Some(facts), touched);
                slot
            }
            Facts::Variant(facts) => {
                let slot = self.variants.slot(namespace, name);
                self.apply_variant(slot, Some(facts), touched);
                slot
            }
            Facts::Collection(facts) => {
                let slot = self.collections.slot(namespace, name);
                self.apply_collection(slot, Some(facts));
                slot
            }
            Facts::File(facts) => {
                let slot = self.files.slot(namespace, name);
                self.apply_file(slot, Some(facts), touched);
                slot
            }
        }
    }

    fn remove(&mut self, kind: CatalogKind, slot: Slot, touched: &mut Touched) {
        match kind {
            CatalogKind::CategoryTaxonomy => self.apply_category(slot, None, touched),
            CatalogKind::Product => self.apply_product(slot, None, touched),
            CatalogKind::ProductVariant => self.apply_variant(slot, None, touched),
            CatalogKind::Collection => self.apply_collection(slot, None),
            CatalogKind::File => self.apply_file(slot, None, touched),
        }
    }

    /// Finds out who of `touched` has something to write.
    fn review(&mut self, touched: Touched) -> Reviewed {
        let mut reviewed = Reviewed::default();
        for (kind, slot) in touched.0 {
            let Look { is_due, .. } = self.look(kind, slot);
            reviewed.add(self.key(kind, slot), is_due);
        }
        reviewed
    }

    fn look(&mut self, kind: CatalogKind, slot: Slot) -> Look {
        let is_due = self.is_due(kind, slot);
        let was_due = if is_due { !self.due.insert((kind, slot)) } else { self.due.remove(&(kind, slot)) };
        Look { is_due, was_due }
    }

    /// Whether its status does not say what it should; no, if it is not there.
    fn is_due(&self, kind: CatalogKind, slot: Slot) -> bool {
        let Some(said) = self.common(kind, slot).map(|common| common.digest) else { return false };
        self.plan_at(kind, slot).is_some_and(|report| report.digest() != said)
    }

    /// What the status of an object should say; `None` if it is not there.
    pub fn plan(&self, kind: CatalogKind, namespace: &str, name: &str) -> Option<Report> {
        self.plan_at(kind, self.find(kind, self.namespaces.find(namespace)?, name)?)
    }

    /// Of a slot in use.
    fn plan_at(&self, kind: CatalogKind, slot: Slot) -> Option<Report> {
        match kind {
            CatalogKind::CategoryTaxonomy => self.plan_category(slot),
            CatalogKind::Product => self.plan_product(slot),
            CatalogKind::ProductVariant => self.plan_variant(slot),
            CatalogKind::Collection => self.plan_collection(slot),
            CatalogKind::File => self.plan_file(slot),
        }
    }

    /// Whether the status that came with the object already says what `report`
    /// says.
    pub fn says(&self, kind: CatalogKind, namespace: &str, name: &str, report: &Report) -> bool {
        let found = self.namespaces.find(namespace).and_then(|namespace| self.find(kind, namespace, name));
        found.and_then(|slot| self.common(kind, slot)).is_some_and(|common| common.digest == report.digest())
    }

    /// What is kept of all objects together; nothing, once all are gone.
    #[cfg(test)]
    fn len(&self) -> usize {
        let tables = [
            self.taxonomy.table.len(),
            self.products.len(),
            self.variants.len(),
            self.collections.len(),
            self.files.len(),
        ];
        let edges =
            [&self.category_products, &self.product_variants].into_iter().chain(&self.file_users).map(Edges::len);
        let others = [self.labels.len(), self.skus.len(), self.options.len(), self.selected.len(), self.pricing.len()];
        tables.into_iter().chain(edges).chain(others).sum::<usize>() + self.due.len()
    }

    fn find(&self, kind: CatalogKind, namespace: NamespaceId, name: &str) -> Option<Slot> {
        match kind {
            CatalogKind::CategoryTaxonomy => self.taxonomy.table.find(namespace, name),
            CatalogKind::Product => self.products.find(namespace, name),
            CatalogKind::ProductVariant => self.variants.find(namespace, name),
            CatalogKind::Collection => self.collections.find(namespace, name),
            CatalogKind::File => self.files.find(namespace, name),
        }
    }

    fn common(&self, kind: CatalogKind, slot: Slot) -> Option<&Common> {
        match kind {
            CatalogKind::CategoryTaxonomy => self.taxonomy.table.known(slot).map(|facts| &facts.common),
            CatalogKind::Product => self.products.known(slot).map(|facts| &facts.common),
            CatalogKind::ProductVariant => self.variants.known(slot).map(|facts| &facts.common),
            CatalogKind::Collection => self.collections.known(slot).map(|facts| &facts.common),
            CatalogKind::File => self.files.known(slot).map(|facts| &facts.common),
        }
    }

    fn slots(&self, kind: CatalogKind) -> Vec<Slot> {
        match kind {
            CatalogKind::CategoryTaxonomy => self.taxonomy.table.slots().collect(),
            CatalogKind::Product => self.products.slots().collect(),
            CatalogKind::ProductVariant => self.variants.slots().collect(),
            CatalogKind::Collection => self.collections.slots().collect(),
            CatalogKind::File => self.files.slots().collect(),
        }
    }

    fn keys_of(&self, kind: CatalogKind) -> Vec<ObjectKey> {
        self.slots(kind).into_iter().filter_map(|slot| self.key(kind, slot)).collect()
    }

    fn due_keys(&self) -> impl Iterator<Item = ObjectKey> {
        self.due.iter().filter_map(|(kind, slot)| self.key(*kind, *slot))
    }

    /// `None` if it does not exist.
    fn key(&self, kind: CatalogKind, slot: Slot) -> Option<ObjectKey> {
        self.common(kind, slot)?;
        let (namespace, name) = match kind {
            CatalogKind::CategoryTaxonomy => self.taxonomy.table.address(slot),
            CatalogKind::Product => self.products.address(slot),
            CatalogKind::ProductVariant => self.variants.address(slot),
            CatalogKind::Collection => self.collections.address(slot),
            CatalogKind::File => self.files.address(slot),
        };
        Some(ObjectKey {
            resource: kind.resource(),
            namespace: Some(self.namespaces.name(namespace)),
            name: name.into(),
        })
    }
}

/// Whose report a change may have changed.
#[derive(Default)]
pub(crate) struct Touched(BTreeSet<(CatalogKind, Slot)>);

impl Touched {
    fn add(&mut self, kind: CatalogKind, slot: Slot) {
        self.0.insert((kind, slot));
    }

    fn extend(&mut self, kind: CatalogKind, slots: impl IntoIterator<Item = Slot>) {
        self.0.extend(slots.into_iter().map(|slot| (kind, slot)));
    }
}

/// What came of a look at touched objects.
#[derive(Default)]
struct Reviewed {
    due: Vec<ObjectKey>,
    /// Those whose record may be another.
    changed: Vec<ObjectKey>,
}

impl Reviewed {
    /// Nothing, if it does not exist.
    fn add(&mut self, key: Option<ObjectKey>, is_due: bool) {
        self.due.extend(key.clone().filter(|_| is_due));
        self.changed.extend(key);
    }
}

struct Look {
    is_due: bool,
    was_due: bool,
}

/// Kept for as long as the process runs: 4 bytes in each object instead of a
/// name, and few of them.
#[derive(Default)]
struct Namespaces {
    names: Vec<Arc<str>>,
    ids: HashMap<Arc<str>, NamespaceId>,
}

impl Namespaces {
    fn find(&self, name: &str) -> Option<NamespaceId> {
        self.ids.get(name).copied()
    }

    fn id(&mut self, name: &str) -> NamespaceId {
        if let Some(id) = self.find(name) {
            return id;
        }
        let (id, name): (_, Arc<str>) = (NamespaceId::new(self.names.len()), name.into());
        self.names.push(name.clone());
        self.ids.insert(name, id);
        id
    }

    fn name(&self, id: NamespaceId) -> Arc<str> {
        self.names[id.index()].clone()
    }
}

#[cfg(test)]
mod tests;
