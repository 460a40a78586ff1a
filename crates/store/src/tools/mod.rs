//! Work on a store that nobody has open: check, compact, export, import.
//!
//! Each takes the lock, so a running server is never disturbed, and tells its
//! progress to a callback, which decides how to show it.

mod check;
mod export;
mod import;
mod line;

use std::path::Path;

pub use check::{CheckReport, check, check_engine};
pub use export::{Exported, export};
pub use import::{Imported, Restore, import};

use crate::{OpenError, Options, StoreError, open};

/// How far a tool is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Progress {
    /// What it is doing: `objects`, `log`, or the name of a table.
    pub step: String,
    pub done: u64,
    /// Unknown for some steps.
    pub total: Option<u64>,
}

/// Rows between two calls of a progress callback.
const PROGRESS_ROWS: u64 = 10_000;

#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    #[error("failed to open the store")]
    Open(#[from] OpenError),
    #[error("failed to read or write the store")]
    Storage(#[from] StoreError),
    #[error("failed to {doing} the export")]
    Stream { doing: &'static str, source: std::io::Error },
    #[error("line {line} of the export is damaged ({reason}): use another copy of it")]
    Damaged { line: u64, reason: &'static str },
    #[error("{0} is not empty: import into a new directory")]
    NotEmpty(std::path::PathBuf),
}

/// Merges every table into its smallest form, and empties the journal.
pub fn compact(dir: &Path, progress: &mut dyn FnMut(Progress)) -> Result<(), ToolError> {
    let engine = open::open_existing(dir, &Options::default())?;
    let mut done = 0;
    engine.compact(|table| {
        progress(Progress { step: table.into(), done, total: None });
        done += 1;
    })?;
    Ok(())
}
