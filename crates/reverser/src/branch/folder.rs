//! The clones of a work directory: what no branch uses goes.
//!
//! Invariant: a clone that some process holds is never touched. One that goes
//! is renamed first, so that a branch that starts meanwhile finds nothing, or
//! all of it.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::clone::{LOCK_ENDING, lock};

/// On its way out.
const GONE_ENDING: &str = ".gone";

/// Removes what is in `folder` and not in `used`, and what earlier removals
/// left. A clone is made again when it is needed.
pub fn remove_unused(folder: &Path, used: &BTreeSet<PathBuf>) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.ends_with(GONE_ENDING) {
            fs::remove_dir_all(&path)?;
        } else if !name.ends_with(LOCK_ENDING) && !used.contains(&path) {
            remove(&path)?;
        }
    }
    Ok(())
}

fn remove(clone: &Path) -> io::Result<()> {
    let Some(held) = lock(clone)? else { return Ok(()) };
    let mut gone = clone.as_os_str().to_owned();
    gone.push(GONE_ENDING);
    fs::rename(clone, &gone)?;
    // The lock's file stays: somebody may be about to hold it.
    drop(held);
    fs::remove_dir_all(gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_uses_or_holds_goes() {
        let folder = tempfile::tempdir().unwrap();
        let dir = |name: &str| folder.path().join(name);
        for name in ["used", "held", "unused", "half.gone"] {
            fs::create_dir_all(dir(name).join("objects")).unwrap();
        }
        let held = lock(&dir("held")).unwrap();
        lock(&dir("unused")).unwrap();
        remove_unused(folder.path(), &BTreeSet::from([dir("used")])).unwrap();
        let mut left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["held", "held.lock", "unused.lock", "used"]);
        drop(held);
        remove_unused(folder.path(), &BTreeSet::new()).unwrap();
        assert!(!dir("held").exists() && !dir("used").exists());
        remove_unused(&dir("nowhere"), &BTreeSet::new()).unwrap();
    }
}
