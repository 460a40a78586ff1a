//! Why git could not do what we asked of it.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("failed to run `{program}`: install git {needed} or newer, or put it on the PATH")]
    Missing { program: String, needed: &'static str, source: io::Error },
    #[error("git is {found}, and {needed} is needed: install a newer one")]
    TooOld { found: String, needed: &'static str },
    #[error("failed to talk to `git {command}`")]
    Io { command: &'static str, source: io::Error },
    #[error("`git {command}` in {} failed: {message}", dir.display())]
    Failed { command: &'static str, dir: PathBuf, message: String },
    #[error("`git {command}` did not end within {seconds} s")]
    TooSlow { command: &'static str, seconds: u64 },
    #[error("`git {command}` answered what we cannot read: {what}")]
    Unreadable { command: &'static str, what: &'static str },
    #[error("the names of the changed files alone take more than {mib} MiB: push it in several steps")]
    TooManyPaths { mib: u64 },
    #[error("more than {files} files or {} MiB change at once: push it in several steps", bytes >> 20)]
    TooMuch { files: usize, bytes: u64 },
}
