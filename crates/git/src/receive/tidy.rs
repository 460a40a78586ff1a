//! Packs of many pushes, made into few.
//!
//! Each push leaves one pack. Git opens all of them when it looks for what is
//! in none, so that their number is kept small: those that are small beside
//! the others are made into one, and a large one is left alone. What no ref
//! reaches stays: the projected commit may be part of a history that a forced
//! push has left behind.

use std::ffi::OsStr;

use crate::error::GitError;
use crate::program::succeed;
use crate::repository::Repository;

const COMMAND: &str = "repack";
/// Beyond it they are made into fewer.
const PACKS_MAX: usize = 32;

impl Repository {
    /// Whether there are more packs than there should be.
    pub fn is_untidy(&self) -> std::io::Result<bool> {
        let entries = std::fs::read_dir(self.dir.join("objects/pack"))?;
        let packs = entries.flatten().filter(|entry| entry.path().extension() == Some(OsStr::new("pack")));
        Ok(packs.count() > PACKS_MAX)
    }

    /// Beside pushes and clones, which do not notice. One at a time.
    pub async fn repack(&self) -> Result<(), GitError> {
        let mut command = self.command();
        command.args(["-c", "repack.writeBitmaps=false", COMMAND, "--geometric=2", "-d", "-q"]);
        succeed(COMMAND, &self.dir, &mut command).await.map(drop)
    }
}
