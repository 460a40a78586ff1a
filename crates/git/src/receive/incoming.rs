//! The objects of a push, in a folder apart until they are known to be good.
//!
//! Git indexes them as one pack, however few they are: then they appear in the
//! repository by the rename of one file, all at once.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin};
use tokio::task::JoinHandle;

use super::whole;
use crate::error::GitError;
use crate::program::bound_memory;
use crate::repository::{ObjectId, Quarantine, Repository};

const COMMAND: &str = "index-pack";
/// Leftovers of a killed server are told by it.
pub(crate) const FOLDER_PREFIX: &str = "incoming-";
/// A pack with one bad object has many, of one cause.
const LINES_MAX: usize = 50;
const MESSAGE_BYTES_MAX: u64 = 64 << 10;

/// Git at work on a push that still comes in. Dropping it ends git and leaves
/// nothing.
pub struct Unpacking {
    repository: Repository,
    folder: TempDir,
    child: Child,
    stdin: Option<ChildStdin>,
    said: JoinHandle<Vec<u8>>,
}

/// What became of it.
pub enum Unpacked {
    Good(Received),
    /// Why it cannot be taken, in git's words.
    Bad(Vec<String>),
}

/// Objects that are not in the repository yet. Dropped, they are gone.
pub struct Received {
    repository: Repository,
    folder: TempDir,
    /// None, if everything was there already.
    pack: Option<PathBuf>,
}

impl Repository {
    /// Begins to take the pack of a push, of at most so many bytes.
    pub fn receive(&self, bytes_max: u64) -> Result<Unpacking, GitError> {
        let objects = self.dir.join("objects");
        let folder = tempfile::Builder::new().prefix(FOLDER_PREFIX).tempdir_in(&objects).map_err(io_failed)?;
        let mut command = self.with_quarantine(quarantine(folder.path(), &objects)).command();
        // Git checks each object as it comes. That what they refer to is there
        // is our part.
        command.args([COMMAND, "--stdin", "--fix-thin", "--fsck-objects"]);
        command.arg(format!("--max-input-size={bytes_max}")).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn().map_err(io_failed)?;
        bound_memory(&child);
        let (Some(stdin), Some(stderr)) = (child.stdin.take(), child.stderr.take()) else {
            return Err(GitError::Unreadable { command: COMMAND, what: "it has no pipes" });
        };
        let said = tokio::spawn(async move {
            let (mut stderr, mut said) = (stderr, Vec::new());
            let _ = (&mut stderr).take(MESSAGE_BYTES_MAX).read_to_end(&mut said).await;
            // Else git would wait for somebody to read the rest.
            let _ = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
            said
        });
        Ok(Unpacking { repository: self.clone(), folder, child, stdin: Some(stdin), said })
    }
}

impl Unpacking {
    /// False if git reads no more, because it has seen enough.
    pub async fn write(&mut self, bytes: &[u8]) -> bool {
        let Some(stdin) = &mut self.stdin else { return false };
        let is_read = stdin.write_all(bytes).await.is_ok();
        if !is_read {
            self.stdin = None;
        }
        is_read
    }

    /// Everything has come.
    pub async fn finish(mut self) -> Result<Unpacked, GitError> {
        drop(self.stdin.take());
        let status = self.child.wait().await.map_err(io_failed)?;
        let said = self.said.await.unwrap_or_default();
        if !status.success() {
            let said = String::from_utf8_lossy(&said);
            let lines = said.lines().map(str::to_owned).take(LINES_MAX).collect::<Vec<_>>();
            let silent = || vec![format!("git {COMMAND} ended with {status}")];
            return Ok(Unpacked::Bad(if lines.is_empty() { silent() } else { lines }));
        }
        let pack = find_pack(self.folder.path()).map_err(io_failed)?;
        let pack = pack.ok_or(GitError::Unreadable { command: COMMAND, what: "it left no pack" })?;
        let is_empty = whole::is_empty(&pack).map_err(io_failed)?;
        let pack = (!is_empty).then_some(pack);
        Ok(Unpacked::Good(Received { repository: self.repository, folder: self.folder, pack }))
    }
}

impl Received {
    /// The repository as it would be.
    pub fn repository(&self) -> Repository {
        let objects = self.repository.dir.join("objects");
        self.repository.with_quarantine(quarantine(self.folder.path(), &objects))
    }

    /// What is missing for these refs, or for anything that the push brings;
    /// nothing, if it is whole.
    pub async fn broken(&self, refs: Vec<(String, ObjectId)>) -> Result<Vec<String>, GitError> {
        let (pack, objects) = (self.pack.clone(), self.repository.dir.join("objects"));
        let incoming = self.folder.path().to_owned();
        let look = move || whole::broken(pack.as_deref(), &incoming, &objects, &refs);
        tokio::task::spawn_blocking(look).await.map_err(|error| io_failed(io::Error::other(error)))?.map_err(io_failed)
    }

    /// Makes them a part of the repository, for good.
    pub async fn keep(self) -> Result<(), GitError> {
        let keep = move || match &self.pack {
            Some(pack) => keep(pack, &self.repository.dir.join("objects/pack")),
            None => Ok(()),
        };
        tokio::task::spawn_blocking(keep).await.map_err(|error| io_failed(io::Error::other(error)))?.map_err(io_failed)
    }
}

fn quarantine(folder: &Path, objects: &Path) -> Quarantine {
    Quarantine { object_directory: folder.into(), alternates: objects.into() }
}

/// The file `….pack`, if there is one.
fn find_pack(folder: &Path) -> io::Result<Option<PathBuf>> {
    for entry in std::fs::read_dir(folder.join("pack"))? {
        let path = entry?.path();
        if path.extension() == Some(OsStr::new("pack")) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// Git sees a pack by its index, which comes last. Git has synced the files.
fn keep(pack: &Path, into: &Path) -> io::Result<()> {
    let index = pack.with_extension("idx");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(pack.parent().unwrap_or(pack))? {
        let path = entry?.path();
        if path.file_stem() == pack.file_stem() && path != index {
            files.push(path);
        }
    }
    for path in files.iter().chain([&index]) {
        std::fs::rename(path, into.join(path.file_name().unwrap_or_default()))?;
    }
    std::fs::File::open(into)?.sync_all()
}

fn io_failed(source: io::Error) -> GitError {
    GitError::Io { command: COMMAND, source }
}
