//! What a repository owns in the store, by the provenance of each object.

use std::collections::BTreeMap;

use tidegate_admission::Provenance;
use tidegate_model::{Object, ObjectKey};
use tidegate_store::{Selection, StoreError};

use super::Api;

/// The objects of each path.
pub type Owned = BTreeMap<String, Vec<ObjectKey>>;

impl Api {
    /// Of `namespace/name`. Reads all objects: for folders of manifests and for
    /// comparing a store with Git, never on the way of a push.
    pub fn owned_by(&self, repository: &str) -> Result<Owned, StoreError> {
        let view = self.store().view();
        let mut paths = Owned::new();
        for kind in &self.kinds().order {
            for stored in view.scan(&Selection::all(kind.resource.clone()), None) {
                let stored = stored?;
                let object = Object::from_json(&stored.json);
                let source = object.as_ref().and_then(Provenance::of);
                if let Some(source) = source.filter(|source| source.repository == repository) {
                    paths.entry(source.path.to_owned()).or_default().push(stored.key);
                }
            }
        }
        Ok(paths)
    }
}
