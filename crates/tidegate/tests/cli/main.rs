//! The real binary, from outside.

// A helper that fails is a test that fails.
#![allow(clippy::unwrap_used)]

mod catalog;
mod check;
mod client;
mod control;
mod controllers;
mod files;
mod git;
mod help;
mod hooks;
mod process;
mod readers;
mod serve;
mod starting;
mod store;
mod watch;
