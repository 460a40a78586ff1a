//! The difference of two trees, as `git diff-tree -r` tells it.
//!
//! It is found in this process: both trees are walked side by side, and what
//! they share is not read. A few objects can name more paths than any machine
//! has room or time for, so that every part of the walk has a limit.

mod folder;
#[cfg(test)]
mod tests;
mod walk;

use std::time::Duration;

use gix_hash::oid;

use crate::beside::beside;
use crate::error::GitError;
use crate::objects::{OBJECT_BYTES_MAX, Objects};
use crate::repository::{ObjectId, Repository};
use walk::{Trees, Walk};

/// One path whose entry differs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Changed {
    /// As git has it: names need not be UTF-8.
    pub path: Vec<u8>,
    pub old: Option<Side>,
    pub new: Option<Side>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Side {
    pub id: ObjectId,
    pub kind: EntryKind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EntryKind {
    File,
    Symlink,
    Submodule,
}

/// A tree counts for ten, so that 1,100,000 files, each in a folder of its own,
/// before and after, are 27 million. An entry takes 0.2 µs and a tree 2: some
/// seven seconds.
const ENTRIES_MAX: u64 = 32_000_000;
/// With paths of 60 bytes, some two million files.
const CHANGED_BYTES_MAX: usize = 512 << 20;
/// As deep as a [`crate::Draft`] reads.
const LEVELS_MAX: usize = 1_000;
/// Two folders of the largest size that an object may have.
const OPEN_BYTES_MAX: usize = 2 * OBJECT_BYTES_MAX;

/// A million files take two seconds. But a tree may be stored as the difference
/// from a large one, and then reading it takes any time.
const TIME_MAX: Duration = Duration::from_secs(120);

/// What one difference may cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// That are looked at, of both trees; [`walk::FOLDER_ENTRIES`] for a tree.
    pub entries_max: u64,
    /// Of what is told: each path, and [`walk::CHANGED_BYTES`] beside it.
    pub changed_bytes_max: usize,
    pub levels_max: usize,
    /// Of the folders that lead to where the walk is, of both trees.
    pub open_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            entries_max: ENTRIES_MAX,
            changed_bytes_max: CHANGED_BYTES_MAX,
            levels_max: LEVELS_MAX,
            open_bytes_max: OPEN_BYTES_MAX,
        }
    }
}

/// What of a tree cannot be compared. Whoever made it can mend it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TreeError {
    #[error("more than {entries_max} files and folders would have to be compared: push it in several steps")]
    TooManyEntries { entries_max: u64 },
    #[error("the changed files and their names take more than {mib} MiB: push it in several steps")]
    TooManyPaths { mib: usize },
    #[error("folders are more than {levels_max} levels deep, below {folder}: move them up")]
    TooDeep { folder: String, levels_max: usize },
    #[error("the folders from the root to {folder} list more than {mib} MiB of names: divide them")]
    TooWide { folder: String, mib: usize },
    #[error("the tree {id} of the folder {folder} is damaged: {what}; see `git fsck`, and commit the folder anew")]
    Damaged { id: String, folder: String, what: String },
}

impl Repository {
    /// What differs under `path` (all, if empty) between two commits or trees,
    /// in the order of the paths' bytes.
    pub async fn diff(&self, old: &ObjectId, new: &ObjectId, path: &str) -> Result<Vec<Changed>, GitError> {
        let (repository, old, new, path) = (self.clone(), old.clone(), new.clone(), path.to_owned());
        beside(TIME_MAX, move |patience| {
            let objects = Objects::open(&repository, patience)?;
            let (old, new) = (objects.tree_of(&old)?, objects.tree_of(&new)?);
            Walk::new(&objects, &path, Limits::default()).run(old, new)
        })
        .await
    }
}

impl Trees for Objects<'_> {
    fn tree(&self, id: &oid, content: &mut Vec<u8>) -> Result<bool, GitError> {
        Ok(self.read(id, content)? == gix_object::Kind::Tree)
    }
}
