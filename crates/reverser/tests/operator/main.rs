//! The operator against a real API server and a real Git server.
//!
//! The tests share one control plane and one operator; each has its own
//! namespaces and its own repository. Those that end something have their own.

// A helper that fails is a test that fails.
#![allow(clippy::unwrap_used)]

mod authors;
mod branches;
mod burst;
mod configuration;
mod installation;
mod preset;
mod remotes;
mod resilience;
mod rig;
mod running;
mod secrets;
mod seeds;
mod signing;
mod types;
