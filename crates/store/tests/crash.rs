//! kill -9 in a loop under load: what was acknowledged is there, and a watch
//! that resumes after each death has seen every event once.
//!
//! The process that dies is this test binary, run again with a directory.

#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::convert::Infallible;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use tidegate_model::{EventType, ResourceVersion};
use tidegate_store::{Expect, Op, Options, Start, Store, Transaction, WatchError, WatchItem, WindowLimits, check};
use tidegate_testkit::history::{Commit, History, Stream, Told, Written};
use tidegate_testkit::objects::{key, select, widget, write};
use tidegate_testkit::store_contract::quiet;
use tidegate_testkit::store_contract::watches::until;

const DIR: &str = "TIDEGATE_TEST_CRASH_DIR";
const CURSOR: &str = "TIDEGATE_TEST_CRASH_CURSOR";
const WINDOW: &str = "TIDEGATE_TEST_CRASH_WINDOW";
const ROUNDS: usize = 8;
const WRITERS: usize = 8;
const TINY_EVENTS: u64 = 60;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Window {
    /// Nothing leaves it.
    Wide,
    /// So small that segments are dropped all the time.
    Tiny,
    /// So short that even the segment that is being filled grows too old.
    Brief,
}

impl Window {
    /// Small segments, so that rolling over is among what is interrupted.
    fn options(self) -> Options {
        let age = WindowLimits::default().age;
        let (events, segments, age) = match self {
            Self::Wide => (1_000_000, 10_000, age),
            Self::Tiny => (TINY_EVENTS, 6, age),
            Self::Brief => (1_000_000, 1, Duration::from_millis(3)),
        };
        let window = WindowLimits { events, age, ..WindowLimits::default() };
        Options { window, segments, maintenance_interval: Duration::from_millis(1), ..quiet() }
    }
}

/// What the dying process said.
#[derive(Default)]
struct Heard {
    acknowledged: HashMap<ResourceVersion, Acknowledged>,
    told: Vec<Told>,
    cursor: Option<ResourceVersion>,
    expired: usize,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Acknowledged {
    path: String,
    number: u64,
}

#[tokio::test]
async fn nothing_acknowledged_is_lost() {
    let seed = rand::random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let dir = tempfile::tempdir().unwrap();
    let mut heard = Heard::default();
    for _ in 0..ROUNDS {
        run_and_kill(dir.path(), Window::Wide, random.random_range(1..400), &mut heard);
    }
    assert!(heard.acknowledged.len() > ROUNDS && heard.told.len() > ROUNDS && heard.expired == 0);

    let report = check(dir.path(), &mut |_| {}).unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
    let store = Store::open(dir.path(), Window::Wide.options()).unwrap();
    let commits = heard.compare_with_log(&store).await;
    let mut history = History { commits, ..History::default() };
    assert!(heard.acknowledged.is_empty(), "acknowledged and lost: {:?}", heard.acknowledged);
    let until = heard.cursor.unwrap();
    history.streams.push(Stream { until, told: heard.told, ..Stream::new("resumed", select(""), store.epoch()) });
    history.check().unwrap();
}

/// Segments are dropped and created around each death: what is kept is whole,
/// and every object is at least as new as its writer was told.
#[tokio::test]
async fn a_tiny_window_moves_on_without_losing_objects() {
    a_window_moves_on_without_losing_objects(Window::Tiny).await;
}

#[tokio::test]
async fn a_brief_window_moves_on_without_losing_objects() {
    a_window_moves_on_without_losing_objects(Window::Brief).await;
}

async fn a_window_moves_on_without_losing_objects(window: Window) {
    let seed = rand::random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let dir = tempfile::tempdir().unwrap();
    let mut heard = Heard::default();
    for round in 0..2 * ROUNDS {
        run_and_kill(dir.path(), window, random.random_range(1..400), &mut heard);
        let report = check(dir.path(), &mut |_| {}).unwrap();
        assert_eq!(report.problems, Vec::<String>::new(), "round {round}");
    }
    heard.assert_told_once();
    // Nothing leaves it while we look.
    let store = Store::open(dir.path(), Window::Wide.options()).unwrap();
    for (version, Acknowledged { path, number }) in heard.newest_of_each() {
        let stored = store.view().get(&key(&path)).unwrap().unwrap_or_else(|| panic!("{path} is lost"));
        let object: Value = serde_json::from_slice(&stored.json).unwrap();
        assert!(stored.version >= version, "{path} fell back to {}", stored.version);
        assert!(stored.version > version || object["spec"]["n"].as_u64() == Some(number), "{path}");
    }
    heard.compare_with_log(&store).await;
    let oldest = store.window().oldest;
    assert!(oldest > store.epoch(), "nothing was dropped");
    let lost: Vec<_> = heard.acknowledged.keys().filter(|version| **version > oldest).collect();
    assert!(lost.is_empty(), "acknowledged, in the window, and lost: {lost:?}");
    store.close().await;
    drop(store);
    assert_segments_go(dir.path(), window).await;
}

/// A start removes what a death left of dropped segments.
async fn assert_segments_go(dir: &Path, window: Window) {
    let store = Store::open(dir, window.options()).unwrap();
    // The last death may have come before the window had moved.
    until(&store, |store| store.window().events <= TINY_EVENTS).await;
    store.close().await;
    drop(store);
    drop(Store::open(dir, Window::Wide.options()).unwrap());
    let kept = std::fs::read_dir(dir.join("engine/keyspaces")).unwrap().count();
    assert!(kept < 40, "{kept} tables for a window of 6 segments");
}

/// Runs the other process until it has said so many lines, then kills it.
fn run_and_kill(dir: &Path, window: Window, lines: usize, heard: &mut Heard) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "the_process_that_dies", "--nocapture"]).env(DIR, dir).stdout(Stdio::piped());
    command.env(WINDOW, format!("{window:?}"));
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
            ["ack", version, path, number] => {
                let acknowledged = Acknowledged { path: path.into(), number: number.parse().unwrap() };
                let previous = self.acknowledged.insert(version.parse().unwrap(), acknowledged);
                assert_eq!(previous, None, "{version} was minted twice");
            }
            ["expired"] => self.expired += 1,
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

    /// Takes out what the log holds with the number that was acknowledged.
    async fn compare_with_log(&mut self, store: &Store) -> Vec<Commit> {
        let mut commits = Vec::new();
        let mut watcher = store.watch(select(""), Start::After(store.window().oldest)).unwrap();
        while watcher.cursor() < store.view().version() {
            for item in watcher.next().await.unwrap() {
                let WatchItem::Event { event, .. } = item else { continue };
                let object: Value = serde_json::from_slice(&event.object).unwrap();
                if let Some(Acknowledged { number, .. }) = self.acknowledged.remove(&event.version) {
                    assert_eq!(object["spec"]["n"].as_u64(), Some(number), "{event:?}");
                }
                commits.push(Commit { writes: vec![(event.version, Written::of(&event))] });
            }
        }
        commits
    }

    fn newest_of_each(&self) -> Vec<(ResourceVersion, Acknowledged)> {
        let mut newest: HashMap<&str, (ResourceVersion, Acknowledged)> = HashMap::new();
        for (version, acknowledged) in &self.acknowledged {
            let kept = newest.entry(&acknowledged.path).or_insert_with(|| (*version, acknowledged.clone()));
            if kept.0 < *version {
                *kept = (*version, acknowledged.clone());
            }
        }
        newest.into_values().collect()
    }

    fn assert_told_once(&self) {
        let versions = self.told.iter().filter_map(|told| match told {
            Told::Event(version, _) => Some(version),
            _ => None,
        });
        assert!(versions.is_sorted_by(|a, b| a < b), "an event came twice or too late");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_process_that_dies() {
    let Ok(dir) = std::env::var(DIR) else { return };
    // Ends the line that the test harness has begun: what is said first counts.
    say("\n".into());
    let name = std::env::var(WINDOW).unwrap();
    let windows = [Window::Wide, Window::Tiny, Window::Brief];
    let window = windows.into_iter().find(|window| format!("{window:?}") == name).unwrap();
    let store = Store::open(Path::new(&dir), window.options()).unwrap();
    let cursor = std::env::var(CURSOR).map_or(store.epoch(), |cursor| cursor.parse().unwrap());
    for writer in 0..WRITERS {
        tokio::spawn(keep_writing(store.clone(), writer));
    }
    let mut start = cursor;
    loop {
        let Err(expired) = keep_watching(&store, start).await;
        assert!(matches!(expired, WatchError::Expired { .. }), "{expired}");
        say("expired\n".into());
        start = store.window().oldest;
    }
}

async fn keep_watching(store: &Store, start: ResourceVersion) -> Result<Infallible, WatchError> {
    let mut watcher = store.watch(select(""), Start::After(start))?;
    loop {
        for item in watcher.next().await? {
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
        let acknowledged = committed.versions.iter().zip(numbers).enumerate();
        let lines = acknowledged.map(|(i, (version, n))| format!("ack {} a/{writer}-{i} {n}\n", version.unwrap()));
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
