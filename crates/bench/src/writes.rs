//! Durable status writes, each with its precondition.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::{Value, json};
use tokio::task::LocalSet;

use crate::http::Connection;
use crate::process::Server;
use crate::seed::{NAMESPACE, name};
use crate::table::{Table, percentile};
use crate::{OBJECTS, WRITERS};

const WRITE: &str =
    "mutation($input: UpdateResourceStatusInput!) { updateResourceStatus(input: $input) { resourceVersion } }";
const READ: &str = "query($name: String!) { resource(apiVersion: \"bench.example/v1\", kind: \"Gadget\", namespace: \"default\", name: $name) { resourceVersion } }";

/// One client with objects of its own, so that no precondition fails.
pub struct Writer {
    connection: Connection,
    objects: Vec<(String, String)>,
    next: usize,
    count: u64,
}

impl Writer {
    pub async fn new(server: &Server, names: impl Iterator<Item = usize>) -> anyhow::Result<Self> {
        let mut connection = server.connect().await?;
        let mut objects = Vec::new();
        for at in names {
            let answer = connection.query(READ, json!({"name": name(at)})).await?;
            let version = answer["data"]["resource"]["resourceVersion"].as_str().context("no such object")?;
            objects.push((name(at), version.to_owned()));
        }
        Ok(Self { connection, objects, next: 0, count: now_us() })
    }

    /// One write; the version that it got.
    pub async fn write(&mut self) -> anyhow::Result<&str> {
        let at = self.next % self.objects.len();
        self.next += 1;
        self.count += 1;
        let (name, version) = &self.objects[at];
        let input = json!({
            "apiVersion": "bench.example/v1", "kind": "Gadget", "namespace": NAMESPACE, "name": name,
            "resourceVersion": version, "status": {"count": self.count, "phase": "Ready"},
        });
        let body = json!({"query": WRITE, "variables": {"input": input}}).to_string();
        let answer: Value = serde_json::from_slice(self.connection.post(&body).await?)?;
        let version = answer["data"]["updateResourceStatus"]["resourceVersion"].as_str();
        let version = version.with_context(|| format!("not written: {answer}"))?.to_owned();
        self.objects[at].1 = version;
        Ok(&self.objects[at].1)
    }
}

/// Counts differ between runs, so that no write is without effect.
fn now_us() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}

/// The latencies of all writes, in milliseconds.
pub async fn load(server: &Server, duration: Duration) -> anyhow::Result<Vec<f64>> {
    let mut writers = Vec::new();
    for at in 0..WRITERS {
        writers.push(Writer::new(server, (at..OBJECTS).step_by(WRITERS)).await?);
    }
    let times = Rc::new(RefCell::new(Vec::new()));
    let until = Instant::now() + duration;
    let local = LocalSet::new();
    let tasks: Vec<_> = writers
        .into_iter()
        .map(|mut writer| {
            let times = times.clone();
            local.spawn_local(async move {
                while Instant::now() < until {
                    let started = Instant::now();
                    writer.write().await?;
                    times.borrow_mut().push(started.elapsed().as_secs_f64() * 1e3);
                }
                anyhow::Ok(())
            })
        })
        .collect();
    local.await;
    for task in tasks {
        task.await??;
    }
    Ok(Rc::try_unwrap(times).map_err(|_| anyhow::anyhow!("a writer still runs"))?.into_inner())
}

pub async fn run(table: &mut Table, server: &Server, duration: Duration) -> anyhow::Result<()> {
    let mut times = load(server, duration).await?;
    let rate = times.len() as f64 / duration.as_secs_f64();
    let (p50, p99) = (percentile(&mut times, 50.0), percentile(&mut times, 99.0));
    let what = format!("status writes, {WRITERS} clients, fsync before each answer");
    table.row(
        what,
        format!("{rate:.0}/s (p50 {p50:.1} ms, p99 {p99:.1} ms)"),
        "7,700/s, p99 < 20 ms",
        "766/s, p99 121 ms",
    );
    Ok(())
}
