//! The offline tools, through what they leave behind.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;
use tidegate_model::ResourceVersion;
use tidegate_store::{
    Change, Clock, Engine, OpenError, Options, Restore, Start, Store, StoreError, Table, ToolError, Transaction,
    WatchError, WindowLimits, check, check_engine, compact, export, import,
};
use tidegate_testkit::MemoryEngine;
use tidegate_testkit::objects::{delete, key, put, select, widgets};
use tidegate_testkit::store_contract::{quiet, replay};

/// Some history in several segments, with all kinds of changes and a mark.
async fn fill(store: &Store) {
    for i in 0..30 {
        store.commit(put(&format!("a/{}", i % 7), &format!("n={i}"), json!({"i": i}))).await.unwrap();
    }
    store.commit(delete("a/3")).await.unwrap();
    let marks = vec![("git/x".to_string(), Some(Bytes::from_static(b"\x00commit")))];
    store.commit(Transaction { marks, ..put("b/1", "", json!({"text": "line\nbreak \u{1F30A}"})) }).await.unwrap();
}

fn options() -> Options {
    Options { window: WindowLimits { events: 100, ..WindowLimits::default() }, segments: 10, ..quiet() }
}

async fn store_at(dir: &Path) {
    let store = Store::open(dir, options()).unwrap();
    fill(&store).await;
    store.close().await;
}

fn exported(dir: &Path) -> Vec<u8> {
    let mut stream = Vec::new();
    export(dir, &mut stream, &mut |_| {}).unwrap();
    stream
}

fn import_into(dir: &Path, stream: &[u8], restore: Restore) -> Result<tidegate_store::Imported, ToolError> {
    import(dir, stream, restore, &options(), &mut |_| {})
}

#[tokio::test]
async fn a_moved_store_is_the_same_store() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    store_at(from.path()).await;
    let stream = exported(from.path());
    let imported = import_into(to.path(), &stream, Restore::KeepEpoch).unwrap();
    assert_eq!((imported.objects, imported.events, imported.marks), (7, 32, 1));
    assert_eq!(exported(to.path()), stream);
    assert_eq!(check(to.path(), &mut |_| {}).unwrap().problems, Vec::<String>::new());

    let (old, new) = (Store::open(from.path(), options()).unwrap(), Store::open(to.path(), options()).unwrap());
    assert_eq!((old.epoch(), old.window()), (new.epoch(), new.window()));
    let after = ResourceVersion::from_raw(old.epoch().raw() + 9);
    for selector in ["", "n=12", "n!=12"] {
        assert_eq!(replay(&old, select(selector), after).await, replay(&new, select(selector), after).await);
    }
    assert_eq!(new.view().mark("git/x").unwrap().as_deref(), Some(&b"\x00commit"[..]));
    assert_eq!(new.view().count(&widgets(), Some("a")).unwrap(), 6);
    assert_eq!(new.view().get(&key("b/1")).unwrap(), old.view().get(&key("b/1")).unwrap());
    let next = |store: &Store| store.view().version().next();
    assert_eq!(new.commit(delete("a/0")).await.unwrap().version, next(&old));
}

#[tokio::test]
async fn a_restored_backup_begins_a_new_epoch() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    store_at(from.path()).await;
    let stream = exported(from.path());
    let old = Store::open(from.path(), options()).unwrap();
    let seen = old.commit(put("a/later", "", json!({}))).await.unwrap().version;
    import_into(to.path(), &stream, Restore::NewEpoch).unwrap();
    assert_eq!(check(to.path(), &mut |_| {}).unwrap().problems, Vec::<String>::new());
    let new = Store::open(to.path(), options()).unwrap();
    for cursor in [old.epoch(), old.window().oldest, seen] {
        let refused = new.watch(select(""), Start::After(cursor)).map(|_| ());
        assert!(matches!(refused, Err(WatchError::Expired { .. })), "{cursor} {refused:?}");
    }
    assert_eq!(new.view().scan(&select(""), None).count(), 7);
    assert!(new.commit(delete("a/0")).await.unwrap().version > new.epoch());
}

/// A line is changed, dropped, repeated, moved; the stream ends early.
#[tokio::test]
async fn a_damaged_export_is_refused_and_leaves_nothing() {
    let from = tempfile::tempdir().unwrap();
    store_at(from.path()).await;
    let text = String::from_utf8(exported(from.path())).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let join = |lines: &[&str]| lines.iter().flat_map(|line| [line, "\n"]).collect::<String>().into_bytes();
    let changed = |change: &dyn Fn(&mut Vec<&str>)| {
        let mut lines = lines.clone();
        change(&mut lines);
        join(&lines)
    };
    let flipped = text.replacen("\"i\":5", "\"i\":6", 1);
    for (case, stream) in [
        ("empty", Vec::new()),
        ("foreign", b"hello\n".to_vec()),
        ("flipped", flipped.into_bytes()),
        ("cut in a line", text.as_bytes()[..text.len() / 2].to_vec()),
        ("cut at a line", changed(&|lines| lines.truncate(20))),
        ("without its trailer", changed(&|lines| lines.truncate(lines.len() - 1))),
        ("line dropped", changed(&|lines| drop(lines.drain(3..4)))),
        ("line repeated", changed(&|lines| lines.insert(3, lines[2]))),
        ("lines swapped", changed(&|lines| lines.swap(2, 3))),
        ("header dropped", changed(&|lines| drop(lines.drain(..1)))),
        ("a line after the trailer", changed(&|lines| lines.push(lines[2]))),
        ("a second trailer", changed(&|lines| lines.push(lines[lines.len() - 1]))),
        ("bytes after the trailer", [text.as_bytes(), b"x"].concat()),
    ] {
        let to = tempfile::tempdir().unwrap();
        let refused = import_into(to.path(), &stream, Restore::KeepEpoch).unwrap_err();
        assert!(matches!(refused, ToolError::Damaged { .. }), "{case}: {refused}");
        assert_eq!(std::fs::read_dir(to.path()).unwrap().count(), 0, "{case}");
        assert!(!draft(to.path()).exists(), "{case}");
    }
}

/// Where an import works.
fn draft(dir: &Path) -> PathBuf {
    dir.with_file_name(format!("{}.importing", dir.file_name().unwrap().display()))
}

#[tokio::test]
async fn an_import_that_was_killed_is_no_store() {
    let root = tempfile::tempdir().unwrap();
    let (from, to) = (root.path().join("from"), root.path().join("to"));
    store_at(&from).await;
    let stream = exported(&from);
    // As far as it can get without being done.
    std::fs::create_dir(draft(&to)).unwrap();
    std::fs::create_dir_all(draft(&to).join("engine/half")).unwrap();
    std::fs::write(draft(&to).join("acknowledged"), "9007199254740000\n").unwrap();
    let refused = Store::open(&to, options()).map(drop).unwrap_err();
    assert!(matches!(refused, OpenError::Damaged { .. }), "{refused}");
    import_into(&to, &stream, Restore::KeepEpoch).unwrap();
    assert_eq!(exported(&to), stream);
    assert!(!draft(&to).exists());
}

#[tokio::test]
async fn a_restore_does_not_trust_the_clock() {
    let root = tempfile::tempdir().unwrap();
    let from = root.path().join("from");
    store_at(&from).await;
    let stream = exported(&from);
    let old = Store::open(&from, options()).unwrap();
    let seen = old.commit(put("a/later", "", json!({}))).await.unwrap().version;
    let restore = |name: &str, clock_ms: u64| {
        let options = Options { clock: Clock::new(move || clock_ms), ..options() };
        import(&root.path().join(name), &stream[..], Restore::NewEpoch, &options, &mut |_| {})
    };
    let restored = restore("behind", 1_000_000_000_000).unwrap();
    assert!(restored.newest > seen, "{} is not above {seen}", restored.newest);
    for (name, clock_ms) in [("too early", 0), ("too late", 9_000_000_000_000), ("nonsense", u64::MAX)] {
        let refused = restore(name, clock_ms).unwrap_err();
        assert!(matches!(refused, ToolError::Storage(StoreError::OffLine { .. })), "{name}: {refused}");
        assert!(!root.path().join(name).exists(), "{name}");
    }
}

#[tokio::test]
async fn tools_respect_what_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let nowhere = dir.path().join("nowhere");
    assert!(matches!(check(&nowhere, &mut |_| {}), Err(ToolError::Open(OpenError::Missing { .. }))));
    assert!(!nowhere.exists());
    store_at(dir.path()).await;
    let stream = exported(dir.path());
    assert!(matches!(import_into(dir.path(), &stream, Restore::KeepEpoch), Err(ToolError::NotEmpty(_))));
    let store = Store::open(dir.path(), options()).unwrap();
    assert!(matches!(check(dir.path(), &mut |_| {}), Err(ToolError::Open(OpenError::Locked { .. }))));
    drop(store);
    compact(dir.path(), &mut |_| {}).unwrap();
    assert_eq!(exported(dir.path()), stream);
}

/// Each kind of row, spoiled: the check names it.
#[tokio::test]
async fn check_finds_what_does_not_fit() {
    let spoil = |table, row: &[u8], value: Option<&[u8]>| Change {
        table,
        key: Bytes::copy_from_slice(row),
        value: value.map(Bytes::copy_from_slice),
    };
    let object = b"test.tidegate.dev\0widgets\0a\x001";
    let counter = b"c/test.tidegate.dev\0widgets\0";
    let event = |offset: u64| ResourceVersion::from_raw((1_763_240_000 << 20) + offset).raw().to_be_bytes();
    for (case, change, problem) in [
        ("nothing", None, ""),
        ("object garbled", Some(spoil(Table::Objects, object, Some(b"\x01junk"))), "too short"),
        ("object gone", Some(spoil(Table::Objects, object, None)), "nothing deleted it"),
        ("counter wrong", Some(spoil(Table::Meta, counter, Some(&9u64.to_be_bytes()))), "is not 7"),
        ("counter gone", Some(spoil(Table::Meta, counter, None)), "is missing"),
        ("event gone", Some(spoil(Table::Log(1), &event(5), None)), "the log goes from"),
        ("event garbled", Some(spoil(Table::Log(1), &event(5), Some(b"\x09"))), "unknown format"),
    ] {
        let engine = Arc::new(MemoryEngine::default());
        let clock = Clock::new(|| 1_763_240_000_000);
        let store = Store::with_engine(engine.clone(), Options { clock, ..options() }).unwrap();
        fill(&store).await;
        let newest = store.view().version();
        drop(store);
        if let Some(change) = change {
            engine.unseal();
            engine.write(vec![change], newest).unwrap();
        }
        let report = check_engine(&*engine, &mut |_| {}).unwrap();
        assert_eq!(report.problem_count == 0, problem.is_empty(), "{case}: {report:?}");
        assert!(report.problems.join("\n").contains(problem), "{case}: {report:?}");
    }
}
