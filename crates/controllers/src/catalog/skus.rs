//! Who holds a SKU: in each namespace the oldest variant that claims it.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::table::{NamespaceId, Slot};
use super::{CatalogKind, Touched};

/// Creation time in seconds, then name: the variants of one push are created
/// in the same second, and the order of names is one that people can predict.
pub(crate) type Claim = (i64, Arc<str>, Slot);

#[derive(Default)]
pub(crate) struct Skus(HashMap<(NamespaceId, Arc<str>), Claims>);

/// Nearly every SKU is claimed once: it then needs no set.
enum Claims {
    One(Claim),
    Several(BTreeSet<Claim>),
}

impl Skus {
    pub fn holder(&self, namespace: NamespaceId, sku: &Arc<str>) -> Option<&Claim> {
        match self.0.get(&(namespace, sku.clone()))? {
            Claims::One(claim) => Some(claim),
            Claims::Several(claims) => claims.first(),
        }
    }

    /// Touches the other claimants if the holder changes: they name it.
    pub fn insert(&mut self, namespace: NamespaceId, sku: &Arc<str>, claim: Claim, touched: &mut Touched) {
        match self.0.entry((namespace, sku.clone())) {
            Entry::Vacant(entry) => {
                entry.insert(Claims::One(claim));
            }
            Entry::Occupied(mut entry) => {
                let claims = entry.get_mut().as_set();
                if claims.first().is_some_and(|first| claim < *first) {
                    touched.extend(CatalogKind::ProductVariant, claims.iter().map(|(_, _, slot)| *slot));
                }
                claims.insert(claim);
            }
        }
    }

    pub fn remove(&mut self, namespace: NamespaceId, sku: &Arc<str>, claim: &Claim, touched: &mut Touched) {
        let Entry::Occupied(mut entry) = self.0.entry((namespace, sku.clone())) else { return };
        let claims = entry.get_mut().as_set();
        let held = claims.first() == Some(claim);
        claims.remove(claim);
        if held {
            touched.extend(CatalogKind::ProductVariant, claims.iter().map(|(_, _, slot)| *slot));
        }
        match (claims.len(), claims.first().cloned()) {
            (1, Some(last)) => *entry.get_mut() = Claims::One(last),
            (0, _) => drop(entry.remove()),
            _ => {}
        }
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl Claims {
    fn as_set(&mut self) -> &mut BTreeSet<Claim> {
        if let Self::One(claim) = self {
            *self = Self::Several(BTreeSet::from([claim.clone()]));
        }
        match self {
            Self::Several(claims) => claims,
            Self::One(_) => unreachable!("it was made several above"),
        }
    }
}
