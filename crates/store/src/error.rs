//! What can go wrong, by the question that was asked.

use std::path::PathBuf;

use tidegate_model::{ObjectKey, ResourceVersion};

use crate::Expect;

/// The store could not read or write its own rows.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    #[error("the storage engine failed to {doing}: {reason}")]
    Engine { doing: &'static str, reason: String },
    #[error("{place} does not decode ({reason}): stop the server and run `tidegate store check`")]
    Corrupt { place: String, reason: &'static str },
    #[error(
        "no number line can begin now: the clock is {clock_seconds} s after 1970, and a line lies between the years 2000 and 2242; set the clock, then try again"
    )]
    OffLine { clock_seconds: u64 },
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum CommitError {
    /// Nothing of the transaction was applied.
    #[error("{key} is not at the expected version")]
    Conflict { index: usize, key: ObjectKey, expected: Expect, current: Option<ResourceVersion> },
    #[error("a transaction of {size} {unit} exceeds the limit of {limit}: split it")]
    TooLarge { size: usize, limit: usize, unit: &'static str },
    #[error("the key {key} is not storable: {reason}")]
    InvalidKey { key: ObjectKey, reason: &'static str },
    #[error("a row that the transaction depends on cannot be read")]
    Storage(#[from] StoreError),
    /// After a failed write: whether this transaction is on disk is known only
    /// after the store was opened again.
    #[error("the store takes no more writes: {0}")]
    Unavailable(String),
    #[error("the store is closed")]
    Closed,
}

#[derive(Debug, thiserror::Error)]
pub enum ListError {
    #[error("the continue token has expired: list again from the first page")]
    Expired,
    #[error("the continue token is not one of this list: pass the one that the previous page returned")]
    InvalidToken,
    #[error("an object of the list cannot be read")]
    Storage(#[from] StoreError),
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum WatchError {
    #[error("the version is older than the kept window (oldest {oldest}, current {current}): list again")]
    Expired { oldest: ResourceVersion, current: ResourceVersion },
    #[error("the version is ahead of this store (current {current}): list again")]
    Future { current: ResourceVersion },
    #[error("the store already has {limit} watchers: close some, or raise `watchers_max`")]
    TooMany { limit: usize },
    #[error("the store is closed")]
    Closed,
    #[error("the event log cannot be read")]
    Storage(#[from] StoreError),
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("{dir} is in use by {}: stop it first", owner(.pid))]
    Locked { dir: PathBuf, pid: Option<u32> },
    #[error("{dir} holds no store: check the path")]
    Missing { dir: PathBuf },
    #[error("{dir} is not empty and holds no store: choose another directory")]
    NotAStore { dir: PathBuf },
    #[error(
        "{dir} has the format `{found}`, this program reads `{known}`: use the version that wrote it, or export there and import here"
    )]
    Format { dir: PathBuf, found: String, known: &'static str },
    /// Nothing was changed on disk.
    #[error("{place} is damaged: {reason}. To go on, {remedy}")]
    Damaged { place: PathBuf, reason: String, remedy: &'static str },
    #[error("the disk refuses to open {dir}: free space or mend permissions, then start again")]
    Disk { dir: PathBuf, source: std::io::Error },
    #[error("failed to {doing} {path}")]
    Io { doing: &'static str, path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Storage(#[from] StoreError),
}

fn owner(pid: &Option<u32>) -> String {
    pid.map_or("another process".into(), |pid| format!("process {pid}"))
}
