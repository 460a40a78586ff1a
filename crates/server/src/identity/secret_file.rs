//! A secret in a file of the data directory.
//!
//! Invariant: a secret that is returned is on disk whole, and readable by its
//! owner alone. A crash while it is made leaves no half of it behind.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use tidegate_files::{FileError, FileKind, Opened, Unread};

use super::error::SetupError;

/// No secret of ours is longer; a larger file is not one.
const SECRET: FileKind = FileKind { what: "the secret", bytes_max: 4096 };
const OWNER_ONLY: u32 = 0o600;

/// Reads `name` in `directory`, or creates it with what `make` returns.
pub(super) fn read_or_create(
    directory: &Path,
    name: &str,
    make: impl FnOnce() -> Vec<u8>,
) -> Result<Vec<u8>, SetupError> {
    let path = directory.join(name);
    match SECRET.open(&path) {
        Ok(opened) => read(&path, opened),
        Err(FileError { reason: Unread::Missing, .. }) => {
            let secret = make();
            create(directory, name, &secret)?;
            Ok(secret)
        }
        Err(error) => Err(error.into()),
    }
}

fn read(path: &Path, opened: Opened<'_>) -> Result<Vec<u8>, SetupError> {
    let mode = opened.metadata().mode() & 0o777;
    if mode & !OWNER_ONLY != 0 {
        return Err(SetupError::Permissions { path: path.to_owned(), mode });
    }
    match opened.read() {
        // Whoever checks it finds that it is none, and knows the remedy.
        Err(FileError { reason: Unread::TooLarge { .. }, .. }) => Ok(Vec::new()),
        secret => Ok(secret?),
    }
}

fn create(directory: &Path, name: &str, secret: &[u8]) -> Result<(), SetupError> {
    let (path, temporary) = (directory.join(name), directory.join(format!(".{name}.new")));
    let failed = |action, path: &PathBuf| {
        let path = path.clone();
        move |source| SetupError::Io { action, path, source }
    };
    remove_leftover(&temporary).map_err(failed("remove", &temporary))?;
    write_durably(&temporary, secret).map_err(failed("write", &temporary))?;
    fs::rename(&temporary, &path).map_err(failed("create", &path))?;
    // Without this the rename itself may be lost in a power cut.
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(failed("sync the directory of", &path))
}

fn write_durably(path: &Path, secret: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(OWNER_ONLY).open(path)?;
    file.write_all(secret)?;
    file.sync_all()
}

/// Of an attempt that crashed.
fn remove_leftover(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
