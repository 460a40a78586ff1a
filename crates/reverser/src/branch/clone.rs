//! The bare clone of a branch: a cache of the remote, and no more than that.
//!
//! Whatever is wrong with it is answered by making it again. It holds the
//! files of the branch and not its history, so its size does not grow with the
//! years.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use tidegate_git::{FetchError, GitError, ObjectId, Program, PushError, Pushed, Remote, RemoteError, Repository};

/// What the remote had when we last saw it: keeps git from collecting it.
const SEEN: &str = "refs/tidegate/seen";

/// When packs of our own, one a batch, are joined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Housekeeping {
    /// Worth it when there is nothing else to do.
    Due,
    /// Too many for git to look through: whatever there is to do.
    Overdue,
}

impl Housekeeping {
    pub fn packs_min(self) -> usize {
        match self {
            Self::Due => 64,
            Self::Overdue => 512,
        }
    }
}

pub(super) const LOCK_ENDING: &str = ".lock";

#[derive(Debug, thiserror::Error)]
pub(super) enum CloneError {
    #[error("{} is used by another process: give each its own --work-dir", .0.display())]
    InUse(PathBuf),
    #[error("failed to prepare the clone in {}", dir.display())]
    Io { dir: PathBuf, source: io::Error },
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Remote(#[from] RemoteError),
    #[error(transparent)]
    Push(#[from] PushError),
}

impl From<FetchError> for CloneError {
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::Remote(error) => error.into(),
            FetchError::Git(error) => error.into(),
        }
    }
}

pub(super) struct BareClone {
    pub repository: Repository,
    branch: String,
    /// Held for as long as the clone is.
    _lock: File,
    packs: usize,
    /// Where [`SEEN`] is, if we know.
    seen: Option<ObjectId>,
}

impl BareClone {
    /// One process at a time: what an earlier one left unfinished goes.
    pub async fn open(program: Program, dir: &Path, branch: &str) -> Result<Self, CloneError> {
        let failed = |source| CloneError::Io { dir: dir.to_owned(), source };
        fs::create_dir_all(dir).map_err(failed)?;
        let lock = lock(dir).map_err(failed)?.ok_or_else(|| CloneError::InUse(dir.to_owned()))?;
        remove_unfinished(dir).map_err(failed)?;
        let repository = Repository::new(program, dir.to_owned());
        let clone = Self { repository, branch: branch.to_owned(), _lock: lock, packs: count_packs(dir), seen: None };
        clone.repository.init("main").await?;
        Ok(clone)
    }

    /// Makes it again, from nothing.
    pub async fn remake(&mut self) -> Result<(), CloneError> {
        let dir = self.repository.dir();
        let failed = |source| CloneError::Io { dir: dir.to_owned(), source };
        (self.packs, self.seen) = (0, None);
        fs::remove_dir_all(dir).map_err(failed)?;
        fs::create_dir_all(dir).map_err(failed)?;
        self.repository.init("main").await?;
        Ok(())
    }

    /// The remote's commit, with its files here and so many commits of its
    /// history, itself included; `None` for a repository without any branch,
    /// which our first push begins.
    pub async fn fetch(&mut self, remote: &Remote, depth: u64) -> Result<Option<ObjectId>, CloneError> {
        self.seen = None;
        match self.repository.fetch_tip(remote, &self.branch, SEEN, depth).await {
            Ok(head) => {
                self.seen = Some(head.clone());
                Ok(Some(head))
            }
            Err(FetchError::Remote(error @ RemoteError::NoBranch { .. })) => {
                if self.repository.is_remote_empty(remote).await? { Ok(None) } else { Err(error.into()) }
            }
            Err(error) => Err(error.into()),
        }
    }

    pub async fn push(
        &mut self,
        remote: &Remote,
        old: Option<&ObjectId>,
        new: &ObjectId,
    ) -> Result<Pushed, CloneError> {
        let pushed = self.repository.push(remote, &self.branch, old, new).await?;
        if pushed == Pushed::Done {
            self.packs += 1;
            let seen = match self.seen.take() {
                Some(seen) => Some(seen),
                None => self.repository.resolve(SEEN).await?,
            };
            self.repository.update_ref(SEEN, seen.as_ref(), new).await?;
            self.seen = Some(new.clone());
        }
        Ok(pushed)
    }

    /// What calls that failed left half-written. Each attempt leaves its own,
    /// and where the disk is full they are what keeps it full.
    pub fn remove_unfinished(&self) {
        if let Err(error) = remove_unfinished(self.repository.dir()) {
            tracing::debug!(%error, "failed to tidy the clone up");
        }
    }

    pub fn packs(&self) -> usize {
        self.packs
    }

    /// Forgets history and whatever nobody needs, in one pack. A fetch has to
    /// come before: it is what makes the history be forgotten.
    pub async fn collect(&mut self) -> Result<(), CloneError> {
        self.repository.collect_garbage().await?;
        self.packs = 0;
        Ok(())
    }
}

/// Held until it is dropped; `None` if another process holds it. Beside the
/// clone, because the clone may be made again.
pub(super) fn lock(dir: &Path) -> io::Result<Option<File>> {
    let file = File::create(lock_path(dir))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The whole name with an ending: a clone's name has dots of its own.
fn lock_path(dir: &Path) -> PathBuf {
    let mut name = dir.as_os_str().to_owned();
    name.push(LOCK_ENDING);
    name.into()
}

fn count_packs(dir: &Path) -> usize {
    let files = fs::read_dir(dir.join("objects/pack")).into_iter().flatten().flatten();
    files.filter(|file| file.path().extension().is_some_and(|extension| extension == "pack")).count()
}

/// The locks and halves of files of a process that was killed, or had no room.
/// We hold the clone, so they are nobody's.
fn remove_unfinished(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_unfinished(&entry.path())?;
        } else if is_unfinished(&entry.path()) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn is_unfinished(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // The index of a pack is written last.
    let is_half = name.ends_with(".pack") && !path.with_extension("idx").exists();
    is_half || name.ends_with(".lock") || name.starts_with("tmp_") || name == "gc.pid"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_branches_of_one_repository_have_two_locks() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (folder.path().join("shop.mirror.01"), folder.path().join("shop.mirror.02"));
        let held = lock(&a).unwrap();
        assert!(held.is_some() && lock(&b).unwrap().is_some());
        assert!(lock(&a).unwrap().is_none(), "held");
        drop(held);
        assert!(lock(&a).unwrap().is_some());
    }
}
