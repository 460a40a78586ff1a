//! kill -9 in a loop under load: what was acknowledged is there, and a watch
//! that resumes after each death has seen every event once.
//!
//! The process that dies is this test binary, run again with a directory.

#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use tidegate_model::{EventType, ResourceVersion};
use tidegate_store::{Expect, Op, Options, Start, Store, Transaction, WatchItem, WindowLimits, check};
use tidegate_testkit::history::{Commit, History, Stream, Told, Written};
use tidegate_testkit::objects::{select, widget, write};
use tidegate_testkit::store_contract::quiet;

const DIR: &str = "TIDEGATE_TEST_CRASH_DIR";
const CURSOR: &str = "TIDEGATE_TEST_CRASH_CURSOR";
const ROUNDS: usize = 8;
const WRITERS: usize = 8;

/// Small segments, so that rolling over is among what is interrupted.
fn options() -> Options {
    Options { window: WindowLimits { events: 1_000_000, ..WindowLimits::default() }, segments: 10_000, ..quiet() }
}

/// What the dying process said.
#[derive(Default)]
struct Heard {
    /// Version → the number that was written.
    acknowledged: HashMap<ResourceVersion, u64>,
    told: Vec<Told>,
    cursor: Option<ResourceVersion>,
}

#[tokio::test]
async fn nothing_acknowledged_is_lost() {
    let seed = rand::random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let dir = tempfile::tempdir().unwrap();
    let mut heard = Heard::default();
    for _ in 0..ROUNDS {
        run_and_kill(dir.path(), random.random_range(1..400), &mut heard);
    }
    assert!(heard.acknowledged.len() > ROUNDS && heard.told.len() > ROUNDS);

    let report = check(dir.path(), &mut |_| {}).unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
    let store = Store::open(dir.path(), options()).unwrap();
    let mut history = History::default();
    let mut watcher = store.watch(select(""), Start::After(store.epoch())).unwrap();
    while watcher.cursor() < store.view().version() {
        for item in watcher.next().await.unwrap() {
            let WatchItem::Event { event, .. } = item else { continue };
            let object: Value = serde_json::from_slice(&event.object).unwrap();
            if let Some(number) = heard.acknowledged.remove(&event.version) {
                assert_eq!(object["spec"]["n"].as_u64(), Some(number), "{event:?}");
            }
            history.commits.push(Commit { writes: vec![(event.version, Written::of(&event))] });
        }
    }
    assert!(heard.acknowledged.is_empty(), "acknowledged and lost: {:?}", heard.acknowledged);
    let until = heard.cursor.unwrap();
    history.streams.push(Stream { until, told: heard.told, ..Stream::new("resumed", select(""), store.epoch()) });
    history.check().unwrap();
}

/// Runs the other process until it has said so many lines, then kills it.
fn run_and_kill(dir: &Path, lines: usize, heard: &mut Heard) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "the_process_that_dies", "--nocapture"]).env(DIR, dir).stdout(Stdio::piped());
    if let Some(cursor) = heard.cursor {
        command.env(CURSOR, cursor.to_string());
        heard.told.push(Told::Resumed(cursor));
    }
    let mut child = command.spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut count = 0;
    let mut line = String::new();
    // To the end: what it said before it died counts, whole lines of it.
    while output.read_line(&mut line).unwrap() > 0 {
        if line.ends_with('\n') {
            heard.line(line.trim_end());
        }
        count += 1;
        if count == lines {
            child.kill().unwrap();
        }
        line.clear();
    }
    assert!(!child.wait().unwrap().success());
}

impl Heard {
    fn line(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["ack", version, number] => {
                let previous = self.acknowledged.insert(version.parse().unwrap(), number.parse().unwrap());
                assert_eq!(previous, None, "{version} was minted twice");
            }
            ["event", version, kind] => {
                let version = version.parse().unwrap();
                let kinds = [EventType::Added, EventType::Modified, EventType::Deleted];
                let kind = kinds.into_iter().find(|known| known.as_str() == kind).unwrap();
                self.told.push(Told::Event(version, kind));
                self.cursor = Some(version);
            }
            // The test harness has something to say, too.
            _ => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_process_that_dies() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let store = Store::open(Path::new(&dir), options()).unwrap();
    let cursor = std::env::var(CURSOR).map_or(store.epoch(), |cursor| cursor.parse().unwrap());
    for writer in 0..WRITERS {
        tokio::spawn(keep_writing(store.clone(), writer));
    }
    let mut watcher = store.watch(select(""), Start::After(cursor)).unwrap();
    loop {
        for item in watcher.next().await.unwrap() {
            if let WatchItem::Event { kind, event } = item {
                say(format!("event {} {kind}\n", event.version));
            }
        }
    }
}

async fn keep_writing(store: Store, writer: usize) {
    let mut random = StdRng::seed_from_u64(rand::random());
    // A parent that went away without killing us must not leave us behind.
    for _ in 0..1_000_000 {
        let count = random.random_range(1..5);
        let numbers: Vec<u64> = (0..count).map(|_| random.random_range(0..1 << 40)).collect();
        let put = |(i, n): (usize, &u64)| {
            let path = format!("a/{writer}-{i}");
            write(&path, Expect::Any, Op::Put(widget(&path, "", json!({"n": n, "pad": "x".repeat(300)}))))
        };
        let writes = numbers.iter().enumerate().map(put).collect();
        let committed = store.commit(Transaction { writes, ..Transaction::default() }).await.unwrap();
        let lines =
            committed.versions.iter().zip(numbers).map(|(version, n)| format!("ack {} {n}\n", version.unwrap()));
        say(lines.collect());
        if random.random_ratio(1, 50) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// In one write, so that lines of two threads do not mix.
fn say(lines: String) {
    if std::io::stdout().write_all(lines.as_bytes()).is_err() {
        std::process::exit(1);
    }
}
