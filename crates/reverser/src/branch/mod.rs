//! One branch of one repository, kept in step with what the cluster says.
//!
//! A [`Branch`] is a handle on a task that owns the bare clone. Telling it
//! something never waits; what it did is read from [`Branch::status`].

mod again;
mod attempt;
mod clone;
mod destination;
mod failure;
mod folder;
mod foreign;
mod handle;
mod limits;
mod message;
mod metrics;
mod plan;
mod queue;
mod reader;
mod rivals;
#[cfg(test)]
mod simulation;
mod status;
mod turns;
mod window;
mod work;
mod worker;

pub use destination::{BaseFolder, BaseFolderError, Destination};
pub(crate) use failure::remote as remote_failure;
pub use folder::remove_unused;
pub use handle::{Branch, DestinationId};
pub use limits::Limits;
pub use message::Operator;
pub use metrics::GitMetrics;
pub use queue::{Scope, Ticket};
pub use reader::{ReadError, ReadFuture, Reader};
pub use status::{BranchStatus, DestinationStatus, Failure, FailureReason, SkipReason, Skipped};
pub use turns::{Turn, Turns};
pub use worker::BranchConfig;
