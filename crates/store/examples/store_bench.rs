//! How fast the store is by itself: `cargo run --release -p tidegate-store
//! --example store_bench [DIR]`. Numbers, not a test: nothing here has a limit.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use tidegate_model::{EncodedObject, GroupResource, Object, ObjectKey};
use tidegate_store::{Expect, ListRequest, Op, Options, Selection, Start, Store, Transaction, WatchItem, Write};

const WRITERS: usize = 32;
const SECONDS: u64 = 5;
const OBJECTS: usize = 5_000;
const WATCHERS: usize = 100;
const MILLION: usize = 1_000_000;

fn resource() -> GroupResource {
    GroupResource::new("bench.tidegate.dev", "widgets")
}

fn key(number: usize) -> ObjectKey {
    ObjectKey::new(resource(), Some("default"), &format!("widget-{number:07}"))
}

/// About 1.7 KiB, as in the yardstick.
fn object(number: usize, generation: u64) -> EncodedObject {
    let words: Vec<String> =
        (0..40).map(|i| format!("{:x}-{i}", (number as u64 * 2_654_435_761 + i) ^ generation)).collect();
    let object = Object::from_value(json!({
        "apiVersion": "bench.tidegate.dev/v1", "kind": "Widget",
        "metadata": {"name": format!("widget-{number:07}"), "namespace": "default", "generation": generation,
                     "labels": {"app": "bench", "shard": (number % 64).to_string()}},
        "spec": {"title": "A widget", "words": words, "text": "lorem ipsum dolor sit amet ".repeat(28)},
        "status": {"observedGeneration": generation},
    }));
    EncodedObject::new(&object.unwrap())
}

fn put(number: usize, generation: u64) -> Write {
    Write { key: key(number), expect: Expect::Any, op: Op::Put(object(number, generation)), rebase: None }
}

async fn load(store: &Store, count: usize) {
    for start in (0..count).step_by(1000) {
        let writes = (start..count.min(start + 1000)).map(|number| put(number, 1)).collect();
        store.commit(Transaction { writes, ..Transaction::default() }).await.unwrap();
    }
}

/// Writers that each change one object after the other.
async fn write_for(store: &Store, duration: Duration) -> (usize, Vec<Duration>) {
    let end = Instant::now() + duration;
    let writers = (0..WRITERS).map(|writer| {
        let store = store.clone();
        tokio::spawn(async move {
            let mut took = Vec::new();
            for round in 0.. {
                let started = Instant::now();
                if started >= end {
                    break;
                }
                let number = (writer * 997 + round * 31) % OBJECTS;
                store.commit(Transaction { writes: vec![put(number, round as u64)], marks: vec![] }).await.unwrap();
                took.push(started.elapsed());
            }
            took
        })
    });
    let mut took = Vec::new();
    for writer in writers.collect::<Vec<_>>() {
        took.extend(writer.await.unwrap());
    }
    took.sort();
    (took.len(), took)
}

#[tokio::main]
async fn main() {
    let root = std::env::args().nth(1).unwrap_or_else(|| "store-bench-data".into());
    let root = Path::new(&root);
    std::fs::create_dir_all(root).unwrap();
    println!("object: {} bytes; idle: {} MiB resident", object(1, 1).len(), resident_mib());
    small(&root.join("small")).await;
    million(&root.join("million")).await;
    std::fs::remove_dir_all(root).unwrap();
}

async fn small(dir: &Path) {
    let store = Store::open(dir, Options::default()).unwrap();
    load(&store, OBJECTS).await;
    println!("{OBJECTS} objects loaded: {} MiB resident", resident_mib());

    let (count, took) = write_for(&store, Duration::from_secs(SECONDS)).await;
    let at = |part: f64| took[(took.len() as f64 * part) as usize];
    let per_second = count as u64 / SECONDS;
    println!(
        "{WRITERS} writers: {per_second} commits/s, p50 {:?}, p99 {:?}, max {:?}",
        at(0.5),
        at(0.99),
        took[took.len() - 1]
    );
    let stats = store.stats();
    println!("  {} transactions in {} writes of the engine", stats.transactions, stats.commits);

    let request = ListRequest { selection: Selection::all(resource()), limit: None, bytes_max: None, token: None };
    let started = Instant::now();
    let page = store.list(&request).unwrap();
    println!("list of {}: {:?}", page.items.len(), started.elapsed());
    drop(page);

    let before = store.stats();
    let watchers: Vec<_> = (0..WATCHERS).map(|_| tokio::spawn(drain(store.clone()))).collect();
    let started = Instant::now();
    let (count, _) = write_for(&store, Duration::from_secs(SECONDS)).await;
    let elapsed = started.elapsed().as_secs_f64();
    let stats = store.stats();
    let sent = stats.events_sent - before.events_sent;
    println!(
        "{WATCHERS} watchers: {:.0} events/s delivered at {:.0} commits/s, {} lagging at the end; {} MiB resident",
        sent as f64 / elapsed,
        count as f64 / elapsed,
        stats.watchers_lagging,
        resident_mib()
    );
    store.close().await;
    for watcher in watchers {
        watcher.await.unwrap();
    }
}

async fn drain(store: Store) {
    let mut watcher = store.watch(Selection::all(resource()), Start::Now).unwrap();
    let mut bytes = 0;
    while let Ok(items) = watcher.next().await {
        for item in items {
            if let WatchItem::Event { event, .. } = item {
                bytes += event.memo(1, |event| event.object.clone()).len();
            }
        }
    }
    std::hint::black_box(bytes);
}

async fn million(dir: &Path) {
    let store = Store::open(dir, Options::default()).unwrap();
    let started = Instant::now();
    load(&store, MILLION).await;
    println!("{MILLION} objects loaded in {:?}: {} MiB resident", started.elapsed(), resident_mib());
    store.close().await;
    drop(store);
    let started = Instant::now();
    let store = Store::open(dir, Options::default()).unwrap();
    println!("opened in {:?}: {} MiB resident", started.elapsed(), resident_mib());
    let (count, took) = write_for(&store, Duration::from_secs(SECONDS)).await;
    println!(
        "{} commits/s, p99 {:?}; {} MiB resident",
        count as u64 / SECONDS,
        took[took.len() * 99 / 100],
        resident_mib()
    );
    let started = Instant::now();
    let count = store.view().scan(&Selection::all(resource()), None).filter(Result::is_ok).count();
    println!("scanned {count} in {:?}; {} MiB resident", started.elapsed(), resident_mib());
}

fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) / 1024
}
