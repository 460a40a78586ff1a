//! What a controller is made of: list-then-watch, indexes, a work queue with
//! backoff and quarantine, checkpoints, leases, and the manager that runs it.
//!
//! An author implements [`Reconciler`] and, where a reconcile depends on other
//! objects, an [`Index`] (or uses [`Cache`]); the rest is here. State is
//! reached through a [`Plane`] alone: in process, over the network, or a test's.
//!
//! Invariants: a key is never reconciled twice at once; what changed is
//! reconciled after it changed, or is recorded as unfinished; a crash may
//! repeat work and never skips it. Nothing here knows GraphQL, Git or a store.

mod attended;
mod cache;
mod client;
mod clock;
mod controller;
mod driver;
mod error;
mod gate;
mod inbox;
mod index;
mod index_load;
mod index_preview;
mod index_reader;
mod index_resume;
mod index_saver;
mod indexer;
mod item;
mod kind;
mod known;
mod known_rows;
mod ledger;
mod left;
mod leftovers;
mod manager;
mod notes;
mod plane;
mod queue;
mod reader;
mod reconcile;
mod refused;
mod report;
pub mod rows;
mod saves;
mod stalled;
mod sweep;
mod unsaved;
mod verdict;
mod worker;

pub use cache::{Cache, KeyedBy};
pub use client::Client;
pub use controller::{Backoff, Controller, ControllerOptions};
pub use error::{ApiError, Fault};
pub use index::{Change, Durable, Index, IndexHandle, Preview, SavedRecord, Touched};
pub use item::Item;
pub use kind::Kind;
pub use leftovers::Leftover;
pub use manager::{AddError, Manager, ManagerOptions};
pub use plane::{
    Fence, Lease, LeaseRequest, ListPage, Plane, Precondition, STATE_NAMES_MAX, Source, StateChange, StateRow,
    WatchEvent, WatchStream,
};
pub use reconcile::{BoxError, Next, ReconcileError, Reconciler};
pub use report::ControllerReport;
pub use stalled::is_stalled_by;
