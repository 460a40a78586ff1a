//! What a deleted `Repository` leaves behind: a mark with its uid, written in
//! the transaction that deletes it, which says that its objects and its data
//! have to follow.
//!
//! It is the one sign of a deletion. A directory without an object may as well
//! be that of a store that was restored from a backup.

use bytes::Bytes;
use tidegate_model::{Object, ObjectKey};
use tidegate_store::{StoreError, View};

use crate::repos::RepositoryId;

const PREFIX: &str = "deleted/";

/// The uid of the object that was deleted, or is about to go once its
/// finalizers are done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tombstone(pub String);

impl Tombstone {
    /// For the deletion of `object`; `system/control` is never gone.
    pub(super) fn raise(key: &ObjectKey, object: &Object) -> Option<(String, Option<Bytes>)> {
        let id = RepositoryId::new(key.namespace.as_deref().unwrap_or_default(), &key.name)?;
        let is_repository = id.key() == *key && id != RepositoryId::control();
        is_repository.then(|| (Self::name(&id), Some(object.uid().unwrap_or_default().to_owned().into())))
    }

    pub fn name(id: &RepositoryId) -> String {
        format!("{PREFIX}{id}")
    }

    pub fn read(view: &View, id: &RepositoryId) -> Result<Option<Self>, StoreError> {
        let value = view.mark(&Self::name(id))?;
        Ok(value.map(|value| Self(String::from_utf8_lossy(&value).into_owned())))
    }

    /// Whose tombstones there are.
    pub fn list(view: &View) -> Result<Vec<RepositoryId>, StoreError> {
        let ids = view.marks(PREFIX, None).map(|row| Ok(RepositoryId::parse(&row?.0[PREFIX.len()..])));
        ids.filter_map(Result::transpose).collect()
    }
}
