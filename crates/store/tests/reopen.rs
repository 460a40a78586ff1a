//! What a store is after it was closed, dropped, or opened twice.

use serde_json::json;
use tidegate_store::{OpenError, Options, Start, Store, WatchItem};
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

#[tokio::test]
async fn a_second_process_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let _store = Store::open(dir.path(), Options::default()).unwrap();
    let refused = Store::open(dir.path(), Options::default()).err().unwrap();
    assert!(matches!(refused, OpenError::Locked { pid: Some(pid), .. } if pid == std::process::id()), "{refused}");
}
