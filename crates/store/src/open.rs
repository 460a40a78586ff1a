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
//!
//! Invariant: a directory with a format is a whole store. An import works
//! beside it, in `<directory>.importing`, and is renamed when it is complete.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write as _};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use tidegate_model::ResourceVersion;

use crate::fjall_engine::FjallEngine;
use crate::{OpenError, Options, recovery};

const FORMAT: &str = "tidegate-store 1";

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

/// A new store under its [`draft`] name, which becomes the one in `dir` when
/// it is [`finish`]ed. What an import left there that was killed is removed.
pub(crate) fn open_draft(dir: &Path, options: &Options) -> Result<FjallEngine, OpenError> {
    let draft = draft(dir);
    fs::create_dir_all(&draft).map_err(io("create", &draft))?;
    let lock = lock(&draft)?;
    let engine_dir = draft.join("engine");
    if engine_dir.exists() {
        fs::remove_dir_all(&engine_dir).map_err(io("remove", &engine_dir))?;
    }
    for name in ["acknowledged", "tables", "format"] {
        let path = draft.join(name);
        if path.exists() {
            fs::remove_file(&path).map_err(io("remove", &path))?;
        }
    }
    open_locked(&draft, options, lock)
}

/// The draft's engine must be closed.
pub(crate) fn finish(dir: &Path) -> Result<(), OpenError> {
    let draft = draft(dir);
    write_whole(&draft, "format", FORMAT)?;
    // Over an empty directory, if there is one: the system refuses any other.
    fs::rename(&draft, dir).map_err(io("move the import to", dir))?;
    let parent = draft.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent).and_then(|parent| parent.sync_all()).map_err(io("sync", parent))
}

/// For an import that failed.
pub(crate) fn discard_draft(dir: &Path) -> std::io::Result<()> {
    match fs::remove_dir_all(draft(dir)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Beside `dir`, so that it is on the same disk.
fn draft(dir: &Path) -> PathBuf {
    // The components drop a slash at the end.
    let mut name = dir.components().as_path().as_os_str().to_owned();
    name.push(".importing");
    name.into()
}

fn open_locked(dir: &Path, options: &Options, lock: DirLock) -> Result<FjallEngine, OpenError> {
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
    if draft(dir).exists() {
        return Err(OpenError::Damaged {
            place: draft(dir),
            reason: "an import did not finish".into(),
            remedy: "import again, or delete that directory to begin with an empty store",
        });
    }
    for entry in fs::read_dir(dir).map_err(io("read", dir))? {
        let name = entry.map_err(io("read", dir))?.file_name();
        if name != "lock" && name != "format.new" {
            return Err(OpenError::NotAStore { dir: dir.into() });
        }
    }
    Ok(())
}

/// Held while the store is open.
pub(crate) struct DirLock(File);

impl Drop for DirLock {
    /// Not only by closing: a program that is being started elsewhere in this
    /// process has a copy of the file until it runs, and would hold it longer.
    fn drop(&mut self) {
        if let Err(error) = self.0.unlock() {
            tracing::warn!(%error, "failed to unlock the store");
        }
    }
}

fn lock(dir: &Path) -> Result<DirLock, OpenError> {
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
    Ok(DirLock(file))
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
