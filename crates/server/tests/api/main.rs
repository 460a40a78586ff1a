//! The server through its public API, one process, real sockets.
#![allow(clippy::unwrap_used)]

mod authorization;
mod controllers;
mod definitions;
mod finalizers;
mod limits;
mod manifests;
mod reads;
mod schema;
mod status;
mod support;
mod tokens;
mod watches;
