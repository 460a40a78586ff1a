//! One bare repository.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::process::Command;

use crate::beside::beside;
use crate::blobs::{self, BlobLimits, Blobs};
use crate::error::GitError;
use crate::objects::Objects;
use crate::program::{Program, failed, finish, succeed};

/// Of one change: a million files take a second, and longer from a slow disk.
const BLOBS_TIME_MAX: Duration = Duration::from_secs(300);

/// A commit, a tree or a blob, in hex as git writes it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ObjectId(Box<str>);

impl ObjectId {
    /// The tree without entries, which every repository knows.
    pub fn empty_tree() -> Self {
        Self("4b825dc642cb6eb9a060e54bf8d69288fbee4904".into())
    }

    /// `None` if it is none, or the zeros that stand for "no object".
    pub fn parse(text: &str) -> Option<Self> {
        let is_hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let is_id = (text.len() == 40 || text.len() == 64) && is_hex && !text.bytes().all(|byte| byte == b'0');
        is_id.then(|| Self(text.into()))
    }

    /// For what is an id by construction.
    pub(crate) fn from_trusted(text: String) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where the objects of a push are while it is checked, beside those that are
/// here.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Quarantine {
    pub object_directory: OsString,
    /// One folder.
    pub alternates: OsString,
}

/// A cheap handle; nothing is held open.
#[derive(Clone, Debug)]
pub struct Repository {
    pub(crate) program: Program,
    pub(crate) dir: PathBuf,
    quarantine: Option<Quarantine>,
}

impl Repository {
    pub fn new(program: Program, dir: PathBuf) -> Self {
        Self { program, dir, quarantine: None }
    }

    /// The same, with the objects of a push that is not accepted yet.
    #[must_use]
    pub fn with_quarantine(&self, quarantine: Quarantine) -> Self {
        Self { quarantine: Some(quarantine), ..self.clone() }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Creates it where it is missing or unfinished, and makes `branch` the
    /// one that a clone checks out. Its parent exists.
    pub async fn init(&self, branch: &str) -> Result<(), GitError> {
        let parent = self.dir.parent().unwrap_or(&self.dir);
        let mut command = self.program.command(parent);
        // An empty template: no sample hooks in every repository.
        command.args(["init", "--quiet", "--bare", "--template=", "--initial-branch", branch, "--"]).arg(&self.dir);
        succeed("init", parent, &mut command).await?;
        // One that was there before keeps its HEAD otherwise.
        let name = format!("refs/heads/{branch}");
        succeed("symbolic-ref", &self.dir, self.command().args(["symbolic-ref", "HEAD", &name])).await.map(drop)
    }

    /// The commit of `refs/heads/<branch>`, if the branch exists.
    pub async fn head(&self, branch: &str) -> Result<Option<ObjectId>, GitError> {
        self.resolve(&format!("refs/heads/{branch}")).await
    }

    /// Whether `new` has all the history of `old`.
    pub async fn is_ancestor(&self, old: &ObjectId, new: &ObjectId) -> Result<bool, GitError> {
        let mut command = self.command();
        let output = finish("merge-base", command.args(["merge-base", "--is-ancestor", old.as_str(), new.as_str()]));
        let output = output.await?;
        match output.status.code() {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(failed("merge-base", &self.dir, &output.stderr)),
        }
    }

    /// Whether the head of `branch` has a folder at `path`.
    pub async fn has_folder(&self, branch: &str, path: &str) -> Result<bool, GitError> {
        let folder = format!("refs/heads/{branch}:{path}");
        let output = finish("cat-file", self.command().args(["cat-file", "-t", &folder])).await?;
        Ok(output.status.success() && output.stdout.starts_with(b"tree"))
    }

    /// The contents of `ids`, each asked for once.
    pub async fn blobs(&self, ids: Vec<ObjectId>, limits: BlobLimits) -> Result<Blobs, GitError> {
        let repository = self.clone();
        beside(BLOBS_TIME_MAX, move |patience| blobs::read(&Objects::open(&repository, patience)?, ids, limits)).await
    }

    /// Where the objects of a push are.
    pub(crate) fn incoming(&self) -> Option<&Path> {
        self.quarantine.as_ref().map(|quarantine| Path::new(&quarantine.object_directory))
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = self.program.command(&self.dir);
        command.env("GIT_DIR", &self.dir);
        if let Some(quarantine) = &self.quarantine {
            command.env("GIT_QUARANTINE_PATH", &quarantine.object_directory);
            command.env("GIT_OBJECT_DIRECTORY", &quarantine.object_directory);
            command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", quoted(&quarantine.alternates));
        }
        command
    }
}

/// Git takes it for a list, divided by colons, unless it begins with a quote:
/// then it is read as C does, so that a folder may have any name.
fn quoted(folder: &OsStr) -> OsString {
    let mut quoted = vec![b'"'];
    for &byte in folder.as_bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend([b'\\', byte]),
            b'\n' => quoted.extend(*b"\\n"),
            _ => quoted.push(byte),
        }
    }
    quoted.push(b'"');
    OsString::from_vec(quoted)
}
