//! The API service: what every front end and the in-process controllers go
//! through. It knows objects, kinds and permissions; it knows no wire format.
//!
//! Invariant: permission is decided before anything is read, so a caller who
//! may not see an object never learns whether it exists or conflicts.

mod account;
mod bootstrap;
mod controllers;
mod fence;
mod finalizers;
mod follow;
mod idle_hooks;
mod kinds;
mod lease;
mod owned;
mod project;
mod read;
mod repositories;
mod status;
#[cfg(test)]
mod status_order_tests;
mod tombstone;
mod watch;

pub mod error;
pub mod kind_ref;

use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use tidegate_model::{ObjectKey, ResourceVersion};
use tidegate_store::{Store, StoredObject};
use tokio::sync::Semaphore;

use crate::identity::{Attributes, Identities, Session};
pub use bootstrap::{CONTROLLER_MANAGER, NAMESPACES};
pub use controllers::{Failed, QuarantinedKey, SeenController, StateEntry};
use error::ApiError;
pub use fence::Fence;
pub use finalizers::FinalizersWrite;
use follow::Follower;
pub use follow::{FollowError, OnKinds};
use kind_ref::KindRef;
pub use kinds::{CrdKinds, KindsInForce};
pub use lease::{LeaseState, LeaseWrite};
pub use owned::Owned;
pub use project::{
    Admitted, Applied, AuthorOf, DefinedAt, Effect, Marks, MarksOf, NO_MARKS, ProjectError, Projected, Projection, Turn,
};
pub use read::{ListPage, ListQuery};
pub use repositories::{Repositories, Requesting, SyncOutcome, Synced, Syncing};
pub use status::{StatusWrite, missing_precondition};
pub use tombstone::Tombstone;
use watch::WatchCounts;
pub use watch::{ApiWatch, WatchQuery};

/// An object larger than this is refused: twice the size that etcd allows, so
/// whatever a cluster holds fits.
pub const OBJECT_BYTES_MAX: usize = 3 << 20;

#[derive(Clone, Debug)]
pub struct Options {
    pub page_objects_max: usize,
    pub page_bytes_max: usize,
    pub lists_at_once_max: usize,
    pub watches_per_identity_max: usize,
}

/// A cheap handle.
#[derive(Clone)]
pub struct Api(Arc<Inner>);

struct Inner {
    store: Store,
    identities: Arc<Identities>,
    follower: Follower,
    options: Options,
    /// Large lists are read one after the other beyond this many, so that
    /// their memory is bounded.
    list_permits: Semaphore,
    watch_counts: Arc<WatchCounts>,
    projecting: Arc<tokio::sync::Mutex<()>>,
    repositories: OnceLock<Weak<dyn Repositories>>,
}

/// An object as it is shown: in the version that the caller asked for.
#[derive(Clone, Debug)]
pub struct Item {
    pub key: ObjectKey,
    pub version: ResourceVersion,
    pub json: Bytes,
}

impl Item {
    fn serve(kind: &KindRef, stored: StoredObject) -> Self {
        Self { key: stored.key, version: stored.version, json: kind.serve(stored.json) }
    }
}

impl Api {
    /// Reads the kinds, roles and accounts of the store, and follows their
    /// changes from there. `on_kinds` runs at once and on every change of the
    /// kinds, before the change counts as visible.
    pub fn start(
        store: Store,
        identities: Arc<Identities>,
        options: Options,
        on_kinds: follow::OnKinds,
    ) -> Result<Self, FollowError> {
        let follower = Follower::start(store.clone(), identities.clone(), on_kinds)?;
        let list_permits = Semaphore::new(options.lists_at_once_max);
        Ok(Self(Arc::new(Inner {
            store,
            identities,
            follower,
            options,
            list_permits,
            watch_counts: Arc::default(),
            projecting: Arc::default(),
            repositories: OnceLock::new(),
        })))
    }

    pub fn kinds(&self) -> Arc<KindsInForce> {
        self.0.follower.kinds()
    }

    pub fn kind(&self, api_version: &str, kind: &str) -> Result<KindRef, ApiError> {
        KindRef::find(&self.kinds().set, api_version, kind)
    }

    pub fn identities(&self) -> &Arc<Identities> {
        &self.0.identities
    }

    pub fn store(&self) -> &Store {
        &self.0.store
    }

    fn authorize(&self, session: &Session, attributes: &Attributes) -> Result<(), ApiError> {
        Ok(self.0.identities.authorize(session, attributes)?)
    }
}
