//! What a killed git leaves behind: locks that refuse every later push, and
//! objects that never arrived.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::receive::FOLDER_PREFIX;
use crate::repository::Repository;

/// Git holds the lock of a ref for milliseconds.
const LOCK_AGE_MIN: Duration = Duration::from_secs(5);
/// How often it is looked whether a young one has gone.
const LOCK_LOOK: Duration = Duration::from_millis(50);
/// Beside `refs`, what git locks.
const LOCKS: [&str; 4] = ["HEAD.lock", "packed-refs.lock", "config.lock", "shallow.lock"];

impl Repository {
    /// For a repository that nobody is served from. A push of a server that was
    /// killed may be under way all the same, so a young lock is waited for.
    /// Returns what was removed.
    pub async fn clear_leftovers(&self) -> io::Result<Vec<PathBuf>> {
        let mut removed = Vec::new();
        let mut locks: Vec<_> = LOCKS.iter().map(|name| self.dir().join(name)).filter(|path| path.exists()).collect();
        find_locks(&self.dir().join("refs"), &mut locks)?;
        for lock in locks {
            while let Some(age) = age(&lock)? {
                if age >= LOCK_AGE_MIN {
                    std::fs::remove_file(&lock)?;
                    removed.push(lock);
                    break;
                }
                tokio::time::sleep(LOCK_LOOK).await;
            }
        }
        removed.extend(self.clear_incoming()?);
        Ok(removed)
    }

    /// Objects of pushes whose server is gone.
    fn clear_incoming(&self) -> io::Result<Vec<PathBuf>> {
        let mut removed = Vec::new();
        for entry in entries(&self.dir().join("objects"))? {
            let name = entry.file_name();
            let is_incoming =
                [FOLDER_PREFIX, "tmp_objdir-"].iter().any(|prefix| name.to_string_lossy().starts_with(prefix));
            if is_incoming {
                std::fs::remove_dir_all(entry.path())?;
                removed.push(entry.path());
            }
        }
        Ok(removed)
    }
}

/// `None` if it is gone. A clock that went back makes it old.
fn age(path: &Path) -> io::Result<Option<Duration>> {
    match std::fs::symlink_metadata(path) {
        Ok(found) => Ok(Some(SystemTime::now().duration_since(found.modified()?).unwrap_or(LOCK_AGE_MIN))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn find_locks(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in entries(folder)? {
        if entry.file_type()?.is_dir() {
            find_locks(&entry.path(), found)?;
        } else if entry.path().extension().is_some_and(|extension| extension == "lock") {
            found.push(entry.path());
        }
    }
    Ok(())
}

/// None of a folder that is not there.
fn entries(folder: &Path) -> io::Result<Vec<std::fs::DirEntry>> {
    match std::fs::read_dir(folder) {
        Ok(entries) => entries.collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
