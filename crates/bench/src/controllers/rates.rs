//! Reconciles a second.

use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use tidegate_model::ObjectKey;
use tidegate_runtime::{Client, Controller, Item, Kind, Next, ReconcileError, Reconciler};

use super::host::{Counter, Host};
use crate::seed;
use crate::table::Table;

const READ_OBJECTS: usize = 100_000;
const WRITTEN_OBJECTS: usize = 50_000;
/// Fewer: each waits for its own fsync.
const WRITTEN_ALONE_OBJECTS: usize = 10_000;

pub async fn run(table: &mut Table) -> anyhow::Result<()> {
    let rate = rate(READ_OBJECTS, 16, |client, done| Gadgets { client, done, what: What::Read }).await?;
    table.row(
        format!("no-op reconciles of one controller, {READ_OBJECTS} objects from its first list, each read once"),
        format!("{rate:.0}/s"),
        "",
        "",
    );
    for (count, concurrency, goal, yardstick) in
        [(WRITTEN_ALONE_OBJECTS, 1, "", "controller-runtime ~230/s"), (WRITTEN_OBJECTS, 16, "5,000/s", "")]
    {
        let rate = rate_of_writes(count, concurrency).await?;
        table.row(
            format!(
                "reconciles that write a status, {count} objects, concurrency {concurrency}, fsync before each answer"
            ),
            format!("{rate:.0}/s"),
            goal,
            yardstick,
        );
    }
    Ok(())
}

async fn rate_of_writes(count: usize, concurrency: usize) -> anyhow::Result<f64> {
    rate(count, concurrency, |client, done| Gadgets { client, done, what: What::Report }).await
}

/// From the start of the manager to the last of `count` objects.
async fn rate(
    count: usize,
    concurrency: usize,
    gadgets: impl FnOnce(Client, Arc<Counter>) -> Gadgets,
) -> anyhow::Result<f64> {
    let folder = tempfile::tempdir()?;
    seed::objects(folder.path(), count).await?;
    let done = Arc::new(Counter::default());
    done.expect(count);
    let mut started = Instant::now();
    let host = Host::start(folder.path(), |manager| {
        let reconciler = gadgets(manager.client(), done.clone());
        manager.add(Controller::new("gadgets", kind(), reconciler).concurrency(concurrency))?;
        started = Instant::now();
        Ok(())
    })
    .await?;
    done.reached().await?;
    let rate = count as f64 / started.elapsed().as_secs_f64();
    host.stop().await?;
    Ok(rate)
}

pub fn kind() -> Kind {
    Kind::new("bench.example/v1", "Gadget", "gadgets")
}

/// As little as a reconciler can do.
pub struct Gadgets {
    client: Client,
    /// Of the reads, or of the writes.
    done: Arc<Counter>,
    what: What,
}

#[derive(Clone, Copy)]
enum What {
    Read,
    /// What its spec says is in its status afterwards.
    Report,
}

impl Gadgets {
    pub fn that_read(client: Client, done: Arc<Counter>) -> Self {
        Self { client, done, what: What::Read }
    }
}

impl Reconciler for Gadgets {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, ReconcileError> {
        match self.what {
            What::Read => {
                self.client.get(&kind(), key).await?;
                self.done.add();
            }
            What::Report => {
                let report = |item: &Item| {
                    let object = item.object()?;
                    let wanted = json!(object.spec().and_then(|spec| spec["items"].as_array()).map_or(0, Vec::len));
                    let says = object.status().is_some_and(|status| status["count"] == wanted);
                    Ok((!says).then(|| json!({"count": wanted})))
                };
                if self.client.report(&kind(), key, report).await?.is_some() {
                    self.done.add();
                }
            }
        }
        Ok(Next::AwaitChange)
    }
}
