//! A disk that fails: nothing half done, nothing shown that is not durable.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tidegate_store::{CommitError, Start, Store};
use tidegate_testkit::MemoryEngine;
use tidegate_testkit::objects::{key, put, select};
use tidegate_testkit::store_contract::{quiet, take};

#[tokio::test]
async fn a_full_disk_stops_writes_and_shows_nothing() {
    let engine = Arc::new(MemoryEngine::default());
    let store = Store::with_engine(engine.clone(), quiet()).unwrap();
    let before = store.commit(put("a/1", "", json!({}))).await.unwrap().version;
    let mut watcher = store.watch(select(""), Start::After(store.epoch())).unwrap();
    engine.fail_writes("no space left on device");

    let writers = (0..8).map(|i| {
        let store = store.clone();
        tokio::spawn(async move { store.commit(put(&format!("a/{i}"), "", json!({}))).await })
    });
    for writer in writers.collect::<Vec<_>>() {
        let refused = writer.await.unwrap().unwrap_err();
        assert!(matches!(&refused, CommitError::Unavailable(reason) if reason.contains("no space")), "{refused}");
    }
    assert!(store.health().unwrap_err().contains("no space left on device"));
    // The disk may be better: what it holds is unknown all the same.
    engine.heal();
    assert!(matches!(store.commit(put("a/2", "", json!({}))).await, Err(CommitError::Unavailable(_))));
    assert_eq!(store.view().version(), before);
    assert!(store.view().get(&key("a/2")).unwrap().is_none());
    take(&mut watcher, 1).await;
    assert!(tokio::time::timeout(Duration::from_millis(20), watcher.next()).await.is_err());
    store.close().await;
    drop((watcher, store));

    // A restart finds what was acknowledged, and goes on above it.
    let store = Store::with_engine(engine, quiet()).unwrap();
    assert_eq!((store.health(), store.view().version()), (Ok(()), before));
    assert!(store.commit(put("a/2", "", json!({}))).await.unwrap().version > before);
}
