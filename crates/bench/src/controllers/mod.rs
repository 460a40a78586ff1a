//! Controllers: how many reconciles a second, how soon a catalogue is ready,
//! and what a restart costs.
//!
//! But for the push, which goes to a real server process, server and manager
//! are embedded here, wired as `tidegate serve` wires them: the real API
//! service, a store that is on disk before it answers.

mod catalogue;
mod host;
mod push;
mod rates;
mod restart;

use std::path::Path;

use crate::table::Table;

/// The smaller of the two sizes that a restart is measured at.
const SMALL: usize = 100_000;

pub async fn run(table: &mut Table, program: &Path, large: usize) -> anyhow::Result<()> {
    rates::run(table).await?;
    push::run(table, program).await?;
    let sizes: Vec<usize> = [SMALL, large].into_iter().filter(|count| *count > 0).collect();
    restart::run(table, &sizes).await
}
