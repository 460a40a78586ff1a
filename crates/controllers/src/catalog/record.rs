//! What is saved of an object of the catalogue, so that a restart loads it
//! instead of reading the object.
//!
//! Invariant: a catalogue that is given all records of another one is equal to
//! it, whatever the order.

use serde::{Deserialize, Serialize};

use super::{Catalog, CatalogKind, Facts, Reviewed, Slot, Touched};

/// Raised with every change of what is in a record.
pub const RECORD_FORMAT: u32 = 1;

/// About 60 bytes besides names, labels and options.
#[derive(Serialize, Deserialize)]
struct Record<'r> {
    /// Its status does not say what it should.
    due: bool,
    #[serde(borrow)]
    facts: Facts<'r>,
}

#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("the record of {kind} {namespace}/{name} cannot be read")]
    Unreadable { kind: &'static str, namespace: String, name: String, source: postcard::Error },
    #[error("the record of {kind} {namespace}/{name} is that of another kind")]
    OtherKind { kind: &'static str, namespace: String, name: String },
}

impl Catalog {
    /// `None` if there is no such object.
    pub fn record(&self, kind: CatalogKind, namespace: &str, name: &str) -> Option<Vec<u8>> {
        let slot = self.find(kind, self.namespaces.find(namespace)?, name)?;
        let record = Record { due: self.due.contains(&(kind, slot)), facts: self.facts(kind, slot)? };
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
        let owned = || (kind.kind(), namespace.to_owned(), name.to_owned());
        let Record { due, facts } = postcard::from_bytes(record).map_err(|source| {
            let (kind, namespace, name) = owned();
            RecordError::Unreadable { kind, namespace, name, source }
        })?;
        if facts.kind() != kind {
            let (kind, namespace, name) = owned();
            return Err(RecordError::OtherKind { kind, namespace, name });
        }
        let namespace = self.namespaces.id(namespace);
        let slot = self.put(namespace, name, facts, &mut Touched::default());
        if due {
            self.due.insert((kind, slot));
        }
        Ok(())
    }

    /// Looks at everybody, because records are not all of one moment.
    pub(super) fn review_all(&mut self) -> Reviewed {
        let mut all = Touched::default();
        for kind in CatalogKind::ALL {
            all.extend(kind, self.slots(kind));
        }
        self.review(all)
    }

    fn facts(&self, kind: CatalogKind, slot: Slot) -> Option<Facts<'_>> {
        match kind {
            CatalogKind::CategoryTaxonomy => self.category_facts(slot).map(Facts::Category),
            CatalogKind::Collection => self.collection_facts(slot).map(Facts::Collection),
            CatalogKind::File => self.file_facts(slot).map(Facts::File),
            CatalogKind::Product => self.product_facts(slot).map(Facts::Product),
            CatalogKind::ProductVariant => self.variant_facts(slot).map(Facts::Variant),
        }
    }
}
