//! Builds what is missing, once for all processes of this user.
//!
//! A program is built under another name and renamed when it is complete, so
//! an interrupted build leaves nothing that a test would run. One process
//! builds at a time; its lock ends with it, however it ends.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use thiserror::Error;

use crate::go::{Go, GoError};
use crate::locate::Places;
use crate::program::Program;

/// What a build is called until it is complete.
const UNFINISHED_PREFIX: &str = ".building-";

#[derive(Debug, Error)]
pub enum BuildError {
    #[error("failed to prepare {}", path.display())]
    Folder {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("failed to build {program}")]
    Go {
        program: Program,
        #[source]
        source: GoError,
    },
    #[error("failed to put {} into its place", path.display())]
    Rename {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// What had to be done.
#[derive(PartialEq, Eq, Debug)]
pub struct Outcome {
    pub built: Vec<Program>,
}

/// Makes every program of `programs` findable by `places`. `modules` is
/// `tests/assets`; `say` hears a line for each step and while one takes long.
pub fn provide(
    places: &Places,
    programs: &[Program],
    modules: &Path,
    say: &mut dyn FnMut(&str),
) -> Result<Outcome, BuildError> {
    let is_missing = |program: &&Program| places.find(**program).is_err();
    let mut outcome = Outcome { built: Vec::new() };
    if !programs.iter().any(|program| is_missing(&program)) {
        return Ok(outcome);
    }
    let folder = places.built();
    let _lock = lock(folder, say).map_err(|source| BuildError::Folder { path: folder.to_owned(), source })?;
    // Asked again: whoever held the lock may have built them.
    for program in programs.iter().filter(is_missing) {
        build(*program, folder, modules, say)?;
        outcome.built.push(*program);
    }
    Ok(outcome)
}

/// Makes the folder, waits until nobody else builds in it, and removes what
/// an interrupted build left there.
fn lock(folder: &Path, say: &mut dyn FnMut(&str)) -> io::Result<File> {
    fs::create_dir_all(folder)?;
    let lock = File::create(folder.join(".lock"))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            say(&format!("waiting for another process that builds in {} …", folder.display()));
            lock.lock()?;
        }
        Err(TryLockError::Error(error)) => return Err(error),
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED_PREFIX) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(lock)
}

fn build(program: Program, folder: &Path, modules: &Path, say: &mut dyn FnMut(&str)) -> Result<(), BuildError> {
    let failed = |source| BuildError::Go { program, source };
    let started = Instant::now();
    let minutes = program.build_minutes();
    say(&format!("building {program} with Go (once, about {minutes} min on two cores) …"));
    let unfinished = folder.join(format!("{UNFINISHED_PREFIX}{}", program.name()));
    let go = Go::find().map_err(failed)?;
    go.build(program, &modules.join(program.module_folder()), &unfinished, say).map_err(failed)?;
    let path = folder.join(program.name());
    File::open(&unfinished)
        .and_then(|file| file.sync_all())
        .and_then(|()| fs::rename(&unfinished, &path))
        .map_err(|source| BuildError::Rename { path: path.clone(), source })?;
    say(&format!("built {program} in {}", seconds(started.elapsed())));
    Ok(())
}

pub(crate) fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_builds_at_a_time_and_clears_what_was_left() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("not/yet/there");
        let first = lock(&folder, &mut |_| {}).unwrap();
        fs::write(folder.join(".building-etcd"), "half").unwrap();
        fs::write(folder.join("etcd"), "whole").unwrap();
        let (heard, hears) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| lock(&folder, &mut |line| heard.send(line.to_owned()).unwrap()).unwrap());
            assert!(hears.recv().unwrap().starts_with("waiting for another process"));
            assert!(folder.join(".building-etcd").exists(), "the second has not begun");
            drop(first);
            let _second = waiting.join().unwrap();
        });
        assert!(!folder.join(".building-etcd").exists());
        assert!(folder.join("etcd").exists());
    }
}
