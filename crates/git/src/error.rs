//! Why git could not do what we asked of it.

use std::io;
use std::path::PathBuf;

use crate::diff::TreeError;

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
    #[error("failed to open the objects of {}", dir.display())]
    Objects { dir: PathBuf, source: io::Error },
    #[error("failed to read the object {id}: {message}: run `git fsck` in {}", dir.display())]
    Object { id: String, dir: PathBuf, message: String },
    #[error("the change could not be read within {seconds} s: push it in several steps")]
    ReadTooSlow { seconds: u64 },
    #[error(
        "reading the change, as far as the object {id}, took more than {steps} steps: its objects are stored as differences from too many others: run `git repack -adf` in your clone, and push again"
    )]
    TooEntangled { id: String, steps: u64 },
    #[error("reading a repository ended early: {0}")]
    Stopped(String),
    #[error(transparent)]
    Tree(#[from] TreeError),
    #[error("more than {files} files or {} MiB change at once: push it in several steps", bytes >> 20)]
    TooMuch { files: usize, bytes: u64 },
}

impl GitError {
    /// Whether it is for whoever made the commit to mend: it is too much, or
    /// not what a commit can be.
    pub fn is_of_the_commit(&self) -> bool {
        matches!(self, Self::TooMuch { .. } | Self::ReadTooSlow { .. } | Self::TooEntangled { .. } | Self::Tree(_))
    }
}
