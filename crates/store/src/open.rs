//! The store's directory: whose it is, what is in it, and whether all of it is
//! still there.
//!
//! ```text
//! format        one line: what wrote it
//! lock          held while open; the owner's process id
//! acknowledged  the newest version that a writer was told is durable
//! engine/       the engine's files
//! ```

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write as _};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use tidegate_model::ResourceVersion;

use crate::fjall_engine::FjallEngine;
use crate::{OpenError, Options};

const FORMAT: &str = "tidegate-store 1";

pub(crate) fn open(dir: &Path, options: &Options) -> Result<FjallEngine, OpenError> {
    fs::create_dir_all(dir).map_err(io("create", dir))?;
    check_format(dir)?;
    let lock = lock(dir)?;
    let format = dir.join("format");
    if !format.exists() {
        fs::write(&format, format!("{FORMAT}\n")).map_err(io("write", &format))?;
    }
    let watermark = Watermark::open(&dir.join("acknowledged"))?;
    let engine = dir.join("engine");
    FjallEngine::open(&engine, options, watermark, lock).map_err(|error| OpenError::Damaged {
        place: engine,
        reason: error.to_string(),
        accept: "",
    })
}

fn check_format(dir: &Path) -> Result<(), OpenError> {
    let path = dir.join("format");
    match fs::read_to_string(&path) {
        Ok(text) if text.trim_end() == FORMAT => Ok(()),
        Ok(text) => {
            let found = text.lines().next().unwrap_or_default().chars().take(64).collect();
            Err(OpenError::Format { dir: dir.into(), found, known: FORMAT })
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => check_empty(dir),
        Err(error) => Err(io("read", &path)(error)),
    }
}

/// A lock alone is what a start leaves that died at once.
fn check_empty(dir: &Path) -> Result<(), OpenError> {
    for entry in fs::read_dir(dir).map_err(io("read", dir))? {
        if entry.map_err(io("read", dir))?.file_name() != "lock" {
            return Err(OpenError::NotAStore { dir: dir.into() });
        }
    }
    Ok(())
}

fn lock(dir: &Path) -> Result<File, OpenError> {
    let path = dir.join("lock");
    let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
    let mut file = opened.map_err(io("open", &path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(fs::TryLockError::WouldBlock) => {
            let mut owner = String::new();
            drop(file.read_to_string(&mut owner));
            return Err(OpenError::Locked { dir: dir.into(), pid: owner.trim().parse().ok() });
        }
        Err(fs::TryLockError::Error(error)) => return Err(io("lock", &path)(error)),
    }
    file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).map_err(io("write", &path))?;
    Ok(file)
}

/// The newest acknowledged version, beside the engine's files: it tells a
/// store that lost acknowledged writes from one that lost an unfinished one.
pub(crate) struct Watermark(File);

impl Watermark {
    fn open(path: &Path) -> Result<Self, OpenError> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        file.map(Self).map_err(io("open", path))
    }

    pub fn write(&self, version: ResourceVersion) {
        if let Err(error) = self.0.write_all_at(format!("{version}\n").as_bytes(), 0) {
            tracing::warn!(%error, "failed to note the acknowledged version: a later loss might go unnoticed");
        }
    }
}

fn io(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> OpenError {
    let path = PathBuf::from(path);
    move |source| OpenError::Io { doing, path, source }
}
