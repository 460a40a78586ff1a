//! A watcher that stops reading while much happens: nobody waits for it, and
//! it misses nothing.

use serde_json::json;
use tidegate_store::{Options, Start, Store, Transaction, WatchItem};
use tidegate_testkit::objects::{put, select};
use tidegate_testkit::store_contract::NO_BOOKMARKS;

const EVENTS: u64 = 100_000;
const EVENTS_PER_COMMIT: u64 = 500;

#[tokio::test]
async fn catches_up_from_the_log_and_goes_live() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Options { bookmark_interval: NO_BOOKMARKS, ..Options::default() }).unwrap();
    let mut slow = store.watch(select(""), Start::Now).unwrap();
    let mut narrow = store.watch(select("mark=1"), Start::Now).unwrap();
    for number in (0..EVENTS).step_by(EVENTS_PER_COMMIT as usize) {
        let labels = if number == 50_000 { "mark=1" } else { "" };
        let puts = (0..EVENTS_PER_COMMIT).map(|i| put(&format!("a/{i}"), labels, json!({"n": number + i})));
        let writes = puts.flat_map(|transaction| transaction.writes).collect();
        store.commit(Transaction { writes, ..Transaction::default() }).await.unwrap();
    }
    let mut last = store.epoch();
    let mut seen = 0;
    let mut was_lagging = false;
    while seen < EVENTS {
        for item in slow.next().await.unwrap() {
            let WatchItem::Event { event, .. } = item else { panic!("{item:?}") };
            assert_eq!(event.version, last.next());
            last = event.version;
            seen += 1;
        }
        was_lagging |= store.stats().watchers_lagging > 0;
    }
    assert!(was_lagging && last == store.view().version());
    // What matched came and went: both events, each once.
    let mut narrow_seen = 0;
    while narrow_seen < 2 * EVENTS_PER_COMMIT {
        narrow_seen += narrow.next().await.unwrap().len() as u64;
    }
    let version = store.commit(put("a/live", "mark=1", json!({}))).await.unwrap().version;
    for watcher in [&mut slow, &mut narrow] {
        let items = watcher.next().await.unwrap();
        assert!(matches!(&items[..], [WatchItem::Event { event, .. }] if event.version == version), "{items:?}");
    }
    assert_eq!(store.stats().watchers_lagging, 0, "both are live again");
}
