//! Watches: starts, order, filters, bookmarks, the window.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use serde_json::json;
use tidegate_model::{EventType, ResourceVersion};
use tidegate_store::{
    Clock, Expect, Op, Options, Selection, Start, Store, Transaction, WatchError, WatchItem, WindowLimits,
};

use super::{Fixture, describe, quiet, replay, take};
use crate::objects::{delete, key, put, select, widget, widgets, write};

type Open = dyn Fn(Options) -> Fixture;

fn described(items: &[WatchItem]) -> Vec<String> {
    items.iter().map(describe).collect()
}

pub async fn initial_then_changes(open: &Open) {
    let Fixture { store, guard: _guard } = open(quiet());
    for path in ["a/1", "b/1", "a/2"] {
        store.commit(put(path, "", json!({}))).await.unwrap();
    }
    store.commit(put("a/3", "hidden=1", json!({}))).await.unwrap();
    let listed_at = store.view().version();
    let mut watcher = store.watch(select("!hidden"), Start::Initial).unwrap();
    // Committed before the first read, and still after the list.
    store.commit(delete("a/1")).await.unwrap();
    let items = take(&mut watcher, 5).await;
    assert_eq!(described(&items), ["ADDED a/1", "ADDED a/2", "ADDED b/1", "INITIAL END", "DELETED a/1"]);
    assert!(matches!(items[3], WatchItem::Bookmark { version, .. } if version == listed_at));
}

pub async fn resumes_exactly(open: &Open) {
    let Fixture { store, guard: _guard } = open(quiet());
    let mut versions = vec![store.epoch()];
    for i in 0..20 {
        versions.push(store.commit(put(&format!("a/{i}"), "", json!({}))).await.unwrap().version);
    }
    for (seen, after) in versions.iter().enumerate() {
        let events = replay(&store, select(""), *after).await;
        let rest: Vec<_> = versions[seen + 1..].iter().map(|version| (EventType::Added, *version)).collect();
        assert_eq!(events, rest);
    }
}

pub async fn who_was_behind_learns_that_it_is_not(open: &Open) {
    let Fixture { store, guard: _guard } = open(quiet());
    for path in ["a/1", "b/1", "b/2"] {
        store.commit(put(path, "", json!({}))).await.unwrap();
    }
    let newest = store.view().version();
    let of_a = Selection { namespace: Some("a".into()), ..select("") };
    let mut watcher = store.watch(of_a, Start::After(store.epoch())).unwrap();
    let items = take(&mut watcher, 2).await;
    assert_eq!(items.iter().map(describe).collect::<Vec<_>>(), ["ADDED a/1", "BOOKMARK"]);
    assert!(matches!(items[1], WatchItem::Bookmark { version, .. } if version == newest), "{items:?}");
}

pub async fn stale_future_and_foreign_cursors(open: &Open) {
    let Fixture { store, guard: _guard } = open(quiet());
    let newest = store.commit(put("a/1", "", json!({}))).await.unwrap().version;
    let epoch = store.epoch();
    let at = |raw: u64| store.watch(select(""), Start::After(ResourceVersion::from_raw(raw))).map(|_| ());
    assert!(at(epoch.raw()).is_ok() && at(newest.raw()).is_ok());
    let future = at(newest.raw() + 1);
    assert!(matches!(future, Err(WatchError::Future { current }) if current == newest), "{future:?}");
    // An older line is below this one, a younger one above it.
    for (raw, is_stale) in [(epoch.raw() - 1, true), (epoch.raw() - (1 << 40), true), (epoch.raw() + (1 << 40), false)]
    {
        match at(raw) {
            Err(WatchError::Expired { oldest, current }) => assert!(is_stale && (oldest, current) == (epoch, newest)),
            Err(WatchError::Future { .. }) => assert!(!is_stale),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(store.stats().watches_expired, 2);
}

pub async fn transitions_are_the_same_live_and_replayed(open: &Open) {
    use EventType::{Added, Deleted, Modified};
    // Each step: the object's labels, or none for a delete; then what a
    // watcher of the selector sees.
    let steps = [Some("x=1"), Some("x=1,y=1"), Some("x=2"), Some("y=1"), Some("x=1"), None, Some("x=2"), None];
    for (selector, seen) in [
        ("", vec![Added, Modified, Modified, Modified, Modified, Deleted, Added, Deleted]),
        ("x=1", vec![Added, Modified, Deleted, Added, Deleted]),
        ("x", vec![Added, Modified, Modified, Deleted, Added, Deleted, Added, Deleted]),
        ("y", vec![Added, Deleted, Added, Deleted]),
        ("!y", vec![Added, Deleted, Added, Deleted, Added, Deleted, Added, Deleted]),
        ("x=1,y!=1", vec![Added, Deleted, Added, Deleted]),
        ("x=3", vec![]),
    ] {
        let Fixture { store, guard: _guard } = open(quiet());
        let mut live = store.watch(select(selector), Start::Now).unwrap();
        for labels in steps {
            let transaction = labels.map_or_else(|| delete("a/1"), |labels| put("a/1", labels, json!({})));
            store.commit(transaction).await.unwrap();
        }
        let kinds = |(kind, _)| kind;
        let replayed: Vec<_> = replay(&store, select(selector), store.epoch()).await.into_iter().map(kinds).collect();
        assert_eq!(replayed, seen, "{selector} replayed");
        let live: Vec<_> = take(&mut live, seen.len()).await;
        let live = live.iter().map(|item| if let WatchItem::Event { kind, .. } = item { *kind } else { panic!() });
        assert_eq!(live.collect::<Vec<_>>(), seen, "{selector} live");
    }
}

pub async fn bookmarks_reach_idle_and_filtered(open: &Open) {
    let Fixture { store, guard: _guard } = open(Options { bookmark_interval: Duration::from_millis(5), ..quiet() });
    let other = Selection::all(tidegate_model::GroupResource::new("", "others"));
    let idle = store.watch(other, Start::Now).unwrap();
    let filtered = store.watch(select("x=1"), Start::Now).unwrap();
    let late = store.watch(select("x=1"), Start::After(store.epoch())).unwrap();
    let newest = store.commit(put("a/1", "x=2", json!({}))).await.unwrap().version;
    for mut watcher in [idle, filtered, late] {
        let items = watcher.next().await.unwrap();
        assert!(
            matches!(items[..], [WatchItem::Bookmark { version, initial_end: false }] if version == newest),
            "{items:?}"
        );
        assert_eq!(watcher.cursor(), newest);
        // Nothing moved, so there is nothing to say.
        assert!(tokio::time::timeout(Duration::from_millis(30), watcher.next()).await.is_err());
    }
}

pub async fn a_transaction_arrives_in_order(open: &Open) {
    let Fixture { store, guard: _guard } = open(quiet());
    let mut watcher = store.watch(select(""), Start::Now).unwrap();
    let writes = ["a/3", "a/1", "a/2"].map(|path| write(path, Expect::Any, Op::Put(widget(path, "", json!({})))));
    let twice =
        [write("a/1", Expect::Any, Op::Delete), write("a/1", Expect::Absent, Op::Put(widget("a/1", "", json!({}))))];
    let writes = writes.into_iter().chain(twice).collect();
    let committed = store.commit(Transaction { writes, ..Transaction::default() }).await.unwrap();
    let items = take(&mut watcher, 5).await;
    assert_eq!(described(&items), ["ADDED a/3", "ADDED a/1", "ADDED a/2", "DELETED a/1", "ADDED a/1"]);
    let versions =
        items.iter().map(|item| if let WatchItem::Event { event, .. } = item { Some(event.version) } else { None });
    assert_eq!(versions.collect::<Vec<_>>(), committed.versions);
    assert_eq!(store.view().count(&widgets(), None).unwrap(), 3);
}

pub async fn scopes_and_names(open: &Open) {
    let Fixture { store, guard: _guard } = open(quiet());
    let cases =
        [(None, None, 4), (Some("a"), None, 2), (None, Some("1"), 2), (Some("b"), Some("2"), 1), (Some("c"), None, 0)];
    let not_1 = || Selection { fields: "metadata.name!=1".parse().unwrap(), ..Selection::all(widgets()) };
    let mut others = store.watch(not_1(), Start::Now).unwrap();
    let selection = |namespace: Option<&str>, name: Option<&str>| Selection {
        namespace: namespace.map(Into::into),
        name: name.map(Into::into),
        ..Selection::all(widgets())
    };
    let watchers = cases.map(|(namespace, name, _)| store.watch(selection(namespace, name), Start::Now).unwrap());
    for path in ["a/1", "a/2", "b/1", "b/2"] {
        store.commit(put(path, "", json!({}))).await.unwrap();
    }
    assert_eq!(described(&take(&mut others, 2).await), ["ADDED a/2", "ADDED b/2"]);
    assert_eq!(replay(&store, not_1(), store.epoch()).await.len(), 2);
    for ((namespace, name, count), mut watcher) in cases.into_iter().zip(watchers) {
        take(&mut watcher, count).await;
        assert_eq!(replay(&store, selection(namespace, name), store.epoch()).await.len(), count);
    }
}

pub async fn channels_go_with_their_watchers(open: &Open) {
    let Fixture { store, guard: _guard } = open(quiet());
    let watchers: Vec<_> =
        ["", "", "x=1", "x=1,y", "x=2", "x"].map(|s| store.watch(select(s), Start::Now).unwrap()).into();
    // "" and "x" share one, "x=1" and "x=1,y" another.
    assert_eq!((store.stats().channels, store.stats().watchers), (3, 6));
    drop(watchers);
    assert_eq!((store.stats().channels, store.stats().watchers), (0, 0));
}

pub async fn closing_ends_watchers_after_the_last_event(open: &Open) {
    let Fixture { store, guard: _guard } = open(quiet());
    let mut waiting = store.watch(select(""), Start::Now).unwrap();
    let mut late = store.watch(select(""), Start::Now).unwrap();
    let task = tokio::spawn(async move {
        let items = waiting.next().await.unwrap();
        (items.len(), waiting.next().await.unwrap_err())
    });
    store.commit(put("a/1", "", json!({}))).await.unwrap();
    store.close().await;
    assert!(matches!(task.await.unwrap(), (1, WatchError::Closed)));
    assert_eq!(take(&mut late, 1).await.len(), 1);
    assert!(matches!(late.next().await, Err(WatchError::Closed)));
}

pub async fn dropping_a_wait_loses_nothing(open: &Open) {
    let Fixture { store, guard: _guard } = open(quiet());
    let mut watcher = store.watch(select(""), Start::Initial).unwrap();
    let mut seen = 0;
    for i in 0..50 {
        store.commit(put(&format!("a/{i}"), "", json!({}))).await.unwrap();
        // Polled once or for a moment, then dropped, wherever it was.
        let wait = tokio::time::timeout(Duration::from_micros(i * 10), watcher.next());
        let items = wait.await.map_or(Vec::new(), Result::unwrap);
        seen += items.iter().filter(|item| matches!(item, WatchItem::Event { .. })).count();
    }
    while seen < 50 {
        let items = watcher.next().await.unwrap();
        seen += items.iter().filter(|item| matches!(item, WatchItem::Event { .. })).count();
    }
    assert_eq!(seen, 50);
}

/// A window of few events: it moves, old cursors expire, others go on.
pub async fn the_window_moves_on(open: &Open) {
    let window = WindowLimits { events: 40, ..WindowLimits::default() };
    let options = Options { window, segments: 4, maintenance_interval: Duration::from_millis(2), ..quiet() };
    let Fixture { store, guard: _guard } = open(options);
    let mut asleep = store.watch(select("none=1"), Start::Now).unwrap();
    for i in 0..200 {
        store.commit(put("a/1", "", json!({"i": i}))).await.unwrap();
    }
    until(&store, |store| store.window().events <= 40).await;
    let window = store.window();
    assert!(window.events >= 30 && window.oldest > store.epoch(), "{window:?}");
    let expired = store.watch(select(""), Start::After(store.epoch())).map(|_| ());
    assert!(matches!(expired, Err(WatchError::Expired { oldest, .. }) if oldest == window.oldest));
    assert_eq!(replay(&store, select(""), window.oldest).await.len() as u64, window.events);
    // One that read nothing, because nothing was for it, has missed nothing.
    let wait = tokio::time::timeout(Duration::from_millis(20), asleep.next()).await;
    assert!(wait.is_err() && asleep.cursor() == window.newest, "{wait:?}");
}

/// By age alone: nobody writes, and yet every event leaves; numbers go on
/// where they were, and a cursor at the end missed nothing.
pub async fn the_window_ends_without_writes(open: &Open) {
    let now_ms = Arc::new(AtomicU64::new(1_763_240_000_000));
    let clock = now_ms.clone();
    let options = Options {
        window: WindowLimits { age: Duration::from_secs(60), ..WindowLimits::default() },
        maintenance_interval: Duration::from_millis(1),
        clock: Clock::new(move || clock.load(Relaxed)),
        ..quiet()
    };
    let Fixture { store, guard: _guard } = open(options);
    let mut live = store.watch(select(""), Start::Now).unwrap();
    let first = store.commit(put("a/1", "", json!({}))).await.unwrap().version;
    for round in 1..4 {
        let newest = store.commit(put("a/1", "", json!({"round": round}))).await.unwrap().version;
        assert!(newest > first && store.window().events > 0);
        now_ms.fetch_add(60_001, Relaxed);
        until(&store, |store| store.window().events == 0).await;
        assert_eq!((store.window().oldest, store.window().newest), (newest, newest));
        let expired = store.watch(select(""), Start::After(first)).map(|_| ());
        assert!(matches!(expired, Err(WatchError::Expired { oldest, .. }) if oldest == newest), "{expired:?}");
        assert!(replay(&store, select(""), newest).await.is_empty());
        // It was there all the time, and the object still is.
        take(&mut live, if round == 1 { 2 } else { 1 }).await;
        assert_eq!(store.view().get(&key("a/1")).unwrap().unwrap().version, newest);
    }
}

pub async fn watchers_are_limited(open: &Open) {
    let Fixture { store, guard: _guard } = open(Options { watchers_max: 2, ..quiet() });
    let watch = || store.watch(select(""), Start::Now);
    let (_first, second) = (watch().unwrap(), watch().unwrap());
    assert!(matches!(watch(), Err(WatchError::TooMany { limit: 2 })));
    drop(second);
    assert!(watch().is_ok());
}

/// Waits for a state that the background brings about.
pub async fn until(store: &Store, is_so: impl Fn(&Store) -> bool) {
    while !is_so(store) {
        tokio::task::yield_now().await;
    }
}
