//! Events: how many, and how soon.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tidegate_model::ResourceVersion;
use tokio::task::LocalSet;

use crate::OBJECTS;
use crate::process::Server;
use crate::socket::Socket;
use crate::table::{Table, percentile};
use crate::writes::{self, Writer};

const WATCHERS: usize = 100;
/// As many as one identity may have, less what other rows leave behind.
const BYSTANDERS: usize = 900;
const LATENCY_WATCHERS: usize = 10;
const LATENCY_WRITERS: usize = 4;
const LATENCY_WRITES_PER_SECOND: u64 = 1_000;

/// Whole objects, as a controller's cache needs them.
pub const WATCH: &str = "subscription { watchResources(apiVersion: \"bench.example/v1\", kind: \"Gadget\") { type resourceVersion object } }";

const WATCH_ANOTHER: &str = "subscription { watchResources(apiVersion: \"bench.example/v1\", kind: \"Gadget\", fieldSelector: \"metadata.name=none\") { type resourceVersion object } }";

/// As [`WATCH`], resumed.
pub fn watch_from(version: ResourceVersion) -> String {
    WATCH.replace("kind: \"Gadget\"", &format!("kind: \"Gadget\", resourceVersion: \"{version}\""))
}

pub async fn fan_out(table: &mut Table, server: &Server, duration: Duration) -> anyhow::Result<()> {
    let local = LocalSet::new();
    let (events, closed) = (Rc::new(Cell::new(0_usize)), Rc::new(Cell::new(0_usize)));
    for _ in 0..WATCHERS {
        let mut socket = Socket::subscribe(server, WATCH).await?;
        let (events, closed) = (events.clone(), closed.clone());
        local.spawn_local(async move {
            while let Ok(Some(count)) = socket.count().await {
                events.set(events.get() + count);
            }
            closed.set(closed.get() + 1);
        });
    }
    let (delivered, writes) = local
        .run_until(async {
            let started = Instant::now();
            let before = events.get();
            let writes = writes::load(server, duration).await?.len();
            let delivered = (events.get() - before) as f64 / started.elapsed().as_secs_f64();
            anyhow::Ok((delivered, writes))
        })
        .await?;
    let rate = writes as f64 / duration.as_secs_f64();
    let what = format!("{WATCHERS} watchers of whole objects at full write speed");
    let measured = format!("{delivered:.0} events/s delivered at {rate:.0} writes/s, {} closed", closed.get());
    table.row(what, measured, "250,000 events/s, none closed", "56,000 events/s, 210 to 344 closed");
    Ok(())
}

/// What an event costs those that it does not concern: status writes without
/// and with many watchers of an object that never changes.
pub async fn bystanders(table: &mut Table, server: &Server, duration: Duration) -> anyhow::Result<()> {
    let rate = |times: &[f64]| times.len() as f64 / duration.as_secs_f64();
    let alone = rate(&writes::load(server, duration).await?);
    let mut idle = Vec::with_capacity(BYSTANDERS);
    for _ in 0..BYSTANDERS {
        idle.push(Socket::subscribe(server, WATCH_ANOTHER).await?);
    }
    let watched = rate(&writes::load(server, duration).await?);
    table.row(
        format!("status writes as above, without and with {BYSTANDERS} watchers of another object"),
        format!("{alone:.0}/s, {watched:.0}/s"),
        "the same",
        "",
    );
    Ok(())
}

pub async fn latency(table: &mut Table, server: &Server, duration: Duration) -> anyhow::Result<()> {
    let local = LocalSet::new();
    let arrivals: Rc<RefCell<Vec<(String, Instant)>>> = Rc::default();
    for _ in 0..LATENCY_WATCHERS {
        let mut socket = Socket::subscribe(server, WATCH).await?;
        let arrivals = arrivals.clone();
        local.spawn_local(async move {
            while let Ok(Some(frame)) = socket.next().await {
                let arrived = Instant::now();
                if let Some(version) = version_of(frame) {
                    arrivals.borrow_mut().push((version, arrived));
                }
            }
        });
    }
    let acks = local.run_until(paced(server, duration)).await?;
    let mut times: Vec<f64> = arrivals
        .borrow()
        .iter()
        // An event may overtake the answer to its own write: that is no lag.
        .filter_map(|(version, arrived)| {
            Some(arrived.saturating_duration_since(*acks.get(version)?).as_secs_f64() * 1e3)
        })
        .collect();
    let (count, expected) = (times.len(), acks.len() * LATENCY_WATCHERS);
    let (p50, p99) = (percentile(&mut times, 50.0), percentile(&mut times, 99.0));
    let what = format!("answer to event, {LATENCY_WRITES_PER_SECOND} writes/s, {LATENCY_WATCHERS} watchers");
    table.row(
        what,
        format!("p50 {p50:.2} ms, p99 {p99:.2} ms ({count} of {expected} events)"),
        "p99 < 10 ms",
        "p50 487 ms at full speed",
    );
    Ok(())
}

/// When each version was acknowledged.
async fn paced(server: &Server, duration: Duration) -> anyhow::Result<HashMap<String, Instant>> {
    let acks: Rc<RefCell<HashMap<String, Instant>>> = Rc::default();
    let mut tasks = Vec::new();
    let period = Duration::from_secs(1) * LATENCY_WRITERS as u32 / LATENCY_WRITES_PER_SECOND as u32;
    for at in 0..LATENCY_WRITERS {
        let mut writer = Writer::new(server, (at..OBJECTS).step_by(LATENCY_WRITERS).take(500)).await?;
        let acks = acks.clone();
        tasks.push(tokio::task::spawn_local(async move {
            let mut tick = tokio::time::interval(period);
            let until = Instant::now() + duration;
            while Instant::now() < until {
                tick.tick().await;
                let version = writer.write().await?.to_owned();
                acks.borrow_mut().insert(version, Instant::now());
            }
            anyhow::Ok(())
        }));
    }
    for task in tasks {
        task.await??;
    }
    // What was acknowledged last is still on its way.
    tokio::time::sleep(Duration::from_millis(200)).await;
    Ok(acks.take())
}

fn version_of(frame: &[u8]) -> Option<String> {
    const KEY: &[u8] = br#""resourceVersion":""#;
    let start = memchr::memmem::find(frame, KEY)? + KEY.len();
    let digits = frame.get(start..start + 16)?;
    Some(String::from_utf8_lossy(digits).into_owned())
}
