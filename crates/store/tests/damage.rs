//! Stores whose files were damaged: either nothing acknowledged is missing, or
//! they are refused with what to do, and left as they were.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::json;
use tempfile::TempDir;
use tidegate_model::ResourceVersion;
use tidegate_store::{OnLoss, OpenError, Options, Start, Store, Transaction, WatchError};
use tidegate_testkit::objects::{key, put, select, widgets};

const OBJECTS: usize = 40;

/// A closed store with some writes, and the newest version.
async fn store_at(dir: &Path) -> ResourceVersion {
    let store = Store::open(dir, Options::default()).unwrap();
    for batch in 0..OBJECTS / 5 {
        let paths = (0..5).map(|i| format!("a/{batch}{i}"));
        let puts = paths.flat_map(|path| put(&path, "x=1", json!({"text": "x".repeat(50)})).writes);
        store.commit(Transaction { writes: puts.collect(), ..Transaction::default() }).await.unwrap();
    }
    let newest = store.view().version();
    store.close().await;
    drop(store);
    // Opening gives back the journal's preallocated space: small files.
    open(dir).unwrap().close().await;
    newest
}

fn open(dir: &Path) -> Result<Store, OpenError> {
    Store::open(dir, Options::default())
}

fn journal(dir: &Path) -> PathBuf {
    let files = fs::read_dir(dir.join("engine")).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "jnl")).max().unwrap()
}

/// Where the journal's data ends and preallocated zeros begin.
fn journal_end(path: &Path) -> u64 {
    let bytes = fs::read(path).unwrap();
    bytes.iter().rposition(|byte| *byte != 0).unwrap() as u64 + 1
}

fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            files.extend(self::files(&entry.path()));
        } else {
            files.insert(entry.path(), fs::read(entry.path()).unwrap());
        }
    }
    files
}

/// Some files of a store at `dir`, elsewhere.
fn copy_of<'f>(dir: &Path, files: impl Iterator<Item = (&'f PathBuf, &'f Vec<u8>)>) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    for (file, bytes) in files {
        let target = copy.path().join(file.strip_prefix(dir).unwrap());
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::write(target, bytes).unwrap();
    }
    copy
}

fn write_at(path: &Path, offset: u64, bytes: &[u8]) {
    OpenOptions::new().write(true).open(path).unwrap().write_all_at(bytes, offset).unwrap();
}

/// As a crash leaves it: the noted version is that of what is on disk, and a
/// transaction that was never acknowledged is half there.
#[tokio::test]
async fn an_unfinished_transaction_is_cut() {
    let mut random = StdRng::seed_from_u64(7);
    for _ in 0..12 {
        let dir = tempfile::tempdir().unwrap();
        let newest = store_at(dir.path()).await;
        let path = journal(dir.path());
        let end = journal_end(&path);
        // A prefix of a copy of earlier batches, with its last bytes missing.
        let bytes = fs::read(&path).unwrap();
        let start = end - random.random_range(20..200u64);
        let mut torn = vec![1, 3, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 2];
        torn.extend(&bytes[start as usize..end as usize - 4]);
        torn.truncate(random.random_range(1..torn.len()));
        write_at(&path, end, &torn);
        let store = open(dir.path()).unwrap();
        assert_eq!(store.view().version(), newest);
        assert_eq!(store.view().count(&widgets(), Some("a")).unwrap(), OBJECTS as u64);
        // And it goes on from there.
        let next = store.commit(put("a/next", "", json!({}))).await.unwrap().version;
        assert!(next > newest);
        store.close().await;
        drop(store);
        assert_eq!(open(dir.path()).unwrap().view().version(), next);
    }
}

/// The tail is cut below what was acknowledged.
#[tokio::test]
async fn missing_acknowledged_writes_are_refused() {
    let mut random = StdRng::seed_from_u64(11);
    for _ in 0..12 {
        let dir = tempfile::tempdir().unwrap();
        let newest = store_at(dir.path()).await;
        let path = journal(dir.path());
        let end = journal_end(&path);
        let cut = random.random_range(end / 2..end);
        OpenOptions::new().write(true).open(&path).unwrap().set_len(cut).unwrap();
        let before = files(dir.path());
        let refused = open(dir.path()).err().unwrap();
        let text = refused.to_string();
        assert!(text.contains(&newest.to_string()) && text.contains("--accept-loss"), "{text}");
        assert_eq!(files(dir.path()), before, "a refused store was changed");
    }
}

#[tokio::test]
async fn a_flipped_byte_never_passes_unnoticed() {
    let mut random = StdRng::seed_from_u64(13);
    for _ in 0..24 {
        let dir = tempfile::tempdir().unwrap();
        let newest = store_at(dir.path()).await;
        let path = journal(dir.path());
        let at = random.random_range(0..journal_end(&path));
        let old = fs::read(&path).unwrap()[at as usize];
        write_at(&path, at, &[old ^ (1 << random.random_range(0..8))]);
        let before = files(dir.path());
        match open(dir.path()) {
            Err(OpenError::Damaged { .. }) => assert_eq!(files(dir.path()), before, "a refused store was changed"),
            Err(other) => panic!("byte {at}: {other}"),
            Ok(store) => {
                // Harmless only if everything is there all the same: the
                // sequence numbers of batches are not summed.
                assert_eq!(store.view().version(), newest, "byte {at}");
                assert_eq!(store.view().scan(&select(""), None).filter(Result::is_ok).count(), OBJECTS);
            }
        }
    }
}

#[tokio::test]
async fn a_missing_file_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let newest = store_at(dir.path()).await;
    // Tables, not only a journal.
    tidegate_store::compact(dir.path(), &mut |_| {}).unwrap();
    let files = files(dir.path());
    assert!(files.len() > 12, "{files:?}");
    for missing in files.keys() {
        let copy = copy_of(dir.path(), files.iter().filter(|(file, _)| *file != missing));
        match open(copy.path()) {
            Err(OpenError::Damaged { .. } | OpenError::NotAStore { .. }) => {}
            Err(other) => panic!("{missing:?}: {other}"),
            Ok(store) => {
                assert_eq!(store.view().version(), newest, "{missing:?}");
                assert_eq!(store.view().scan(&select(""), None).filter(Result::is_ok).count(), OBJECTS, "{missing:?}");
            }
        }
    }
}

#[tokio::test]
async fn accepting_the_loss_begins_a_new_epoch() {
    let dir = tempfile::tempdir().unwrap();
    let newest = store_at(dir.path()).await;
    let path = journal(dir.path());
    let cut = journal_end(&path) / 2;
    OpenOptions::new().write(true).open(&path).unwrap().set_len(cut).unwrap();
    assert!(open(dir.path()).is_err());
    let store = Store::open(dir.path(), Options { on_loss: OnLoss::NewEpoch, ..Options::default() }).unwrap();
    let kept = store.view().scan(&select(""), None).count();
    assert!(kept > 0 && kept < OBJECTS);
    assert_eq!(store.view().count(&widgets(), None).unwrap(), kept as u64);
    assert!(store.epoch() > newest, "a version that was acknowledged must not come again");
    let old = store.watch(select(""), Start::After(newest)).map(|_| ());
    assert!(matches!(old, Err(WatchError::Expired { .. })), "{old:?}");
    let next = store.commit(put("a/00", "", json!({}))).await.unwrap().version;
    assert!(next > store.epoch() && store.view().get(&key("a/00")).unwrap().unwrap().version == next);
    store.close().await;
    drop(store);
    assert!(open(dir.path()).is_ok(), "accepted once, not for ever");
}

#[tokio::test]
async fn foreign_directories_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("precious"), "text").unwrap();
    assert!(matches!(open(dir.path()), Err(OpenError::NotAStore { .. })));

    let dir = tempfile::tempdir().unwrap();
    store_at(dir.path()).await;
    fs::write(dir.path().join("format"), "tidegate-store 2\n").unwrap();
    let refused = open(dir.path()).err().unwrap();
    assert!(matches!(&refused, OpenError::Format { found, .. } if found == "tidegate-store 2"), "{refused}");
}

/// Wherever a first start dies, the next one begins.
#[tokio::test]
async fn an_unfinished_first_start_is_repeated() {
    for leftovers in [&["lock"][..], &["lock", "format.new"]] {
        let dir = tempfile::tempdir().unwrap();
        for name in leftovers {
            fs::write(dir.path().join(name), "").unwrap();
        }
        assert!(open(dir.path()).is_ok());
    }
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("format"), "tidegate-store 1\n").unwrap();
    fs::create_dir_all(dir.path().join("engine/keyspaces")).unwrap();
    fs::write(dir.path().join("engine/0.jnl"), "").unwrap();
    assert!(open(dir.path()).is_ok());
}
