//! `tidegate store`: work on the store of a server that is not running. The
//! store's own lock sees to that.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufReader, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use tidegate_server::server::STORE_DIR;
use tidegate_store::{Exported, Imported, Options, Restore};

use crate::cli::{StoreArgs, StoreCommand};
use crate::output::unless_gone;
use crate::progress::{Meter, grouped};
use crate::telemetry;

pub fn run(args: &StoreArgs) -> Result<()> {
    telemetry::start_tool();
    let dir = args.data_dir.join(STORE_DIR);
    match &args.command {
        StoreCommand::Check => check(&dir),
        StoreCommand::Compact => compact(&dir),
        StoreCommand::Export { file } => export(&dir, file),
        StoreCommand::Import { file, restore } => {
            let restore = if *restore { Restore::NewEpoch } else { Restore::KeepEpoch };
            import(&args.data_dir, &dir, file, restore)
        }
    }
}

fn check(dir: &Path) -> Result<()> {
    let mut meter = Meter::new("checking");
    let report = tidegate_store::check(dir, &mut |progress| meter.tell(&progress))?;
    drop(meter);
    let read = format!("{} objects and {} events", grouped(report.objects), grouped(report.events));
    if report.problem_count == 0 {
        return Ok(unless_gone(writeln!(io::stdout(), "{read} read: all is well"))?);
    }
    for problem in &report.problems {
        unless_gone(writeln!(io::stdout(), "{problem}"))?;
    }
    bail!(
        "{} problems in {read}\n  next: keep a copy of {}, then restore a backup with `tidegate store import`",
        grouped(report.problem_count),
        dir.display()
    )
}

fn compact(dir: &Path) -> Result<()> {
    let before = bytes_of(dir);
    let mut meter = Meter::new("compacting");
    tidegate_store::compact(dir, &mut |progress| meter.tell(&progress))?;
    drop(meter);
    let after = bytes_of(dir);
    let (b, a) = (kib(before), kib(after));
    if after < before {
        return Ok(unless_gone(writeln!(io::stdout(), "compacted: {b} KiB before, {a} KiB after"))?);
    }
    // The journal keeps what is in the tables now, until it is full.
    let why = "the newest changes are in the journal and in the tables";
    Ok(unless_gone(writeln!(io::stdout(), "nothing to give back: {b} KiB before, {a} KiB after ({why})"))?)
}

/// Of `st_blocks`, whatever the file system's own are.
const BLOCK_BYTES: u64 = 512;

fn kib(bytes: u64) -> String {
    grouped(bytes.div_ceil(1 << 10))
}

/// The disk that the files of a directory take, which is less than their
/// length where they have holes; unreadable ones count as nothing.
fn bytes_of(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(info) if info.is_dir() => bytes_of(&entry.path()),
        Ok(info) => info.blocks() * BLOCK_BYTES,
        Err(_) => 0,
    });
    sizes.sum()
}

fn export(dir: &Path, file: &Path) -> Result<()> {
    let mut meter = Meter::new("exporting");
    let mut tell = |progress| meter.tell(&progress);
    let Exported { objects, events, marks: _ } = if is_standard(file) {
        tidegate_store::export(dir, io::stdout().lock(), &mut tell)?
    } else {
        export_to_file(dir, file, &mut tell)?
    };
    drop(meter);
    // Stdout may be the export itself.
    tell!("exported {} objects and {} events", grouped(objects), grouped(events));
    Ok(())
}

/// Under another name until it is whole and on disk: a file of this name is
/// always a complete export.
fn export_to_file(dir: &Path, file: &Path, tell: &mut dyn FnMut(tidegate_store::Progress)) -> Result<Exported> {
    let partial = partial_name(file);
    let writing = || format!("failed to write {}", partial.display());
    // It holds every object, so it is nobody else's.
    let out =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&partial).with_context(writing)?;
    let exported = tidegate_store::export(dir, &out, tell).inspect_err(|_| {
        let _ = fs::remove_file(&partial);
    })?;
    out.sync_all().with_context(writing)?;
    fs::rename(&partial, file).with_context(|| format!("failed to name the export {}", file.display()))?;
    Ok(exported)
}

fn partial_name(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".partial");
    name.into()
}

fn import(data_dir: &Path, dir: &Path, file: &Path, restore: Restore) -> Result<()> {
    let creating = || format!("failed to create {}", data_dir.display());
    DirBuilder::new().recursive(true).mode(0o700).create(data_dir).with_context(creating)?;
    let mut meter = Meter::new("importing");
    let mut tell = |progress| meter.tell(&progress);
    let options = Options::default();
    let Imported { objects, events, marks: _, newest } = if is_standard(file) {
        tidegate_store::import(dir, io::stdin().lock(), restore, &options, &mut tell)?
    } else {
        let opened = File::open(file).with_context(|| format!("failed to open the export {}", file.display()))?;
        tidegate_store::import(dir, BufReader::new(opened), restore, &options, &mut tell)?
    };
    drop(meter);
    let (objects, events) = (grouped(objects), grouped(events));
    let imported = format!("imported {objects} objects and {events} events; the newest resourceVersion is {newest}");
    Ok(unless_gone(writeln!(io::stdout(), "{imported}"))?)
}

fn is_standard(file: &Path) -> bool {
    file.as_os_str() == "-"
}
