//! Values that many objects have in common, kept once.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

/// Invariant: a value is here while somebody besides this set holds it.
pub(crate) struct Shared<T: Eq + Hash>(HashSet<Arc<T>>);

impl<T: Eq + Hash> Default for Shared<T> {
    fn default() -> Self {
        Self(HashSet::new())
    }
}

impl<T: Eq + Hash> Shared<T> {
    pub fn share(&mut self, value: T) -> Arc<T> {
        if let Some(known) = self.0.get(&value) {
            return known.clone();
        }
        let value = Arc::new(value);
        self.0.insert(value.clone());
        value
    }

    pub fn release(&mut self, value: Arc<T>) {
        // Ours and the one that is given back.
        if Arc::strong_count(&value) == 2 {
            self.0.remove(&value);
        }
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}
