//! `tidegate reverse` as people run it: the built binary, a real API server, a
//! real Git server.

// A helper that fails is a test that fails.
#![allow(clippy::unwrap_used)]

mod flags;
mod kill;
mod kinds;
mod laptop;
mod outages;
mod people;
// What it has for servers is of no use here.
#[allow(dead_code)]
#[path = "../cli/process.rs"]
mod process;
mod proof;
mod replicas;
mod rig;
mod start;
mod storm;
mod takeover;
mod workers;
