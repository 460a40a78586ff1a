//! The reverser on a real API server and a real Git server over HTTP: how
//! long the first comparison takes, how far Git is behind, and what it holds.
//!
//! The moment at which a change is in Git is the moment at which the remote's
//! branch has it. It is read from the remote itself, not from what the
//! operator says.

mod api;
mod branch;
mod lag;
mod operator;
mod reaction;
mod site;
mod types;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::table::Table;
use branch::RemoteBranch;
use operator::Operator;
use site::Site;

const SEED_OBJECTS: usize = 5_000;
/// The seed may take this much longer than the list that it is made of.
const SEED_GOAL: &str = "3 s beyond the list";
const LAG_GOAL: &str = "p99 < 1.5 s with default windows";
/// Several times what the slowest of these takes on two cores.
const PATIENCE: Duration = Duration::from_secs(600);

pub struct Sizes {
    /// How long changes go on.
    pub load: Duration,
    /// Objects of which the memory is measured; 0 leaves it out.
    pub watched: usize,
}

pub async fn run(table: &mut Table, binary: &Path, sizes: &Sizes) -> anyhow::Result<()> {
    eprintln!("a control plane");
    let site = Site::start(binary)?;
    seed(table, &site).await?;
    for flags in [&[][..], &["--git-batch-silence", "0s"]] {
        lag::run(table, &site, sizes.load, flags).await?;
    }
    reaction::run(table, &site).await?;
    if sizes.watched > 0 {
        memory(table, &site, sizes.watched).await?;
    }
    Ok(())
}

/// The last row alone.
pub async fn run_memory(table: &mut Table, binary: &Path, watched: usize) -> anyhow::Result<()> {
    memory(table, &Site::start(binary)?, watched).await
}

/// From the start of the process to the branch that has everything.
async fn seed(table: &mut Table, site: &Site) -> anyhow::Result<()> {
    let place = site.place("seed")?;
    site.api.fill(&place.namespace, SEED_OBJECTS).await?;
    let list = site.api.list(&place.namespace, SEED_OBJECTS).await?;
    let branch = RemoteBranch::watch(&place.repository)?;
    let started = Instant::now();
    let operator = Operator::start(site, &[])?;
    let pushed = branch.wait_files(SEED_OBJECTS, PATIENCE).await?.duration_since(started);
    operator.wait_metric("gitopsreverser_objects_written_total", SEED_OBJECTS as f64, PATIENCE).await?;
    operator.stop().await?;
    let beyond = pushed.saturating_sub(list);
    table.row(
        format!("reverser: {SEED_OBJECTS} ConfigMaps of 1 KiB, process start to pushed"),
        format!(
            "{:.2} s; {:.2} s beyond the list, which takes {:.2} s alone",
            pushed.as_secs_f64(),
            beyond.as_secs_f64(),
            list.as_secs_f64()
        ),
        SEED_GOAL,
        "",
    );
    Ok(())
}

/// After everything is in Git; the peak is that of the seed.
async fn memory(table: &mut Table, site: &Site, objects: usize) -> anyhow::Result<()> {
    eprintln!("{objects} objects");
    let place = site.place("memory")?;
    site.api.fill(&place.namespace, objects).await?;
    let branch = RemoteBranch::watch(&place.repository)?;
    let operator = Operator::start(site, &[])?;
    let started = Instant::now();
    let pushed = branch.wait_files(objects, PATIENCE).await?.duration_since(started);
    site.wait_mirroring(&place).await.context("the destination says nothing")?;
    table.row(
        format!("reverser: memory (RSS) with {objects} watched objects of 1 KiB"),
        format!(
            "{:.0} MiB; {:.0} MiB at most during the seed, which took {:.1} s",
            operator.memory_mib("VmRSS:")?,
            operator.memory_mib("VmHWM:")?,
            pushed.as_secs_f64()
        ),
        "",
        "",
    );
    operator.stop().await
}
