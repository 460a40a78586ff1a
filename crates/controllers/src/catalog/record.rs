//! What is saved of an object of the catalogue, so that a restart loads it
//! instead of reading the object.
//!
//! Invariant: a catalogue that is given all records of another one is equal to
//! it, whatever the order.

use serde::{Deserialize, Serialize};

use super::{Catalog, CatalogKind, Facts, Look, Reviewed, Slot, Touched};

/// Raised with every change of what is in a record.
pub const RECORD_FORMAT: u32 = 2;

/// About 60 bytes besides names, labels and options.
#[derive(Serialize, Deserialize)]
pub(super) struct Record<'r> {
    /// Its status does not say what it should.
    pub due: bool,
    pub around: Around,
    #[serde(borrow)]
    pub facts: Facts<'r>,
}

/// What others make of it, for who does not know all of them. It follows from
/// the facts of all objects.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct Around {
    /// How many refer to it, of a category or a product.
    pub referrers: u32,
    /// Those of them that are categories.
    pub children: u32,
    /// Of a variant: no other has its SKU.
    pub holds_sku: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("the record of {kind} {namespace}/{name} cannot be read")]
    Unreadable { kind: &'static str, namespace: String, name: String, source: postcard::Error },
    #[error("the record of {kind} {namespace}/{name} is that of another kind")]
    OtherKind { kind: &'static str, namespace: String, name: String },
}

impl<'r> Record<'r> {
    pub fn read(kind: CatalogKind, namespace: &str, name: &str, record: &'r [u8]) -> Result<Self, RecordError> {
        let owned = || (kind.kind(), namespace.to_owned(), name.to_owned());
        let record: Self = postcard::from_bytes(record).map_err(|source| {
            let (kind, namespace, name) = owned();
            RecordError::Unreadable { kind, namespace, name, source }
        })?;
        if record.facts.kind() != kind {
            let (kind, namespace, name) = owned();
            return Err(RecordError::OtherKind { kind, namespace, name });
        }
        Ok(record)
    }
}

impl Catalog {
    /// `None` if there is no such object.
    pub fn record(&self, kind: CatalogKind, namespace: &str, name: &str) -> Option<Vec<u8>> {
        let slot = self.find(kind, self.namespaces.find(namespace)?, name)?;
        let (due, around) = (self.due.contains(&(kind, slot)), self.around(kind, slot));
        let record = Record { due, around, facts: self.facts(kind, slot)? };
        // Writing to memory does not fail.
        postcard::to_allocvec(&record).ok()
    }

    /// Takes a record back. Nobody is looked at: whoever is due says so.
    pub fn restore(
        &mut self,
        kind: CatalogKind,
        namespace: &str,
        name: &str,
        record: &[u8],
    ) -> Result<(), RecordError> {
        let Record { due, around: _, facts } = Record::read(kind, namespace, name, record)?;
        let namespace = self.namespaces.id(namespace);
        let slot = self.put(namespace, name, facts, &mut Touched::default());
        if due {
            self.due.insert((kind, slot));
        }
        Ok(())
    }

    /// Looks at everybody, because records are not all of one moment.
    pub(super) fn review_all(&mut self) -> Reviewed {
        let mut reviewed = Reviewed::default();
        for kind in CatalogKind::ALL {
            for slot in self.slots(kind) {
                let Look { is_due, was_due } = self.look(kind, slot);
                // A record that is wrong about others is one of an object
                // that does not say what it should.
                if is_due || was_due {
                    reviewed.add(self.key(kind, slot), is_due);
                }
            }
        }
        reviewed
    }

    fn around(&self, kind: CatalogKind, slot: Slot) -> Around {
        match kind {
            CatalogKind::CategoryTaxonomy => Around {
                referrers: self.taxonomy.table.referrers(slot),
                children: self.taxonomy.child_count(slot),
                ..Around::default()
            },
            CatalogKind::Product => Around { referrers: self.products.referrers(slot), ..Around::default() },
            CatalogKind::ProductVariant => Around { holds_sku: self.holds_sku(slot), ..Around::default() },
            CatalogKind::Collection | CatalogKind::File => Around::default(),
        }
    }

    pub(super) fn facts(&self, kind: CatalogKind, slot: Slot) -> Option<Facts<'_>> {
        match kind {
            CatalogKind::CategoryTaxonomy => self.category_facts(slot).map(Facts::Category),
            CatalogKind::Collection => self.collection_facts(slot).map(Facts::Collection),
            CatalogKind::File => self.file_facts(slot).map(Facts::File),
            CatalogKind::Product => self.product_facts(slot).map(Facts::Product),
            CatalogKind::ProductVariant => self.variant_facts(slot).map(Facts::Variant),
        }
    }
}
