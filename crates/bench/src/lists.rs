//! One list of everything.

use std::time::Instant;

use anyhow::ensure;

use crate::OBJECTS;
use crate::process::Server;
use crate::table::{Table, percentile};

const ROUNDS: usize = 40;

pub async fn run(table: &mut Table, server: &Server) -> anyhow::Result<()> {
    let mut connection = server.connect().await?;
    let query = r#"{"query":"{ resources(apiVersion: \"bench.example/v1\", kind: \"Gadget\") { resourceVersion nodes { object } pageInfo { hasNextPage } } }"}"#;
    let (mut times, mut bytes) = (Vec::new(), 0);
    for _ in 0..ROUNDS {
        let started = Instant::now();
        let answer = connection.post(query).await?;
        times.push(started.elapsed().as_secs_f64() * 1e3);
        bytes = answer.len();
        let last = crate::seed::name(OBJECTS - 1);
        ensure!(memchr::memmem::rfind(answer, last.as_bytes()).is_some(), "the list is not complete");
    }
    let (p50, p99) = (percentile(&mut times, 50.0), percentile(&mut times, 99.0));
    let rate = bytes as f64 / 1e6 / (p50 / 1e3);
    let size = bytes as f64 / OBJECTS as f64 / 1024.0;
    let what = format!("list {OBJECTS} custom resources of {size:.1} KiB, one request, {ROUNDS} times");
    table.row(what, format!("{p50:.1} ms (p99 {p99:.1}), {rate:.0} MB/s"), "25 ms", "236 ms, 36 MB/s");
    Ok(())
}
