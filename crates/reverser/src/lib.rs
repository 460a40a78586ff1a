//! `tidegate reverse`: every live change of a cluster in Git, with a name on
//! it.
//!
//! The Git half is [`branch`]: one worker for each repository and branch,
//! which is told of changes and makes the branch say what the cluster says.
//!
//! Invariants: what Git should contain is derived from the cluster, what it
//! contains is the tree, and the difference is the work, so that nothing needs
//! a durable queue; a change is acknowledged only after its push.

pub mod attribution;
pub mod backoff;
pub mod branch;
pub mod change;
pub mod claims;
pub mod cluster;
pub mod config;
pub mod engine;
pub mod health;
pub mod ingest;
pub mod install;
pub mod lease;
pub mod metrics;
pub mod operator;
pub mod proof;
pub mod repeats;
pub mod secrets;
pub mod signing;
pub mod spool;
pub mod webhook;
