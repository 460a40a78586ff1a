//! The real engine when the disk takes no more: the writer is told, the store
//! says why, and nothing that was acknowledged is lost.
//!
//! The disk is a limit on the size of files, which the system enforces, on this
//! test binary, run again with a directory.

#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use tidegate_model::ResourceVersion;
use tidegate_store::{CommitError, Options, Store, check};
use tidegate_testkit::objects::{key, put};
use tidegate_testkit::store_contract::quiet;

const DIR: &str = "TIDEGATE_TEST_FULL_DIR";
const LIMIT: &str = "TIDEGATE_TEST_FULL_LIMIT";
const KEYS: u64 = 50;
/// Far more than fit below any of the limits.
const WRITES_MAX: u64 = 100_000;

/// Small memtables, so that tables are written, too.
fn options() -> Options {
    Options { memtable_bytes: 64 << 10, ..quiet() }
}

#[tokio::test]
async fn what_was_acknowledged_before_the_disk_was_full_is_there() {
    for limit in [70_001, 300_000, 1_234_567] {
        let dir = tempfile::tempdir().unwrap();
        let said = run("the_process_with_a_full_disk", dir.path(), limit);
        let acknowledged = acknowledged(&said);
        assert!(!acknowledged.is_empty(), "{limit}: {said}");
        assert!(said.contains("refused ") && said.contains("went on reading"), "{limit}: {said}");

        let report = check(dir.path(), &mut |_| {}).unwrap();
        assert_eq!(report.problems, Vec::<String>::new(), "{limit}");
        let store = Store::open(dir.path(), options()).unwrap();
        for (path, (version, number)) in &acknowledged {
            let stored = store.view().get(&key(path)).unwrap().unwrap();
            let object: Value = serde_json::from_slice(&stored.json).unwrap();
            // The write that was refused may be there: nobody was told.
            assert!(stored.version >= *version, "{limit}: {path} fell back");
            assert!(stored.version > *version || object["spec"]["n"].as_u64() == Some(*number), "{limit}: {path}");
        }
        assert_eq!(store.health(), Ok(()));
        let newest = store.view().version();
        assert!(store.commit(put("a/next", "", json!({}))).await.unwrap().version > newest);
    }
}

/// A start that finds no room is refused or goes well; either way nothing is
/// lost by it.
#[tokio::test]
async fn a_start_without_room_does_no_harm() {
    for limit in [0, 100, 4_096, 70_001] {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), options()).unwrap();
        let version = store.commit(put("a/0", "", json!({}))).await.unwrap().version;
        store.close().await;
        drop(store);
        let said = run("the_process_that_starts_without_room", dir.path(), limit);
        assert!(said.contains("refused ") || said.contains("opened"), "{limit}: {said}");
        assert!(!said.contains("damaged"), "no backup is needed: {said}");
        let store = Store::open(dir.path(), options()).unwrap();
        assert_eq!(store.view().get(&key("a/0")).unwrap().unwrap().version, version, "{limit}: {said}");
    }
}

/// What the other process said, which must have ended well.
fn run(test: &str, dir: &Path, limit: u64) -> String {
    // Ignored, so that a write beyond the limit is an error and not the end;
    // what a shell ignores stays ignored in what it executes.
    let script = "trap '' XFSZ; exec \"$0\" --exact \"$1\" --nocapture";
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(std::env::current_exe().unwrap()).arg(test);
    let output = command.env(DIR, dir).env(LIMIT, limit.to_string()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

/// Path → the newest version that was acknowledged, and its number.
fn acknowledged(said: &str) -> HashMap<String, (ResourceVersion, u64)> {
    let words = said.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let acks = words.filter_map(|words| match words[..] {
        ["ack", path, version, number] => Some((path.to_owned(), (version.parse().unwrap(), number.parse().unwrap()))),
        _ => None,
    });
    acks.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_process_with_a_full_disk() {
    let (Ok(dir), Ok(limit)) = (std::env::var(DIR), std::env::var(LIMIT)) else { return };
    let store = Store::open(Path::new(&dir), options()).unwrap();
    // Only now: the journal is preallocated beyond it.
    limit_files(&limit);
    println!();
    let refusal = write_until_refused(&store).await;
    println!("refused {refusal}");

    let health = store.health().unwrap_err();
    assert!(matches!(&refusal, CommitError::Unavailable(reason) if *reason == health), "{refusal} / {health}");
    let later = store.commit(put("a/later", "", json!({}))).await.unwrap_err();
    assert!(matches!(&later, CommitError::Unavailable(reason) if *reason == health), "{later} / {health}");
    assert!(store.view().get(&key("a/0")).unwrap().is_some());
    assert!(store.view().get(&key("a/later")).unwrap().is_none());
    store.close().await;
    drop(store);
    println!("went on reading");
}

#[test]
fn the_process_that_starts_without_room() {
    let (Ok(dir), Ok(limit)) = (std::env::var(DIR), std::env::var(LIMIT)) else { return };
    limit_files(&limit);
    println!();
    match Store::open(Path::new(&dir), options()) {
        Ok(_) => println!("opened"),
        Err(error) => println!("refused {error}"),
    }
}

fn limit_files(bytes: &str) {
    let limits = Rlimit { current: Some(bytes.parse().unwrap()), maximum: getrlimit(Resource::Fsize).maximum };
    setrlimit(Resource::Fsize, limits).unwrap();
}

async fn write_until_refused(store: &Store) -> CommitError {
    for number in 0..WRITES_MAX {
        let path = format!("a/{}", number % KEYS);
        let pad = "x".repeat(usize::try_from(number % 700).unwrap());
        match store.commit(put(&path, "", json!({"n": number, "pad": pad}))).await {
            Ok(committed) => println!("ack {path} {} {number}", committed.version),
            Err(refused) => return refused,
        }
    }
    panic!("{WRITES_MAX} writes fit below the limit");
}
