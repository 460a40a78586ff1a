//! The objects of a push, in a folder apart until they are known to be good.
//!
//! Git indexes them as one pack, however few they are: then they appear in the
//! repository by the rename of one file, all at once.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin};
use tokio::task::JoinHandle;

use super::limits::{Limits, git_seconds_max};
use super::survey::{Survey, SurveyError};
use super::whole::Whole;
use crate::beside::beside;
use crate::error::GitError;
use crate::program::{bound_memory, bound_processor, has_used_up_processor};
use crate::repository::{ObjectId, Quarantine, Repository};

const COMMAND: &str = "index-pack";
/// Leftovers of a killed server are told by it.
pub(crate) const FOLDER_PREFIX: &str = "incoming-";
/// A pack with one bad object has many, of one cause.
const LINES_MAX: usize = 50;
const MESSAGE_BYTES_MAX: u64 = 64 << 10;
/// Half of what a push has: a million files in a thousand folders take one.
const CHECK_TIME_MAX: Duration = Duration::from_secs(300);

/// Git at work on a push that still comes in. Dropping it ends git and leaves
/// nothing.
pub struct Unpacking {
    repository: Repository,
    folder: TempDir,
    child: Child,
    stdin: Option<ChildStdin>,
    said: JoinHandle<Vec<u8>>,
    sent: u64,
    /// Of processor time for git, by what was sent.
    seconds_max: fn(u64) -> u64,
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
    pack: Option<(PathBuf, Arc<Survey>)>,
    sent: u64,
}

impl Repository {
    /// Begins to take the pack of a push, of at most so many bytes.
    pub fn receive(&self, bytes_max: u64) -> Result<Unpacking, GitError> {
        self.receive_within(bytes_max, git_seconds_max)
    }

    pub(super) fn receive_within(&self, bytes_max: u64, seconds_max: fn(u64) -> u64) -> Result<Unpacking, GitError> {
        let objects = self.dir.join("objects");
        let folder = tempfile::Builder::new().prefix(FOLDER_PREFIX).tempdir_in(&objects).map_err(io_failed)?;
        let mut command = self.with_quarantine(quarantine(folder.path(), &objects)).command();
        // Git checks each object as it comes. That what they refer to is there
        // is our part.
        command.args([COMMAND, "--stdin", "--fix-thin", "--fsck-objects"]);
        command.arg(format!("--max-input-size={bytes_max}")).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn().map_err(io_failed)?;
        bound_memory(&child);
        bound_processor(&child, seconds_max(0));
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
        Ok(Unpacking { repository: self.clone(), folder, child, stdin: Some(stdin), said, sent: 0, seconds_max })
    }
}

impl Unpacking {
    /// False if git reads no more, because it has seen enough.
    pub async fn write(&mut self, bytes: &[u8]) -> bool {
        let Some(stdin) = &mut self.stdin else { return false };
        let before = (self.seconds_max)(self.sent);
        self.sent += bytes.len() as u64;
        let now = (self.seconds_max)(self.sent);
        if now > before {
            bound_processor(&self.child, now);
        }
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
            return Ok(Unpacked::Bad(why(status, &said, (self.seconds_max)(self.sent))));
        }
        let pack = find_pack(self.folder.path()).map_err(io_failed)?;
        let pack = pack.ok_or(GitError::Unreadable { command: COMMAND, what: "it left no pack" })?;
        let (surveyed, pack) = in_thread(move || (Survey::of(&pack), pack)).await?;
        let pack = match surveyed {
            Ok(survey) => (!survey.is_empty()).then(|| (pack, Arc::new(survey))),
            Err(SurveyError::Unreadable(error)) => return Err(io_failed(error)),
            Err(error) => return Ok(Unpacked::Bad(vec![error.to_string()])),
        };
        Ok(Unpacked::Good(Received { repository: self.repository, folder: self.folder, pack, sent: self.sent }))
    }
}

/// In git's words, and what they leave open.
fn why(status: ExitStatus, said: &[u8], seconds: u64) -> Vec<String> {
    let said = String::from_utf8_lossy(said);
    let mut lines = said.lines().map(str::to_owned).take(LINES_MAX).collect::<Vec<_>>();
    if has_used_up_processor(status) {
        let what = "the objects unpack to more than git can check";
        lines.push(format!("{what} in {seconds} s of processor time: push an older commit first"));
    } else if lines.iter().any(|line| line.contains("ut of memory")) {
        lines.push("an object, or their number, is too large: divide the file, or push an older commit first".into());
    } else if lines.is_empty() {
        lines.push(format!("git {COMMAND} ended with {status}"));
    }
    lines
}

async fn in_thread<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> Result<R, GitError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| io_failed(io::Error::other(error)))
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
        let survey = self.pack.as_ref().map(|(_, survey)| survey.clone());
        let (objects, limits) = (self.repository.dir.join("objects"), Limits::of(self.sent));
        beside(CHECK_TIME_MAX, move |patience| {
            let whole = Whole { survey: survey.as_deref(), objects: &objects, refs: &refs, limits };
            whole.problems(&patience).map_err(io_failed)
        })
        .await
    }

    /// Makes them a part of the repository, for good.
    pub async fn keep(self) -> Result<(), GitError> {
        let keep = move || match &self.pack {
            Some((pack, _)) => keep(pack, &self.repository.dir.join("objects/pack")),
            None => Ok(()),
        };
        in_thread(keep).await?.map_err(io_failed)
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
