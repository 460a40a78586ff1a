//! One branch of one repository, kept in step with what the cluster says.
//!
//! A [`Branch`] is a handle on a task that owns the bare clone. Telling it
//! something never waits; what it did is read from [`Branch::status`].

mod handle;
mod limits;
mod queue;
mod reader;
mod status;

pub use handle::{Branch, DestinationId};
pub use limits::Limits;
pub use queue::{Scope, Ticket};
pub use reader::{ReadError, Reader};
pub use status::{BranchStatus, DestinationStatus, Failure, FailureReason, SkipReason, Skipped};
