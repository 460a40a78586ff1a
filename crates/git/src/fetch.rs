//! A branch of a remote repository, brought here.

use std::path::Path;

use crate::error::GitError;
use crate::program::{failed, finish, succeed};
use crate::remote::{Ended, Remote};
use crate::remote_error::{Asked, RemoteError, classify};
use crate::repository::{ObjectId, Repository};

const COMMAND: &str = "fetch";
/// What a fetch that was killed leaves in the folder of packs.
const UNFINISHED_PREFIX: &str = "tmp_";

/// Why nothing was fetched: the host's doing, or ours.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error(transparent)]
    Remote(#[from] RemoteError),
    #[error(transparent)]
    Git(#[from] GitError),
}

impl Repository {
    /// Makes `into` (a whole name, such as `refs/…`) the commit that `branch`
    /// has at the remote, whatever it was before. One at a time.
    pub async fn fetch(&self, remote: &Remote, branch: &str, into: &str) -> Result<ObjectId, FetchError> {
        self.fetch_with(remote, branch, into, "--no-progress").await
    }

    /// As [`Self::fetch`], with no more of the history than `depth` commits:
    /// what a branch costs here is its files, however old it is.
    pub async fn fetch_tip(
        &self,
        remote: &Remote,
        branch: &str,
        into: &str,
        depth: u64,
    ) -> Result<ObjectId, FetchError> {
        self.fetch_with(remote, branch, into, &format!("--depth={depth}")).await
    }

    /// Whether `commit` has `ancestor` in its history, as far as that is here,
    /// or is that.
    pub async fn has_ancestor(&self, commit: &ObjectId, ancestor: &ObjectId) -> Result<bool, GitError> {
        let args = ["merge-base", "--is-ancestor", ancestor.as_str(), commit.as_str()];
        // One that is not here at all is no ancestor either.
        Ok(finish("merge-base", self.command().args(args)).await?.status.success())
    }

    async fn fetch_with(
        &self,
        remote: &Remote,
        branch: &str,
        into: &str,
        option: &str,
    ) -> Result<ObjectId, FetchError> {
        let refspec = format!("+refs/heads/{branch}:{into}");
        let args = [
            option,
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-auto-maintenance",
            "--no-recurse-submodules",
            "--no-show-forced-updates",
            "--refmap=",
            "--",
            remote.url.as_str(),
            &refspec,
        ];
        let ended = remote.call(&self.program, &self.dir, COMMAND, &args).await;
        match ended {
            Ok(Ended { status, .. }) if status.success() => {
                Ok(self.resolve(into).await?.ok_or_else(|| RemoteError::NoBranch { branch: branch.to_owned() })?)
            }
            Ok(Ended { status, stderr, .. }) => {
                self.remove_unfinished(into);
                // One that was killed says nothing.
                let said = if stderr.trim().is_empty() { format!("it ended with {status}") } else { stderr };
                Err(classify(&asked(remote, branch), &said).into())
            }
            Err(error) => {
                self.remove_unfinished(into);
                Err(error.into())
            }
        }
    }

    /// The commit of the ref `name`, if it exists.
    pub async fn resolve(&self, name: &str) -> Result<Option<ObjectId>, GitError> {
        let commit = format!("{name}^{{commit}}");
        let output = finish("rev-parse", self.command().args(["rev-parse", "--verify", "--quiet", &commit])).await?;
        match (output.status.code(), String::from_utf8_lossy(&output.stdout).trim()) {
            (Some(0), id) => {
                let unreadable = GitError::Unreadable { command: "rev-parse", what: "no object id" };
                ObjectId::parse(id).map(Some).ok_or(unreadable)
            }
            (Some(1), _) => Ok(None),
            _ => Err(failed("rev-parse", &self.dir, &output.stderr)),
        }
    }

    /// Packs what many fetches brought, if it has become much. What no ref
    /// reaches goes after git's grace time.
    pub async fn tidy(&self) -> Result<(), GitError> {
        let mut command = self.command();
        succeed("gc", &self.dir, command.args(["-c", "gc.autoDetach=false", "gc", "--auto", "--quiet"])).await.map(drop)
    }

    /// One pack of what the refs reach; the rest goes at once. Nobody may be
    /// adding objects meanwhile.
    pub async fn collect_garbage(&self) -> Result<(), GitError> {
        let mut command = self.command();
        let args = ["-c", "gc.autoDetach=false", "gc", "--prune=now", "--quiet"];
        succeed("gc", &self.dir, command.args(args)).await.map(drop)
    }

    /// Else every attempt at a repository that is too large costs its limit of
    /// disk, and the lock of a fetch that was killed refuses the next. Should it
    /// fail, the next attempt tries again.
    fn remove_unfinished(&self, into: &str) {
        let _ = remove_prefixed(&self.dir.join("objects/pack"), UNFINISHED_PREFIX);
        // Nobody else moves this ref.
        let _ = std::fs::remove_file(self.dir.join(format!("{into}.lock")));
    }
}

fn asked<'a>(remote: &Remote, branch: &'a str) -> Asked<'a> {
    Asked {
        command: COMMAND,
        branch,
        stall_seconds: remote.limits.stall_max.as_secs(),
        file_bytes_max: remote.limits.pack_bytes_max,
    }
}

fn remove_prefixed(folder: &Path, prefix: &str) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
