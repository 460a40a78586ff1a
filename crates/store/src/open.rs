//! The store's directory: whose it is, what is in it, and whether all of it is
//! still there.
//!
//! ```text
//! format        one line: what wrote it
//! lock          held while open; the owner's process id
//! acknowledged  the newest version that a writer was told is durable
//! tables        the engine's numbers for the tables that must exist
//! engine/       the engine's files
//! ```

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write as _};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use tidegate_model::ResourceVersion;

use crate::fjall_engine::FjallEngine;
use crate::{OpenError, Options, recovery};

const FORMAT: &str = "tidegate-store 1";
/// Instead of the format, until an import is complete.
const UNFINISHED: &str = "tidegate-store, import unfinished";

/// Opens the store in `dir`, or creates one.
pub(crate) fn open(dir: &Path, options: &Options) -> Result<FjallEngine, OpenError> {
    fs::create_dir_all(dir).map_err(io("create", dir))?;
    check_format(dir)?;
    let lock = lock(dir)?;
    if !dir.join("format").exists() {
        write_whole(dir, "format", FORMAT)?;
    }
    open_locked(dir, options, lock)
}

/// For a tool: does not create a store where there is none.
pub(crate) fn open_existing(dir: &Path, options: &Options) -> Result<FjallEngine, OpenError> {
    if dir.join("format").exists() { open(dir, options) } else { Err(OpenError::Missing { dir: dir.into() }) }
}

/// A new store that nobody can open until [`finish`].
pub(crate) fn open_unfinished(dir: &Path, options: &Options) -> Result<FjallEngine, OpenError> {
    fs::create_dir_all(dir).map_err(io("create", dir))?;
    let lock = lock(dir)?;
    write_whole(dir, "format", UNFINISHED)?;
    open_locked(dir, options, lock)
}

pub(crate) fn finish(dir: &Path) -> Result<(), OpenError> {
    write_whole(dir, "format", FORMAT)
}

/// Removes everything in `dir`, for an import that failed.
pub(crate) fn empty(dir: &Path) -> std::io::Result<()> {
    for name in ["engine", "acknowledged", "tables", "tables.new", "format", "format.new", "lock"] {
        let path = dir.join(name);
        let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        if let Err(error) = removed
            && error.kind() != std::io::ErrorKind::NotFound
        {
            return Err(error);
        }
    }
    Ok(())
}

/// Where the line of a new store begins.
pub(crate) fn line_start(options: &Options) -> ResourceVersion {
    ResourceVersion::line_start(options.clock.now_ms() / 1000)
}

/// Where the next line of a store begins that has minted at least `newest`:
/// above all that it can have minted until now, which is fewer than 2^20 a
/// second, wherever the clock stands.
pub(crate) fn next_line_start(options: &Options, newest: Option<ResourceVersion>) -> ResourceVersion {
    let next_second = ResourceVersion::line_start(options.clock.now_ms() / 1000 + 1);
    newest.map_or(next_second, |newest| newest.next().max(next_second))
}

fn open_locked(dir: &Path, options: &Options, lock: File) -> Result<FjallEngine, OpenError> {
    let watermark = Watermark::open(&dir.join("acknowledged"))?;
    let acknowledged = watermark.read();
    let engine_dir = dir.join("engine");
    recovery::before_open(&engine_dir, &read_tables(dir), acknowledged, options.on_loss)?;
    let engine = recovery::open_engine(&engine_dir, || FjallEngine::open(&engine_dir, options, watermark, lock))?;
    recovery::after_open(&engine, dir, acknowledged, options)?;
    let tables = engine.lasting_tables();
    if read_tables(dir) != tables {
        write_whole(dir, "tables", &tables.map(|id| id.to_string()).join(" "))?;
    }
    Ok(engine)
}

/// None before a first start is complete.
fn read_tables(dir: &Path) -> Vec<u64> {
    let text = fs::read_to_string(dir.join("tables")).unwrap_or_default();
    text.split_whitespace().filter_map(|id| id.parse().ok()).collect()
}

/// A file of one line, complete or not there.
fn write_whole(dir: &Path, name: &str, line: &str) -> Result<(), OpenError> {
    let (path, draft) = (dir.join(name), dir.join(format!("{name}.new")));
    let write = || {
        let mut file = File::create(&draft)?;
        writeln!(file, "{line}")?;
        file.sync_all()?;
        fs::rename(&draft, &path)?;
        File::open(dir)?.sync_all()
    };
    write().map_err(io("write", &path))
}

fn check_format(dir: &Path) -> Result<(), OpenError> {
    let path = dir.join("format");
    match fs::read_to_string(&path) {
        Ok(text) if text.trim_end() == FORMAT => Ok(()),
        Ok(text) if text.trim_end() == UNFINISHED => Err(OpenError::Damaged {
            place: dir.into(),
            reason: "an import into it did not finish".into(),
            remedy: "delete the directory and import again",
        }),
        Ok(text) => {
            let found = text.lines().next().unwrap_or_default().chars().take(64).collect();
            Err(OpenError::Format { dir: dir.into(), found, known: FORMAT })
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => check_empty(dir),
        Err(error) => Err(io("read", &path)(error)),
    }
}

/// What a first start leaves that died at once counts as nothing.
fn check_empty(dir: &Path) -> Result<(), OpenError> {
    for entry in fs::read_dir(dir).map_err(io("read", dir))? {
        let name = entry.map_err(io("read", dir))?.file_name();
        if name != "lock" && name != "format.new" {
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

    pub fn read(&self) -> Option<ResourceVersion> {
        let mut text = [0; ResourceVersion::DIGITS];
        self.0.read_exact_at(&mut text, 0).ok()?;
        std::str::from_utf8(&text).ok()?.parse().ok()
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
