//! Developer tasks: `cargo xtask <task>`.

mod assets;
mod bench;
mod packages;
mod test;

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Developer tasks")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run all tests of the workspace
    Test {
        /// Passed on to `cargo test`, such as `-p tidegate-store` or a filter
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Provide the programs of the cluster tests: kube-apiserver, etcd, kubectl and others
    ///
    /// Those in KUBEBUILDER_ASSETS are taken; others are built once with Go
    /// into the user's cache, or into TIDEGATE_ASSETS_CACHE.
    Assets,
    /// Measure a release build over loopback and print a table; takes minutes
    Bench {
        /// Passed on to the benchmark, such as `--seconds 5` or `--large 0`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().task {
        Task::Test { args } => test::run(&args),
        Task::Assets => assets::run(),
        Task::Bench { args } => bench::run(&args),
    }
}

fn workspace_root() -> anyhow::Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    Ok(here.parent().context("xtask has no parent folder")?.to_owned())
}
