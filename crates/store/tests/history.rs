//! Concurrent writers, watchers that disconnect at random and resume, readers,
//! and a window that moves, all at once; then the history is checked.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use tidegate_store::{Expect, Op, Options, Start, Store, Transaction, WatchError, WindowLimits};
use tidegate_testkit::history::{Commit, History, Stream, Told, Written};
use tidegate_testkit::objects::{key, labels, select, widget, write};
use tidegate_testkit::store_contract::{Fixture, open_embedded, open_strict};

const WRITERS: u64 = 6;
const COMMITS_PER_WRITER: usize = 150;
/// Much longer than a read takes.
const PATIENCE: Duration = Duration::from_secs(120);
const SELECTORS: [&str; 5] = ["", "x=1", "x=2,y!=1", "y", "none=1"];

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn holds_on_the_embedded_engine() {
    run(&open_embedded).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn holds_on_the_strict_engine() {
    run(&open_strict).await;
}

async fn run(open: &dyn Fn(Options) -> Fixture) {
    let seed = std::env::var("TIDEGATE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(rand::random);
    println!("seed: TIDEGATE_SEED={seed}");
    // Large enough for a watcher that was away for a moment, small enough that
    // segments are dropped during the run.
    let window = WindowLimits { events: 1200, ..WindowLimits::default() };
    let Fixture { store, guard: _guard } = open(Options {
        window,
        segments: 8,
        maintenance_interval: Duration::from_millis(3),
        bookmark_interval: Duration::from_millis(2),
        live_events_max: 64,
        ..Options::default()
    });
    let is_done = Arc::new(AtomicBool::new(false));
    let readers = [tokio::spawn(read_pairs(store.clone(), is_done.clone()))];
    let watchers = (0..15).map(|number| tokio::spawn(watch(store.clone(), seed + number, is_done.clone())));
    let watchers: Vec<_> = watchers.collect();
    let writers: Vec<_> = (0..WRITERS).map(|writer| tokio::spawn(write_some(store.clone(), seed, writer))).collect();

    let mut history = History::default();
    for writer in writers {
        history.commits.extend(writer.await.unwrap());
    }
    is_done.store(true, Ordering::SeqCst);
    for watcher in watchers {
        history.streams.extend(watcher.await.unwrap());
    }
    for reader in readers {
        reader.await.unwrap();
    }
    assert!(store.stats().segments_dropped > 0, "the window did not move");
    history.check().unwrap_or_else(|violations| panic!("seed {seed}:\n{violations}"));
}

/// Transactions of one to four objects; every one sets both halves of a pair
/// to the same number, so that a torn one is seen.
async fn write_some(store: Store, seed: u64, writer: u64) -> Vec<Commit> {
    let mut random = StdRng::seed_from_u64(seed ^ (writer << 32));
    let mut commits = Vec::new();
    for number in 0..COMMITS_PER_WRITER {
        let mut writes = Vec::new();
        let mut written = Vec::new();
        for path in ["pair/left", "pair/right"] {
            writes.push(write(path, Expect::Any, Op::Put(widget(path, "", json!({"n": [writer, number]})))));
            written.push(Written { key: key(path), labels: Some(labels("")) });
        }
        for _ in 0..random.random_range(0..3) {
            let path = format!("a/{}", random.random_range(0..12));
            let text = ["", "x=1", "x=2", "x=2,y=1", "y=2"][random.random_range(0..5)];
            let is_delete = random.random_ratio(1, 5);
            let op = if is_delete { Op::Delete } else { Op::Put(widget(&path, text, json!({}))) };
            writes.push(write(&path, Expect::Any, op));
            written.push(Written { key: key(&path), labels: (!is_delete).then(|| labels(text)) });
        }
        let committed = store.commit(Transaction { writes, ..Transaction::default() }).await.unwrap();
        let minted = committed.versions.into_iter().zip(written);
        commits.push(Commit { writes: minted.filter_map(|(version, written)| Some((version?, written))).collect() });
    }
    commits
}

/// Reads, goes away at random, and comes back from its cursor; begins again
/// where it was away for too long. Ends when it has seen all that was written.
async fn watch(store: Store, seed: u64, is_done: Arc<AtomicBool>) -> Vec<Stream> {
    let mut random = StdRng::seed_from_u64(seed);
    let selector = SELECTORS[random.random_range(0..SELECTORS.len())];
    let begin = |after| Stream::new(format!("{selector:?} of seed {seed}"), select(selector), after);
    let mut streams = Vec::new();
    let mut stream = begin(store.view().version());
    loop {
        let outcome = connect(&store, selector, &mut random, &mut stream, &is_done).await;
        match outcome {
            Ok(Connection::Left) => {}
            Ok(Connection::Done) => break,
            Err(WatchError::Expired { oldest, .. }) => {
                streams.push(std::mem::replace(&mut stream, begin(oldest)));
            }
            Err(other) => panic!("{other}"),
        }
    }
    streams.push(stream);
    streams
}

enum Connection {
    Left,
    Done,
}

async fn connect(
    store: &Store,
    selector: &str,
    random: &mut StdRng,
    stream: &mut Stream,
    is_done: &AtomicBool,
) -> Result<Connection, WatchError> {
    stream.told.push(Told::Resumed(stream.until));
    let mut watcher = store.watch(select(selector), Start::After(stream.until))?;
    for _ in 0..random.random_range(1..20) {
        let is_over = is_done.load(Ordering::SeqCst);
        if is_over && stream.until >= store.view().version() {
            return Ok(Connection::Done);
        }
        // Who leaves before anything was read comes no further, and a busy
        // machine needs longer than a moment to read: the last one waits.
        let moment = Duration::from_micros(random.random_range(0..3000));
        let wait = tokio::time::timeout(if is_over { PATIENCE } else { moment }, watcher.next()).await;
        stream.until = watcher.cursor();
        if let Ok(items) = wait {
            stream.record(&items?);
        }
    }
    Ok(Connection::Left)
}

async fn read_pairs(store: Store, is_done: Arc<AtomicBool>) {
    let mut last = store.view().version();
    while !is_done.load(Ordering::SeqCst) {
        let view = store.view();
        assert!(view.version() >= last, "a later view is older");
        last = view.version();
        let half = |path| view.get(&key(path)).unwrap().map(|o| serde_json::from_slice::<Value>(&o.json).unwrap());
        let (left, right) = (half("pair/left"), half("pair/right"));
        assert_eq!(left.map(|json| json["spec"]["n"].clone()), right.map(|json| json["spec"]["n"].clone()));
        tokio::task::yield_now().await;
    }
}
