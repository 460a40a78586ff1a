//! Benchmarks: a real server process, loopback, the public API, durable
//! writes. Prints a table; what is measured is described in each row.
//!
//! Run by `cargo xtask bench`.

mod branch;
mod commits;
mod controllers;
mod http;
mod lists;
mod process;
mod pushes;
mod reverse;
mod scale;
mod seed;
mod socket;
mod table;
mod watches;
mod writes;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Parser;
use table::Table;

/// Clients that write at once, as in the yardstick.
pub const WRITERS: usize = 32;
/// Objects of the small data set, as in the yardstick.
pub const OBJECTS: usize = 5_000;

#[derive(Parser)]
struct Arguments {
    /// The release binary.
    #[arg(long)]
    tidegate: PathBuf,
    /// Seconds that each load runs.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Objects of the large data set; 0 leaves it out.
    #[arg(long, default_value_t = 1_000_000)]
    large: usize,
    /// Events of the replay window, which is full with 5,000,000; 0 leaves it out.
    #[arg(long, default_value_t = 4_800_000)]
    window: usize,
    /// Files of the branch on which a push changes a few.
    #[arg(long, default_value_t = 100_000)]
    branch: usize,
    /// Objects with which the reverser's memory is measured; 0 leaves it out.
    #[arg(long, default_value_t = 50_000)]
    watched: usize,
    /// Only these rows.
    #[arg(long)]
    only: Option<Rows>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Rows {
    Api,
    Git,
    Reverse,
    /// Of the reverser, what it holds of many objects.
    ReverseMemory,
    Controllers,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let mut table = Table::default();
    // One thread: the machine's other core is the server's.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(clients(&mut table, &arguments))?;
    if arguments.wants(Rows::Controllers) {
        // Server and manager in this process, with threads as `serve` has them.
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(controllers::run(&mut table, &arguments.tidegate, arguments.large))?;
    }
    table.print();
    Ok(())
}

impl Arguments {
    fn wants(&self, rows: Rows) -> bool {
        // One that is part of another one's rows is only for whoever names it.
        self.only.map_or(rows != Rows::ReverseMemory, |only| only == rows)
    }
}

/// What is measured from outside of a server's process.
async fn clients(table: &mut Table, arguments: &Arguments) -> anyhow::Result<()> {
    let Arguments { tidegate, seconds, large, window, branch, watched, only: _ } = arguments;
    let load = Duration::from_secs(*seconds);
    if arguments.wants(Rows::Api) {
        api(table, tidegate, load).await?;
        if *large > 0 {
            scale::large(table, tidegate, *large).await?;
        }
        if *window > 0 {
            scale::window(table, tidegate, *window).await?;
        }
    }
    if arguments.wants(Rows::Git) {
        pushes::run(table, tidegate, &pushes::Sizes { load, branch: *branch, large: *large }).await?;
    }
    if arguments.wants(Rows::Reverse) {
        commits::run(table).await?;
        reverse::run(table, tidegate, &reverse::Sizes { load, watched: *watched }).await?;
    }
    if arguments.wants(Rows::ReverseMemory) {
        reverse::run_memory(table, tidegate, *watched).await?;
    }
    Ok(())
}

async fn api(table: &mut Table, tidegate: &Path, duration: Duration) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    seed::objects(folder.path(), OBJECTS).await?;
    let server = process::Server::start(tidegate, folder.path()).await?;
    scale::idle(table, &server).await?;
    lists::run(table, &server).await?;
    writes::run(table, &server, duration).await?;
    watches::latency(table, &server, duration).await?;
    watches::fan_out(table, &server, duration).await?;
    watches::bystanders(table, &server, duration).await?;
    server.stop().await
}
