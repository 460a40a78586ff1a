//! Strict fakes, contract suites, history checkers, real-process helpers.
//!
//! Invariant: a dev-dependency only. What fails here fails a test, so it
//! panics where production code would return an error.
#![allow(clippy::unwrap_used)]

pub mod bare;
pub mod client;
pub mod cluster;
pub mod daemon;
pub mod gate;
pub mod git_http;
pub mod history;
pub mod memory_engine;
pub mod objects;
pub mod place;
pub mod plane_contract;
pub mod programs;
pub mod sshd;
pub mod store_contract;

pub use memory_engine::MemoryEngine;
