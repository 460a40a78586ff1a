//! Commits: versions, expectations, atomicity.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use tidegate_model::{GroupResource, ObjectKey, ResourceVersion};
use tidegate_store::{CommitError, Expect, Op, Options, Rebased, Start, Transaction, WatchItem, Write};

use super::{Fixture, quiet, take};
use crate::objects::{delete, key, put, select, widget, widgets, write};

type Open = dyn Fn(Options) -> Fixture;

pub async fn versions_rise_and_are_stamped(open: &Open) {
    let Fixture { store, guard: _guard } = open(quiet());
    let epoch = store.epoch();
    let first = store.commit(put("a/x", "", json!({"n": 1}))).await.unwrap();
    let second = store.commit(put("a/x", "", json!({"n": 2}))).await.unwrap();
    assert!(epoch < first.version && first.version < second.version);
    assert_eq!(second.versions, [Some(second.version)]);
    let stored = store.view().get(&key("a/x")).unwrap().unwrap();
    let json: Value = serde_json::from_slice(&stored.json).unwrap();
    assert_eq!(json["metadata"]["resourceVersion"], second.version.to_string());
    assert_eq!((stored.version, json["spec"]["n"].as_i64()), (second.version, Some(2)));
    assert_eq!(store.view().version(), second.version);
}

pub async fn expectations(open: &Open) {
    let Fixture { store, guard: _guard } = open(quiet());
    // An object of its own for each case, at `version`.
    type Case = (&'static str, bool, fn(ResourceVersion) -> Expect, bool);
    let cases: [Case; 7] = [
        ("any, absent", false, |_| Expect::Any, true),
        ("any, there", true, |_| Expect::Any, true),
        ("absent, absent", false, |_| Expect::Absent, true),
        ("absent, there", true, |_| Expect::Absent, false),
        ("version, absent", false, Expect::Version, false),
        ("version, there", true, Expect::Version, true),
        ("older version, there", true, |version| Expect::Version(ResourceVersion::from_raw(version.raw() - 1)), false),
    ];
    for (number, (case, exists, expect, holds)) in cases.into_iter().enumerate() {
        let path = format!("a/{number}");
        let seed = put(if exists { &path } else { "a/other" }, "", json!({}));
        let version = store.commit(seed).await.unwrap().version;
        let object = Op::Put(widget(&path, "", json!({})));
        match store.commit(Transaction::one(key(&path), expect(version), object)).await {
            Ok(_) => assert!(holds, "{case}"),
            Err(CommitError::Conflict { index: 0, key: at, expected, current }) => {
                assert!(!holds && at == key(&path) && expected == expect(version), "{case}");
                assert_eq!(current, exists.then_some(version), "{case}");
            }
            Err(other) => panic!("{case}: {other}"),
        }
    }
}

pub async fn a_conflict_leaves_no_trace(open: &Open) {
    let Fixture { store, guard: _guard } = open(quiet());
    let before = store.commit(put("a/x", "", json!({}))).await.unwrap().version;
    let transaction = Transaction {
        writes: vec![
            write("a/new", Expect::Absent, Op::Put(widget("a/new", "", json!({})))),
            write("a/x", Expect::Any, Op::Delete),
            write("a/other", Expect::Version(before), Op::Delete),
        ],
        marks: vec![("m".into(), Some(Bytes::from_static(b"1")))],
    };
    let refused = store.commit(transaction).await.unwrap_err();
    assert!(matches!(refused, CommitError::Conflict { index: 2, current: None, .. }), "{refused}");
    let view = store.view();
    assert_eq!((view.version(), view.mark("m").unwrap()), (before, None));
    assert!(view.get(&key("a/new")).unwrap().is_none() && view.get(&key("a/x")).unwrap().is_some());
    // The next version follows as if nothing had been asked.
    let mut watcher = store.watch(select(""), Start::After(before)).unwrap();
    let next = store.commit(delete("a/x")).await.unwrap().version;
    let items = take(&mut watcher, 1).await;
    assert!(matches!(&items[0], WatchItem::Event { event, .. } if event.version == next));
}

pub async fn deletes_carry_the_last_state(open: &Open) {
    let Fixture { store, guard: _guard } = open(quiet());
    let nothing = store.commit(delete("a/x")).await.unwrap();
    assert_eq!((nothing.version, nothing.versions), (store.epoch(), vec![None]));
    store.commit(put("a/x", "l=1", json!({"n": 5}))).await.unwrap();
    let mut watcher = store.watch(select(""), Start::Now).unwrap();
    let version = store.commit(delete("a/x")).await.unwrap().version;
    let items = take(&mut watcher, 1).await;
    let WatchItem::Event { event, .. } = &items[0] else { panic!("{items:?}") };
    let last: Value = serde_json::from_slice(&event.object).unwrap();
    assert_eq!((event.version, last["spec"]["n"].as_i64()), (version, Some(5)));
    assert_eq!(last["metadata"]["resourceVersion"], version.to_string());
    assert_eq!(event.labels.get("l"), Some("1"));
}

pub async fn rebase_decides_again(open: &Open) {
    let Fixture { store, guard: _guard } = open(quiet());
    let version = store.commit(put("a/x", "", json!({"n": 1}))).await.unwrap().version;
    let stale = Expect::Version(ResourceVersion::from_raw(version.raw() - 1));
    let with = |expect, rebase: fn(Option<i64>) -> Rebased| Transaction {
        writes: vec![Write {
            key: key("a/x"),
            expect,
            op: Op::Put(widget("a/x", "", json!({"n": 100}))),
            rebase: Some(Arc::new(move |current| {
                let json = current.map(|object| serde_json::from_slice::<Value>(&object.json).unwrap());
                rebase(json.and_then(|json| json["spec"]["n"].as_i64()))
            })),
        }],
        marks: Vec::new(),
    };
    let add = |n: Option<i64>| Rebased::Op(Op::Put(widget("a/x", "", json!({"n": n.unwrap() + 1}))));
    let n = || {
        let stored = store.view().get(&key("a/x")).unwrap().unwrap();
        serde_json::from_slice::<Value>(&stored.json).unwrap()["spec"]["n"].as_i64().unwrap()
    };
    let skipped = store.commit(with(stale, |_| Rebased::Skip)).await.unwrap();
    assert_eq!((skipped.versions, n()), (vec![None], 1));
    assert!(store.commit(with(stale, |_| Rebased::Conflict)).await.is_err());
    assert!(store.commit(with(stale, |_| panic!("a writer's mistake"))).await.is_err());
    store.commit(with(stale, add)).await.unwrap();
    assert_eq!(n(), 2);
    // Not asked where the expectation holds.
    store.commit(with(Expect::Any, |_| panic!("asked"))).await.unwrap();
    assert_eq!(n(), 100);
}

pub async fn marks_change_with_objects(open: &Open) {
    let Fixture { store, guard: _guard } = open(quiet());
    let mark = |value: Option<&'static str>| ("git/a".to_string(), value.map(Bytes::from));
    let transaction = Transaction { marks: vec![mark(Some("c1"))], ..put("a/x", "", json!({})) };
    let version = store.commit(transaction).await.unwrap().version;
    assert_eq!(store.view().mark("git/a").unwrap().as_deref(), Some(&b"c1"[..]));
    // A mark alone mints no version.
    let alone = store.commit(Transaction { marks: vec![mark(None)], ..Transaction::default() }).await.unwrap();
    assert_eq!((alone.version, store.view().mark("git/a").unwrap()), (version, None));
}

pub async fn counters_follow(open: &Open) {
    let Fixture { store, guard: _guard } = open(quiet());
    let cluster = ObjectKey::new(widgets(), None, "global");
    let put_cluster = Transaction::one(cluster.clone(), Expect::Any, Op::Put(widget("a/global", "", json!({}))));
    for transaction in [put("a/1", "", json!({})), put("a/2", "", json!({})), put("b/1", "", json!({})), put_cluster] {
        store.commit(transaction).await.unwrap();
    }
    let count = |namespace| store.view().count(&widgets(), namespace).unwrap();
    assert_eq!((count(None), count(Some("a")), count(Some("b"))), (4, 2, 1));
    store.commit(put("a/1", "", json!({"again": true}))).await.unwrap();
    store.commit(delete("a/2")).await.unwrap();
    store.commit(Transaction::one(cluster, Expect::Any, Op::Delete)).await.unwrap();
    assert_eq!((count(None), count(Some("a")), count(Some("c"))), (2, 1, 0));
    let other = GroupResource::new("", "widgets");
    assert_eq!(store.view().count(&other, None).unwrap(), 0);
}

pub async fn refuses_what_it_cannot_hold(open: &Open) {
    let limits = Options { transaction_writes_max: 2, transaction_bytes_max: 2000, ..quiet() };
    let Fixture { store, guard: _guard } = open(limits);
    let three = ["a/1", "a/2", "a/3"].map(|path| write(path, Expect::Any, Op::Delete));
    let many = Transaction { writes: three.into(), ..Transaction::default() };
    assert!(matches!(store.commit(many).await, Err(CommitError::TooLarge { size: 3, limit: 2, .. })));
    let large = put("a/1", "", json!({"text": "x".repeat(2000)}));
    assert!(matches!(store.commit(large).await, Err(CommitError::TooLarge { limit: 2000, .. })));
    let long = "n".repeat(1000);
    for (namespace, name) in
        [(Some("a\0b"), "n"), (Some("a"), "a\0b"), (Some(""), "n"), (Some("a"), ""), (Some("a"), &*long)]
    {
        let key = ObjectKey::new(widgets(), namespace, name);
        let outcome = store.commit(Transaction::one(key, Expect::Any, Op::Delete)).await;
        assert!(matches!(outcome, Err(CommitError::InvalidKey { .. })), "{namespace:?} {name:?}");
    }
    assert_eq!(store.view().version(), store.epoch());
}

/// Writers that race for one version: exactly one of each round wins.
pub async fn transactions_of_one_batch_see_each_other(open: &Open) {
    let Fixture { store, guard: _guard } = open(quiet());
    let mut version = store.commit(put("a/x", "", json!({}))).await.unwrap().version;
    for round in 0..20 {
        let race = (0..8).map(|writer| {
            let object = Op::Put(widget("a/x", "", json!({"round": round, "writer": writer})));
            let transaction = Transaction::one(key("a/x"), Expect::Version(version), object);
            let store = store.clone();
            tokio::spawn(async move { store.commit(transaction).await })
        });
        let mut winners = Vec::new();
        for task in race.collect::<Vec<_>>() {
            winners.extend(task.await.unwrap().ok());
        }
        assert_eq!(winners.len(), 1);
        version = winners[0].version;
    }
}

pub async fn closing_refuses_later_writes(open: &Open) {
    let Fixture { store, guard: _guard } = open(quiet());
    store.commit(put("a/x", "", json!({}))).await.unwrap();
    store.close().await;
    store.close().await;
    assert!(matches!(store.commit(put("a/y", "", json!({}))).await, Err(CommitError::Closed)));
    assert!(store.view().get(&key("a/x")).unwrap().is_some(), "a closed store can still be read");
}
