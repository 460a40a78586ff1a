//! The API as the runtime needs it: objects that can be listed, watched, read
//! and reported on, and the manager's own durable state.
//!
//! Implemented in process over the API service and over the network; the same
//! contract suite runs on both.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::Value;
use tidegate_model::{ObjectKey, ResourceVersion};

use crate::{ApiError, Item, Kind};

/// Names in one [`Plane::state_get`]: a row is at most 1 MiB of a record, and
/// about 200 bytes as a rule.
pub const STATE_NAMES_MAX: usize = 500;

/// Anything that can be listed and watched.
#[async_trait]
pub trait Source: Send + Sync + 'static {
    /// One page, in the order of namespace and name. All pages of a list are
    /// of one version. `Expired` if the snapshot behind `after` is gone.
    async fn list(&self, kind: &Kind, after: Option<&str>) -> Result<ListPage, ApiError>;

    /// Each change after `after` once and in order, or `Expired` (also for a
    /// version of another epoch).
    async fn watch(&self, kind: &Kind, after: ResourceVersion) -> Result<Box<dyn WatchStream>, ApiError>;
}

#[derive(Clone, Debug)]
pub struct ListPage {
    pub version: ResourceVersion,
    pub items: Vec<Item>,
    /// Where the next page begins; `None` after the last.
    pub next: Option<String>,
}

#[async_trait]
pub trait WatchStream: Send {
    /// The next events: never none. Any error is the end of the stream;
    /// `Expired` says that events were lost. Cancel safe.
    async fn next(&mut self) -> Result<Vec<WatchEvent>, ApiError>;
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WatchEvent {
    Added(Item),
    Modified(Item),
    /// With the last state, at the version of the deletion.
    Deleted(Item),
    /// Nothing is missing up to here, and a watch may resume from it.
    Bookmark(ResourceVersion),
}

impl WatchEvent {
    pub fn version(&self) -> ResourceVersion {
        match self {
            Self::Added(item) | Self::Modified(item) | Self::Deleted(item) => item.version,
            Self::Bookmark(version) => *version,
        }
    }
}

/// Everything that a manager and its reconcilers do with an API.
#[async_trait]
pub trait Plane: Source {
    async fn get(&self, kind: &Kind, key: &ObjectKey) -> Result<Option<Item>, ApiError>;

    /// A JSON merge patch of `status`; conditions merge by type. Returns the
    /// object as it is then; a patch that changes nothing writes nothing.
    async fn patch_status(&self, kind: &Kind, at: &Precondition, patch: Value) -> Result<Item, ApiError>;

    /// `None` if removing the last finalizer of a terminating object removed it.
    async fn patch_finalizers(
        &self,
        kind: &Kind,
        at: &Precondition,
        add: &[String],
        remove: &[String],
    ) -> Result<Option<Item>, ApiError>;

    /// Takes, renews or gives back a lease, and says whose it is then.
    async fn lease(&self, request: &LeaseRequest) -> Result<Lease, ApiError>;

    /// The rows of a controller whose names begin with `prefix`, in order,
    /// after the name `after`; at most as many as the plane gives at once, and
    /// none if there are no more.
    async fn state_read(&self, controller: &str, prefix: &str, after: Option<&str>) -> Result<Vec<StateRow>, ApiError>;

    /// Those rows of these names that there are, of one moment, in any order;
    /// at most [`STATE_NAMES_MAX`] names.
    async fn state_get(&self, controller: &str, names: &[String]) -> Result<Vec<StateRow>, ApiError>;

    /// All of it or none, durable when it returns.
    async fn state_write(
        &self,
        controller: &str,
        fence: Option<&Fence>,
        changes: Vec<StateChange>,
    ) -> Result<(), ApiError>;
}

/// What a write depends on.
#[derive(Clone, Debug)]
pub struct Precondition {
    pub key: ObjectKey,
    /// The version that the writer has seen.
    pub version: ResourceVersion,
    /// Refused with `LeaseLost` if this is not in force when it commits.
    pub fence: Option<Fence>,
}

/// Which term of which lease a write belongs to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fence {
    pub namespace: Arc<str>,
    pub name: Arc<str>,
    pub holder: Arc<str>,
    pub transitions: i64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LeaseRequest {
    /// Begins a new term if the lease is free, expired, or the holder's own
    /// from an earlier life.
    Acquire { namespace: Arc<str>, name: Arc<str>, holder: Arc<str>, duration: Duration },
    /// `LeaseLost` if the fence is not in force.
    Renew { fence: Fence, duration: Duration },
    /// The next one need not wait for the end of the term.
    Release { fence: Fence },
}

/// Whose the lease is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lease {
    /// Empty if it is nobody's.
    pub holder: Arc<str>,
    pub transitions: i64,
}

/// A small named value of a controller's durable state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateRow {
    pub name: String,
    pub value: Bytes,
}

/// `None` removes the row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateChange {
    pub name: String,
    pub value: Option<Bytes>,
}
