//! What admission is given: a change, and the state that it would change.

use std::sync::Arc;

use tidegate_model::{GroupResource, Object, ObjectKey};

use crate::Rules;

/// The files of a repository that differ from what is projected.
#[derive(Clone, Debug, Default)]
pub struct Change<'c> {
    /// Added or changed, with their new content.
    pub files: Vec<File<'c>>,
    /// Paths that are gone. A moved file is removed here and added there.
    pub removed: Vec<&'c str>,
    /// What [`crate::needs`] asks for: files that did not change and are looked
    /// at all the same.
    pub concerned: Vec<Concerned<'c>>,
}

/// Files of one repository as they are in force.
#[derive(Clone, Debug)]
pub struct Concerned<'c> {
    /// Of the repository that the files are of.
    pub rules: &'c Rules,
    pub files: Vec<File<'c>>,
}

#[derive(Clone, Copy, Debug)]
pub struct File<'c> {
    pub path: &'c str,
    pub bytes: &'c [u8],
}

impl<'c> Change<'c> {
    /// Every path that the change is about.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &'c str> {
        self.files.iter().map(|file| file.path).chain(self.removed.iter().copied())
    }
}

/// One consistent state of the store, read by several threads at once.
pub trait State: Sync {
    /// Why the state could not be read: a failure of ours, never of a push.
    type Error: Send;

    fn current(&self, key: &ObjectKey) -> Result<Option<Arc<Object>>, Self::Error>;

    /// The objects that the repository of this change defined at `path` when
    /// it was last projected. Too many do no harm: of these only such are
    /// deleted whose provenance says the same.
    fn defined_at(&self, path: &str) -> Result<Vec<ObjectKey>, Self::Error>;

    /// Stored objects of a type: in one namespace, or in all.
    fn count(&self, resource: &GroupResource, namespace: Option<&str>) -> Result<u64, Self::Error>;
}
