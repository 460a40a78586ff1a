//! The objects of a push, checked as git checks them, but for what they
//! refer to.
//!
//! `receive.fsckObjects` also looks up every object that a new one refers to:
//! for a changed file in each of many large folders all of these folders'
//! files, one by one. Whether everything is there that a ref reaches git finds
//! out before a push is accepted in any case.

use std::path::PathBuf;

use crate::error::GitError;
use crate::program::finish;
use crate::repository::Repository;

const COMMAND: &str = "index-pack";
/// A pack with one bad object has many, of one cause.
const LINES_MAX: usize = 50;

impl Repository {
    /// What is wrong with the packs of a push that git has unpacked without
    /// looking; nothing, if it is good.
    pub async fn fsck_push(&self) -> Result<Vec<String>, GitError> {
        let mut problems = Vec::new();
        for pack in self.pushed_packs().map_err(|source| GitError::Io { command: COMMAND, source })? {
            let mut command = self.command();
            let output = finish(COMMAND, command.args([COMMAND, "--verify", "--fsck-objects"]).arg(&pack)).await?;
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                problems.extend(said.lines().map(|line| line.replace(&*pack.to_string_lossy(), "the push")));
            }
        }
        problems.truncate(LINES_MAX);
        Ok(problems)
    }

    fn pushed_packs(&self) -> std::io::Result<Vec<PathBuf>> {
        let incoming = self.incoming().ok_or_else(|| std::io::Error::other("there is no push"))?;
        let mut packs = Vec::new();
        for entry in std::fs::read_dir(self.dir.join(incoming))? {
            let entry = entry?;
            match entry.file_name().to_str() {
                Some("pack") => {}
                // Not a pack, so not what we were told of: git checks these itself.
                _ => return Err(std::io::Error::other("objects outside of a pack")),
            }
            for file in std::fs::read_dir(entry.path())? {
                let path = file?.path();
                if path.extension().is_some_and(|extension| extension == "pack") {
                    packs.push(path);
                }
            }
        }
        if packs.is_empty() { Err(std::io::Error::other("no pack")) } else { Ok(packs) }
    }
}
