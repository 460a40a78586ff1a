//! From a change of a repository's files to a plan for the store, or to
//! diagnostics for whoever pushed it.
//!
//! The check before a push and the projection after it run the same [`plan`],
//! and whoever applies the plan builds each object with [`next_object`]: one
//! door for every desired state.
//!
//! Invariant: nothing here performs IO, reads a clock or draws a random
//! number; the same input gives the same plan.

mod authored;
mod change;
mod definitions;
mod desired;
mod judge;
mod judgements;
mod narrowing;
mod needs;
mod next;
mod parallel;
mod places;
mod plan;
mod provenance;
mod readmission;
mod removals;
mod report;
mod rules;
#[cfg(test)]
mod tests;
mod warnings;

pub use change::{Change, Concerned, File, State};
pub use desired::Desired;
pub use judge::DESIRED_BYTES_MAX;
pub use needs::{Needs, needs};
pub use next::{CONTENTS_FINALIZER, Deletion, Outcome, Stamp, delete_object, drain_namespace, next_object};
pub use places::defined_keys;
pub use plan::{CHANGE_OBJECTS_MAX, Cause, Place, Plan, PlannedPut, Verdict, plan};
pub use provenance::{LastChange, Provenance, SOURCE_AUTHOR, SOURCE_COMMIT, SOURCE_PATH, SOURCE_REPOSITORY};
pub use report::DIAGNOSTICS_MAX;
pub use rules::{Allow, Rules};
pub use warnings::WARNINGS_MAX;
