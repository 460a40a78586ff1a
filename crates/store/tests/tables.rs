//! Damaged tables: whatever byte is flipped, the store says so or is none the
//! worse for it. The journal has its own tests in `damage.rs`.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::json;
use tempfile::TempDir;
use tidegate_store::{Options, Store, Transaction, check, compact, export};
use tidegate_testkit::objects::{key, put, select};

const OBJECTS: usize = 60;
/// Of each file; a file has a few blocks of each sort.
const FLIPS_PER_FILE: usize = 8;

/// The files of a closed store without a journal to recover from.
async fn files() -> BTreeMap<PathBuf, Vec<u8>> {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Options::default()).unwrap();
    for batch in 0..OBJECTS / 5 {
        let paths = (batch * 5..batch * 5 + 5).map(|i| format!("a/{i}"));
        let puts = paths.flat_map(|path| put(&path, "x=1", json!({"text": path.repeat(40)})).writes);
        store.commit(Transaction { writes: puts.collect(), ..Transaction::default() }).await.unwrap();
    }
    store.close().await;
    drop(store);
    compact(dir.path(), &mut |_| {}).unwrap();
    let mut found = BTreeMap::new();
    collect(dir.path(), dir.path(), &mut found);
    found
}

fn collect(root: &Path, dir: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            collect(root, &entry.path(), found);
        } else {
            found.insert(entry.path().strip_prefix(root).unwrap().to_owned(), fs::read(entry.path()).unwrap());
        }
    }
}

fn copy_of(files: &BTreeMap<PathBuf, Vec<u8>>) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    for (file, bytes) in files {
        let target = copy.path().join(file);
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::write(target, bytes).unwrap();
    }
    copy
}

/// Everything that the store holds, or the first reason why it cannot be read.
fn content(dir: &Path) -> Result<Vec<u8>, String> {
    let mut exported = Vec::new();
    export(dir, &mut exported, &mut |_| {}).map_err(|error| error.to_string())?;
    Ok(exported)
}

/// As a server reads: each object by its key, then all of them.
fn reads(dir: &Path) -> Result<Vec<String>, String> {
    let store = Store::open(dir, Options::default()).map_err(|error| error.to_string())?;
    let view = store.view();
    let mut found = Vec::new();
    for i in 0..OBJECTS {
        let stored = view.get(&key(&format!("a/{i}"))).map_err(|error| error.to_string())?;
        found.push(format!("{:?}", stored.map(|stored| stored.json)));
    }
    for stored in view.scan(&select(""), None) {
        found.push(format!("{:?}", stored.map_err(|error| error.to_string())?.json));
    }
    Ok(found)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flipped_byte_of_a_table_is_an_error_or_harmless() {
    let seed = rand::random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let files = files().await;
    let intact = copy_of(&files);
    let (whole, rows) = (content(intact.path()).unwrap(), reads(intact.path()).unwrap());
    assert_eq!(rows.len(), 2 * OBJECTS);
    let of_tables: Vec<_> = files.keys().filter(|file| file.starts_with("engine/keyspaces")).collect();
    assert!(of_tables.len() > 6, "{of_tables:?}");

    let mut noticed = 0;
    for file in of_tables {
        for _ in 0..FLIPS_PER_FILE {
            let at = random.random_range(0..files[file].len());
            let mut damaged = files.clone();
            damaged.get_mut(file).unwrap()[at] ^= 1 << random.random_range(0..8);
            let place = format!("byte {at} of {}", file.display());
            let outcome = |read: fn(&Path) -> Result<Vec<u8>, String>| {
                let copy = copy_of(&damaged);
                catch_unwind(|| read(copy.path())).unwrap_or_else(|_| panic!("{place}: a panic"))
            };
            let exported = outcome(content);
            let read = outcome(|dir| reads(dir).map(|rows| rows.join("\n").into_bytes()));
            let checked = outcome(|dir| match check(dir, &mut |_| {}) {
                Ok(report) if report.problem_count == 0 => Ok(Vec::new()),
                Ok(report) => Err(report.problems.join("; ")),
                Err(error) => Err(error.to_string()),
            });
            noticed += usize::from(checked.is_err());
            assert!(exported.as_ref().is_err() || exported.as_ref() == Ok(&whole), "{place}: exported something else");
            assert!(read.is_err() || read == Ok(rows.join("\n").into_bytes()), "{place}: read something else");
            assert!(checked.is_err() || exported.is_ok(), "{place}: a check that finds nothing: {exported:?}");
        }
    }
    assert!(noticed > FLIPS_PER_FILE, "only {noticed} of the flips were noticed: do they hit anything?");
}
