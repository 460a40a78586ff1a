//! What a store is after it was closed, dropped, or opened twice.

use std::sync::Arc;

use serde_json::json;
use tidegate_store::{Clock, Engine, OpenError, Options, Start, Store, WatchItem};
use tidegate_testkit::MemoryEngine;
use tidegate_testkit::objects::{put, select, widgets};

#[tokio::test]
async fn objects_log_and_counters_survive() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Options::default()).unwrap();
    let epoch = store.epoch();
    for i in 0..10 {
        store.commit(put(&format!("a/{i}"), "x=1", json!({"i": i}))).await.unwrap();
    }
    let newest = store.view().version();
    store.close().await;
    drop(store);

    let store = Store::open(dir.path(), Options::default()).unwrap();
    assert_eq!((store.epoch(), store.view().version()), (epoch, newest));
    assert_eq!(store.view().count(&widgets(), Some("a")).unwrap(), 10);
    let items = store.watch(select("x=1"), Start::After(epoch)).unwrap().next().await.unwrap();
    assert_eq!(items.len(), 10);
    assert!(matches!(&items[9], WatchItem::Event { event, .. } if event.version == newest));
}

/// A crash between creating a segment and its first event, or between
/// forgetting one and removing its files.
#[tokio::test]
async fn segments_that_nothing_refers_to_are_removed() {
    let engine = Arc::new(MemoryEngine::default());
    let store = Store::with_engine(engine.clone(), Options::default()).unwrap();
    store.commit(put("a/1", "", json!({}))).await.unwrap();
    drop(store);
    let known = engine.segment_list();
    engine.segment_create(known[0] + 1).unwrap();
    let store = Store::with_engine(engine.clone(), Options::default()).unwrap();
    assert_eq!((engine.segment_list(), store.window().events), (known, 1));
}

/// The line goes on where it was, whatever the clock says.
#[tokio::test]
async fn a_clock_that_goes_back_does_not_reuse_versions() {
    let engine = Arc::new(MemoryEngine::default());
    let at = |ms: u64| Options { clock: Clock::new(move || ms), ..Options::default() };
    let store = Store::with_engine(engine.clone(), at(1_800_000_000_000)).unwrap();
    let before = store.commit(put("a/1", "", json!({}))).await.unwrap().version;
    drop(store);
    let store = Store::with_engine(engine, at(1_700_000_000_000)).unwrap();
    assert_eq!(store.commit(put("a/1", "", json!({}))).await.unwrap().version, before.next());
}

#[tokio::test]
async fn a_second_process_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let _store = Store::open(dir.path(), Options::default()).unwrap();
    let refused = Store::open(dir.path(), Options::default()).err().unwrap();
    assert!(matches!(refused, OpenError::Locked { pid: Some(pid), .. } if pid == std::process::id()), "{refused}");
}
