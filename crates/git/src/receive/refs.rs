//! The refs of a repository that is pushed to: which there are, and their move.
//!
//! Invariant: all refs of a push move, or none, and each only from the value
//! that the pusher saw. Git holds to it in one transaction.

use std::collections::BTreeSet;
use std::process::Output;

use bytes::Bytes;
use tokio::process::Command;

use super::report::advertisement;
use super::request::RefUpdate;
use crate::error::GitError;
use crate::program::{bounded, failed, finish_fed, finish_in_steps};
use crate::repository::{ObjectId, Repository};
use crate::sync::sync_all;

const COMMAND: &str = "update-ref";
/// Git syncs one ref after the other, some 3 ms each: beyond so many we do it,
/// side by side.
const SYNCED_BY_GIT_MAX: usize = 8;
/// About a million refs.
const REFS_BYTES_MAX: u64 = 128 << 20;

/// What became of a move.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Moved {
    Done,
    /// Somebody else was first.
    Stale,
    /// Why not, in git's words.
    Refused(String),
}

impl Repository {
    /// All refs, as a client is told of them before it pushes.
    pub async fn advertise(&self) -> Result<Bytes, GitError> {
        const COMMAND: &str = "for-each-ref";
        let mut command = self.command();
        command.args([COMMAND, "--format=%(objectname) %(refname)"]);
        let listed = bounded(COMMAND, &self.dir, &mut command, REFS_BYTES_MAX).await?;
        let listed = listed.ok_or(GitError::Unreadable { command: COMMAND, what: "more refs than can be told" })?;
        let listed = String::from_utf8_lossy(&listed);
        let refs = listed.lines().filter_map(|line| line.split_once(' '));
        let refs: Vec<_> = refs.map(|(id, name)| (name.to_owned(), id.to_owned())).collect();
        Ok(advertisement(&refs))
    }

    /// Moves all of them, or none. After an error nobody knows: git was killed,
    /// perhaps for being too slow, and its locks are left ([`Self::unlock`]).
    pub async fn move_refs(&self, updates: &[RefUpdate]) -> Result<Moved, GitError> {
        let output = if updates.len() <= SYNCED_BY_GIT_MAX {
            let commands = transaction(updates) + "commit\0";
            finish_fed(COMMAND, &mut self.mover("core.fsync=all"), commands.as_bytes()).await?
        } else {
            self.move_many(updates).await?
        };
        if output.status.success() {
            return Ok(Moved::Done);
        }
        let said = String::from_utf8_lossy(&output.stderr);
        match said.lines().find_map(|line| line.strip_prefix("fatal: ")) {
            Some(why) if is_stale(why) => Ok(Moved::Stale),
            Some(why) => Ok(Moved::Refused(why.to_owned())),
            None => Err(failed(COMMAND, &self.dir, format!("{} {said}", output.status).as_bytes())),
        }
    }

    /// As git does it: the new values are on disk, beside the old ones, before
    /// they take their place.
    async fn move_many(&self, updates: &[RefUpdate]) -> Result<Output, GitError> {
        let prepare = transaction(updates) + "prepare\0";
        let refs: Vec<_> = updates.iter().map(|update| self.dir.join(&update.name)).collect();
        let locks = updates.iter().map(|update| self.dir.join(format!("{}.lock", update.name)));
        let written = locks.chain([self.dir.join("packed-refs.new")]).collect();
        let mut command = self.mover("core.fsync=none");
        let steps = [prepare.as_bytes(), b"commit\0"];
        let output = finish_in_steps(COMMAND, &mut command, steps, "prepare: ok", sync_all(written)).await?;
        if output.status.success() {
            let above =
                refs.iter().flat_map(|path| path.ancestors().skip(1)).filter(|path| path.starts_with(&self.dir));
            let folders: BTreeSet<_> = above.map(ToOwned::to_owned).collect();
            let failed = |source| GitError::Io { command: COMMAND, source };
            sync_all(folders.into_iter().collect()).await.map_err(failed)?;
        }
        Ok(output)
    }

    fn mover(&self, setting: &str) -> Command {
        let mut command = self.program.command(&self.dir);
        // By its arguments it is known to whoever has to end it: see `orphans`.
        command.args(["-c", setting, "--git-dir"]).arg(&self.dir).args([COMMAND, "--stdin", "-z"]);
        command
    }

    /// Takes away the locks of a move that is dead, while no other is under way.
    pub fn unlock(&self, updates: &[RefUpdate]) {
        let names = updates.iter().map(|update| update.name.as_str()).chain(["HEAD", "packed-refs"]);
        for name in names {
            // Most are not there.
            let _ = std::fs::remove_file(self.dir.join(format!("{name}.lock")));
        }
    }

    /// Moves the ref `name` from `old` (`None`: it must not exist) to `new`.
    pub async fn update_ref(&self, name: &str, old: Option<&ObjectId>, new: &ObjectId) -> Result<(), GitError> {
        let update = RefUpdate { name: name.to_owned(), old: old.cloned(), new: Some(new.clone()) };
        self.move_refs(&[update]).await?.or_failed(self)
    }
}

impl Moved {
    /// For whom it is an error that the refs of `repository` did not move.
    pub fn or_failed(self, repository: &Repository) -> Result<(), GitError> {
        let failed = |why: &str| Err(failed(COMMAND, repository.dir(), why.as_bytes()));
        match self {
            Self::Done => Ok(()),
            Self::Stale => failed("the ref has moved meanwhile"),
            Self::Refused(why) => failed(&why),
        }
    }
}

/// Without its end, so that git does nothing of it yet.
fn transaction(updates: &[RefUpdate]) -> String {
    let mut text = String::from("start\0");
    for RefUpdate { name, old, new } in updates {
        let id = |id: &Option<ObjectId>| id.as_ref().map_or_else(|| "0".repeat(40), ToString::to_string);
        match new {
            Some(new) => text.push_str(&format!("update {name}\0{new}\0{}\0", id(old))),
            None => text.push_str(&format!("delete {name}\0{}\0", id(old))),
        }
    }
    text
}

/// Git names the value that it found, or finds a ref that must not be there,
/// or none where one must be.
fn is_stale(why: &str) -> bool {
    let signs = ["but expected", "reference already exists", "unable to resolve reference", "but it doesn't exist"];
    why.contains("cannot lock ref") && signs.iter().any(|sign| why.contains(sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions() {
        let id = |digit: &str| ObjectId::parse(&digit.repeat(40));
        let update = |name: &str, old, new| RefUpdate { name: name.to_owned(), old, new };
        let updates = [update("refs/a", None, id("1")), update("refs/b", id("2"), None)];
        let expected = format!(
            "start\0update refs/a\0{}\0{}\0delete refs/b\0{}\0",
            "1".repeat(40),
            "0".repeat(40),
            "2".repeat(40)
        );
        assert_eq!(transaction(&updates), expected);
    }
}
