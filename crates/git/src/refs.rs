//! The remote's branch, moved from the value that we saw to a new one.
//!
//! Invariant: a push names the old value and the new one descends from it, so
//! it is a fast-forward or nothing. There is no force and no merge.

use crate::error::GitError;
use crate::remote::Remote;
use crate::remote_error::{Asked, RemoteError, classify};
use crate::repository::{ObjectId, Repository};

const COMMAND: &str = "push";
/// Of what the host says, for a message.
const MESSAGE_CHARS_MAX: usize = 500;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pushed {
    Done,
    /// Somebody else was first: the old value is not the remote's.
    Moved,
}

#[derive(Debug, thiserror::Error)]
pub enum PushError {
    #[error("the host refuses the push: {message}; see its branch protection and hooks")]
    Rejected { message: String },
    #[error(transparent)]
    Remote(#[from] RemoteError),
    #[error(transparent)]
    Git(#[from] GitError),
}

impl Repository {
    /// Moves `branch` at the remote from `old` (`None`: it must not exist) to
    /// `new`, which has `old` in its history.
    pub async fn push(
        &self,
        remote: &Remote,
        branch: &str,
        old: Option<&ObjectId>,
        new: &ObjectId,
    ) -> Result<Pushed, PushError> {
        let lease = format!("--force-with-lease=refs/heads/{branch}:{}", old.map_or("", ObjectId::as_str));
        let refspec = format!("{new}:refs/heads/{branch}");
        let url = remote.url.as_str();
        let args = ["--porcelain", "--atomic", "--no-verify", "--no-follow-tags", &lease, "--", url, &refspec];
        let ended = remote.call(&self.program, &self.dir, COMMAND, &args).await?;
        if ended.status.success() {
            return Ok(Pushed::Done);
        }
        verdict(&ended.stdout, &ended.stderr).unwrap_or_else(|| {
            let (stall_seconds, file_bytes_max) = (remote.limits.stall_max.as_secs(), remote.limits.pack_bytes_max);
            let asked = Asked { command: COMMAND, branch, stall_seconds, file_bytes_max };
            Err(classify(&asked, &ended.stderr).into())
        })
    }

    /// Whether the remote has no branch at all.
    pub async fn is_remote_empty(&self, remote: &Remote) -> Result<bool, RemoteError> {
        Ok(self.heads(remote, &[]).await?.trim().is_empty())
    }

    /// The names of the remote's branches that match one of `patterns`, as
    /// `git ls-remote` means them: `refs/heads/v*`. Of very many the last.
    pub async fn remote_branches(&self, remote: &Remote, patterns: &[String]) -> Result<Vec<String>, RemoteError> {
        let heads = self.heads(remote, patterns).await?;
        let names = heads.lines().filter_map(|line| line.split_once("\trefs/heads/"));
        Ok(names.map(|(_, name)| name.to_owned()).collect())
    }

    async fn heads(&self, remote: &Remote, patterns: &[String]) -> Result<String, RemoteError> {
        const COMMAND: &str = "ls-remote";
        let mut args = vec!["--heads", "--", remote.url.as_str()];
        args.extend(patterns.iter().map(String::as_str));
        let ended = remote.call(&self.program, &self.dir, COMMAND, &args).await?;
        if ended.status.success() {
            return Ok(ended.stdout);
        }
        let asked = Asked { command: COMMAND, branch: "", stall_seconds: 0, file_bytes_max: 0 };
        Err(classify(&asked, &ended.stderr))
    }
}

/// What the host said of our one ref: `!\t<new>:<ref>\t[rejected] (why)`.
fn verdict(stdout: &str, stderr: &str) -> Option<Result<Pushed, PushError>> {
    let line = stdout.lines().find_map(|line| line.strip_prefix("!\t"))?;
    let why = line.rsplit('\t').next().unwrap_or_default();
    let is_moved = |text: &str| {
        let signs = ["stale info", "fetch first", "non-fast-forward", "cannot lock ref", "failed to update ref"];
        signs.iter().any(|sign| text.contains(sign))
    };
    let is_remote = why.starts_with("[remote rejected]") || why.starts_with("[rejected]");
    if !is_remote {
        return None;
    }
    // Why an atomic push failed is told beside it: another was a moment faster.
    let lost = |line: &str| line.contains("cannot lock ref") && line.contains("but expected");
    if is_moved(why) || why.contains("incorrect old value") || stderr.lines().any(lost) {
        return Some(Ok(Pushed::Moved));
    }
    // What a hook printed says more than "hook declined".
    let said = stderr.lines().filter_map(|line| line.strip_prefix("remote: ")).map(str::trim);
    let said: Vec<_> = std::iter::once(why).chain(said.filter(|line| !line.is_empty())).collect();
    let message = said.join(" ").chars().take(MESSAGE_CHARS_MAX).collect();
    Some(Err(PushError::Rejected { message }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(stdout: &str, stderr: &str, expected: &str) {
        let shown = match verdict(stdout, stderr) {
            None => "nothing".to_owned(),
            Some(Ok(pushed)) => format!("{pushed:?}"),
            Some(Err(error)) => error.to_string(),
        };
        assert!(shown.contains(expected), "{shown}");
    }

    #[test]
    fn what_the_host_said() {
        let line = |why: &str| format!("To http://h/a\n!\tabc:refs/heads/main\t{why}\nDone\n");
        check(&line("[rejected] (stale info)"), "", "Moved");
        check(&line("[rejected] (fetch first)"), "", "Moved");
        check(&line("[remote rejected] (cannot lock ref 'refs/heads/main': is at x but expected y)"), "", "Moved");
        check(&line("[remote rejected] (failed to update ref)"), "", "Moved");
        let stderr = "remote: error: cannot lock ref 'refs/heads/main': is at x but expected y        ";
        check(&line("[remote rejected] (atomic transaction failed)"), stderr, "Moved");
        let stderr = "remote: error: cannot lock ref 'refs/heads/main': Unable to create 'main.lock': File exists.";
        check(&line("[remote rejected] (atomic transaction failed)"), stderr, "main.lock");
        let stderr = "remote: no pushes on Friday        \nerror: failed to push some refs";
        check(&line("[remote rejected] (pre-receive hook declined)"), stderr, "hook declined) no pushes on Friday;");
        check("", "fatal: unable to access", "nothing");
    }
}
