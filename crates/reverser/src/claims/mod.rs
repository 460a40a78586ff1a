//! Rules ∩ discovery → claims: which types are watched, where, for whom.
//!
//! Invariant: pure. One claim per type and scope, whatever the number of
//! rules and destinations; an object's destinations follow from the plan alone.

mod catalog;
mod plan;
#[cfg(test)]
mod plan_tests;
mod preset;
mod resolve;
mod route;

pub use catalog::{Catalog, Exclusion, GroupVersion, ServedType, TypeId};
pub use plan::{ClaimId, Desired, DestinationPlan, PlanOptions, RuleRef, RuleVerdict, plan};
pub use resolve::{Omitted, Operations, Resolved, Selected, resolve};
pub use route::{Route, Routes, Selection};
