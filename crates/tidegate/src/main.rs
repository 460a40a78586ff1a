//! Tidegate: Git and a Kubernetes-style API, kept in step.
//!
//! Invariant: this crate alone reads the environment and the flags; it wires,
//! and holds no rule of the domain.

// They panic when nobody reads.
#![warn(clippy::print_stdout, clippy::print_stderr)]

#[macro_use]
mod tell;

mod cli;
#[cfg(test)]
mod cli_tests;
mod client;
mod command;
mod config;
mod control;
mod nearest;
mod open_files;
mod output;
mod progress;
mod repositories;
mod reverse_args;
mod telemetry;
mod units;

use std::process::ExitCode;

use clap::Parser;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    command::run(cli::Cli::parse())
}
