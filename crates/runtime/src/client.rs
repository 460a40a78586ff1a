//! What a reconciler reads and writes with.

use std::sync::Arc;

use serde_json::Value;
use tidegate_model::{ObjectKey, ResourceVersion};
use tokio::sync::watch;

use crate::{ApiError, Fault, Fence, Item, Kind, Plane, Precondition, ReconcileError};

/// A status write that meets another writer reads again so many times before
/// the queue's backoff takes over. Two writers of one object alternate; more
/// than five in a row means that somebody writes without pause.
const STATUS_ATTEMPTS_MAX: usize = 5;

/// Cheap to clone. A manager's client writes under the manager's lease: once
/// another manager has taken over, its writes are refused by the server.
#[derive(Clone)]
pub struct Client {
    plane: Arc<dyn Plane>,
    term: Option<watch::Receiver<Option<Fence>>>,
}

impl Client {
    /// Without a lease, for a program of which there is only one.
    pub fn new(plane: Arc<dyn Plane>) -> Self {
        Self { plane, term: None }
    }

    pub(crate) fn fenced(plane: Arc<dyn Plane>, term: watch::Receiver<Option<Fence>>) -> Self {
        Self { plane, term: Some(term) }
    }

    pub fn plane(&self) -> &Arc<dyn Plane> {
        &self.plane
    }

    /// The object as it is now, from the API and not from a cache.
    pub async fn get(&self, kind: &Kind, key: &ObjectKey) -> Result<Option<Item>, ApiError> {
        self.plane.get(kind, key).await
    }

    /// Merges `patch` into the status of the object at `version`.
    pub async fn patch_status(
        &self,
        kind: &Kind,
        key: &ObjectKey,
        version: ResourceVersion,
        patch: Value,
    ) -> Result<Item, ApiError> {
        self.plane.patch_status(kind, &self.precondition(key, version)?, patch).await
    }

    /// Reads the object, asks `patch` what to report of it, and writes that;
    /// when somebody else wrote in between, does so again with what is there
    /// then, a few times. `None` if the object is gone or `patch` has nothing
    /// to say.
    pub async fn report<F>(&self, kind: &Kind, key: &ObjectKey, mut patch: F) -> Result<Option<Item>, ReconcileError>
    where
        F: FnMut(&Item) -> Result<Option<Value>, ReconcileError> + Send,
    {
        let mut conflict = None;
        for _ in 0..STATUS_ATTEMPTS_MAX {
            let Some(item) = self.get(kind, key).await? else { return Ok(None) };
            let Some(patch) = patch(&item)? else { return Ok(None) };
            match self.patch_status(kind, key, item.version, patch).await {
                Ok(item) => return Ok(Some(item)),
                Err(error) if error.is(Fault::Conflict) => conflict = Some(error),
                Err(error) if error.is(Fault::NotFound) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
        let conflict = conflict.unwrap_or_else(|| ApiError::new(Fault::Conflict, "the object keeps changing"));
        Err(conflict.into())
    }

    /// `None` if removing the last finalizer of a terminating object removed it.
    pub async fn patch_finalizers(
        &self,
        kind: &Kind,
        key: &ObjectKey,
        version: ResourceVersion,
        add: &[&str],
        remove: &[&str],
    ) -> Result<Option<Item>, ApiError> {
        let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let at = self.precondition(key, version)?;
        self.plane.patch_finalizers(kind, &at, &owned(add), &owned(remove)).await
    }

    fn precondition(&self, key: &ObjectKey, version: ResourceVersion) -> Result<Precondition, ApiError> {
        Ok(Precondition { key: key.clone(), version, fence: self.fence()? })
    }

    /// Which term of the lease this is; `None` without one. What a reconciler
    /// keeps in memory of an earlier term may be out of date: another manager
    /// may have worked meanwhile.
    pub fn term(&self) -> Option<i64> {
        self.term.as_ref().and_then(|term| term.borrow().as_ref().map(|fence| fence.transitions))
    }

    /// Also checked here: a manager that knows it has lost the lease need not
    /// ask the server.
    pub(crate) fn fence(&self) -> Result<Option<Fence>, ApiError> {
        let Some(term) = &self.term else { return Ok(None) };
        match &*term.borrow() {
            Some(fence) => Ok(Some(fence.clone())),
            None => Err(ApiError::new(Fault::LeaseLost, "another manager holds the lease")),
        }
    }
}
