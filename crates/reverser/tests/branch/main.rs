//! A branch against the real `git` over HTTP.
// A helper that fails is a test that fails.
#![allow(clippy::unwrap_used)]

mod chance;
mod commits;
mod failures;
mod foreign;
mod kill;
mod limits;
mod rig;
mod secrets;
mod seeds;
