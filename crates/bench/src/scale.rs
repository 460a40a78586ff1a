//! What the server costs when nobody asks, and with many objects.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::json;

use crate::OBJECTS;
use crate::process::Server;
use crate::socket::Socket;
use crate::table::Table;
use crate::watches::watch_from;

/// Long enough for start-up work to settle.
const SETTLE: Duration = Duration::from_secs(3);

pub async fn idle(table: &mut Table, server: &Server) -> anyhow::Result<()> {
    tokio::time::sleep(SETTLE).await;
    let ready = server.ready.as_secs_f64();
    table.row(format!("process start to ready, {OBJECTS} objects"), format!("{ready:.2} s"), "0.3 s", "2.7 s");
    table.row(
        format!("idle memory (RSS), {OBJECTS} objects"),
        format!("{:.0} MiB", server.memory_mib()?),
        "< 60 MiB",
        "297 MiB",
    );
    Ok(())
}

/// A watch that begins at the far end of the replay window.
pub async fn window(table: &mut Table, binary: &Path, count: usize) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    eprintln!("writing {count} events");
    let before = crate::seed::events(folder.path(), count).await?;
    let server = Server::start(binary, folder.path()).await?;
    tokio::time::sleep(SETTLE).await;
    let started = server.memory_mib()?;
    let mut watcher = Socket::subscribe(&server, &watch_from(before)).await?;
    let (begun, mut replayed) = (Instant::now(), 1);
    let first = watcher.next().await?.context("the watch has ended")?;
    ensure!(memchr::memmem::find(first, b"gadget-").is_some(), "not an event: {}", String::from_utf8_lossy(first));
    while replayed < count {
        replayed += watcher.count().await?.context("the watch has ended")?;
    }
    let rate = count as f64 / begun.elapsed().as_secs_f64();
    table.row(
        format!("memory (RSS) with {count} events in the window: at start, and at most while a watch replays them all"),
        format!("{started:.0} MiB, {:.0} MiB; {rate:.0} events/s", server.memory_peak_mib()?),
        "bounded",
        "",
    );
    server.stop().await
}

pub async fn large(table: &mut Table, binary: &Path, count: usize) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    eprintln!("writing {count} objects");
    crate::seed::objects(folder.path(), count).await?;
    let server = Server::start(binary, folder.path()).await?;
    let ready = server.ready.as_secs_f64();
    tokio::time::sleep(SETTLE).await;
    let started = server.memory_mib()?;
    page_through(&server).await?;
    let after = server.memory_mib()?;
    table.row(format!("process start to ready, {count} objects"), format!("{ready:.2} s"), "< 3 s", "");
    let what = format!("memory (RSS) with {count} objects: at start, and after a list of all in pages");
    table.row(what, format!("{started:.0} MiB, {after:.0} MiB"), "< 1 GiB", "");
    server.stop().await
}

async fn page_through(server: &Server) -> anyhow::Result<()> {
    let mut connection = server.connect().await?;
    let query = "query($after: String) { resources(apiVersion: \"bench.example/v1\", kind: \"Gadget\", after: $after) { nodes { resourceVersion } pageInfo { endCursor } } }";
    let mut after = serde_json::Value::Null;
    loop {
        let answer = connection.query(query, json!({"after": after})).await?;
        after = answer["data"]["resources"]["pageInfo"]["endCursor"].clone();
        if after.is_null() {
            return Ok(());
        }
    }
}
