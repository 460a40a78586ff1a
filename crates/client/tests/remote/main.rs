//! The client against a server, over a real connection.

// A helper that fails is a test that fails.
#![allow(clippy::unwrap_used)]

mod greeter;
mod plane;
mod support;
