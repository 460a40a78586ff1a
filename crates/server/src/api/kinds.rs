//! The kinds in force: the built-in ones and those of the stored CRDs.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_model::Object;
use tidegate_model::kinds::{Kind, KindSet};

/// Never changed, only replaced.
pub struct KindsInForce {
    pub set: KindSet,
    /// In the order in which they came into force, so that a name that was
    /// given to one is not taken over by a later one.
    pub order: Vec<Arc<Kind>>,
}

impl KindsInForce {
    pub fn new(set: KindSet, order: impl Iterator<Item = Arc<Kind>>) -> Self {
        Self { set, order: order.collect() }
    }
}

/// The CRDs as they were last usable, by age.
#[derive(Default)]
pub struct CrdKinds {
    kinds: BTreeMap<Age, Arc<Kind>>,
    ages: BTreeMap<String, Age>,
}

type Age = (String, String);

impl CrdKinds {
    /// Takes over the new state of one CRD; `None` if it is gone. One that
    /// cannot be read leaves the last good one in force: it passed admission,
    /// so this is a defect, and not a reason to stop serving its objects.
    pub fn apply(&mut self, name: &str, crd: Option<&Object>) {
        let Some(crd) = crd else { return self.remove(name) };
        match Kind::from_crd(crd) {
            Ok(kind) => {
                let created =
                    crd.metadata().get("creationTimestamp").and_then(|value| value.as_str()).unwrap_or_default();
                self.remove(name);
                let age = (created.to_owned(), name.to_owned());
                self.ages.insert(name.to_owned(), age.clone());
                self.kinds.insert(age, Arc::new(kind));
            }
            Err(errors) => tracing::error!(
                crd = name,
                ?errors,
                "a stored CustomResourceDefinition cannot be used; its last good state stays in force"
            ),
        }
    }

    fn remove(&mut self, name: &str) {
        if let Some(age) = self.ages.remove(name) {
            self.kinds.remove(&age);
        }
    }

    pub fn in_force(&self) -> KindsInForce {
        let mut set = KindSet::builtin();
        let builtin: Vec<_> = set.iter().cloned().collect();
        let mut accepted = Vec::new();
        for kind in self.kinds.values() {
            match set.with(kind.clone()) {
                Ok(next) => {
                    set = next;
                    accepted.push(kind.clone());
                }
                Err(errors) => {
                    tracing::error!(kind = %kind.resource, ?errors, "the names of a stored CustomResourceDefinition conflict; it is not served")
                }
            }
        }
        KindsInForce::new(set, builtin.into_iter().chain(accepted))
    }
}
