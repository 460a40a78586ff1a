//! A restart with a few changes since the checkpoint, at two sizes: the work
//! should be that of the changes.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::Value;
use tidegate_controllers::catalog::{self, CatalogKind};
use tidegate_model::ResourceVersion;
use tidegate_runtime::{Controller, Item, Kind, Manager, Source, WatchEvent};
use tidegate_server::plane::LocalPlane;

use super::catalogue::{self, CATEGORY_PRODUCTS, category_name};
use super::host::{Counter, Host};
use super::rates::{Gadgets, kind};
use crate::seed;
use crate::table::Table;

const CHANGES: usize = 100;
const WAIT_MAX: Duration = Duration::from_secs(300);

pub async fn run(table: &mut Table, sizes: &[usize]) -> anyhow::Result<()> {
    let (mut plain, mut products) = (Vec::new(), Vec::new());
    for count in sizes {
        eprintln!("a restart with {count} objects");
        plain.push((*count, plain_kind(*count).await?));
        products.push((*count, catalogue_products(*count).await?));
    }
    let from = "from the start of the server in process until nothing is left to do";
    for (what, times) in [("objects of a plain kind", plain), ("products of the catalogue", products)] {
        table.row(
            format!("restart with {CHANGES} changes since the checkpoint, {what}, {from}"),
            shown(&times),
            "< 2 s, of any number",
            "",
        );
    }
    Ok(())
}

fn shown(times: &[(usize, Restart)]) -> String {
    let each = times.iter().map(|(count, Restart { served, settled })| {
        format!("{count}: {:.2} s, {:.2} s of it the server's own start", settled.as_secs_f64(), served.as_secs_f64())
    });
    each.collect::<Vec<_>>().join("; ")
}

struct Restart {
    /// The store is open and the API answers.
    served: Duration,
    /// The queue is empty, and what it was for is done.
    settled: Duration,
}

async fn plain_kind(count: usize) -> anyhow::Result<Restart> {
    let folder = tempfile::tempdir()?;
    seed::objects(folder.path(), count).await?;
    let first = Arc::new(Counter::default());
    let host = Host::start(folder.path(), |manager| gadgets(manager, &first)).await?;
    host.settled().await?;
    host.stop().await?;
    ensure!(first.count() >= count, "{} of {count} reconciles", first.count());

    seed::change_objects(folder.path(), (0..CHANGES).map(|at| at * (count / CHANGES))).await?;
    let done = Arc::new(Counter::default());
    done.expect(CHANGES);
    let started = Instant::now();
    let mut served = Duration::ZERO;
    let host = Host::start(folder.path(), |manager| {
        served = started.elapsed();
        gadgets(manager, &done)
    })
    .await?;
    done.reached().await?;
    let settled = started.elapsed();
    host.settled().await?;
    ensure!(done.count() == CHANGES, "{} reconciles for {CHANGES} changes", done.count());
    host.stop().await?;
    Ok(Restart { served, settled })
}

fn gadgets(manager: &Manager, done: &Arc<Counter>) -> anyhow::Result<()> {
    let reconciler = Gadgets::that_read(manager.client(), done.clone());
    Ok(manager.add(Controller::new("gadgets", kind(), reconciler))?)
}

/// The products of the first category move to the second: their statuses and
/// the counts of both must follow.
async fn catalogue_products(count: usize) -> anyhow::Result<Restart> {
    let folder = tempfile::tempdir()?;
    catalogue::seed(folder.path(), count).await?;
    let host = Host::start(folder.path(), |manager| Ok(catalog::add_to(manager)?)).await?;
    host.settled().await?;
    host.stop().await?;

    let before = newest(folder.path()).await?;
    catalogue::move_products(folder.path(), 0, 1, CHANGES).await?;
    let started = Instant::now();
    let mut served = Duration::ZERO;
    let host = Host::start(folder.path(), |manager| {
        served = started.elapsed();
        Ok(catalog::add_to(manager)?)
    })
    .await?;
    let settled = tokio::time::timeout(WAIT_MAX, reported(&host.plane, before)).await;
    settled.context("statuses are missing")??;
    let settled = started.elapsed();
    host.stop().await?;
    Ok(Restart { served, settled })
}

async fn newest(data_dir: &Path) -> anyhow::Result<ResourceVersion> {
    let store = seed::open(data_dir).await?;
    let version = store.view().version();
    store.close().await;
    Ok(version)
}

async fn reported(plane: &LocalPlane, before: ResourceVersion) -> anyhow::Result<()> {
    let mut left = CHANGES;
    let mut done = HashSet::new();
    follow(plane, CatalogKind::Product.of_runtime(), before, |item, object| {
        let is_new = object["status"]["observedGeneration"] == 2 && done.insert(item.key.clone());
        left -= usize::from(is_new);
        left == 0
    })
    .await?;
    let wanted = [(category_name(0), CATEGORY_PRODUCTS - CHANGES), (category_name(1), CATEGORY_PRODUCTS + CHANGES)];
    let mut counted = HashSet::new();
    follow(plane, CatalogKind::CategoryTaxonomy.of_runtime(), before, |item, object| {
        let products = &object["status"]["resolved"]["productCount"];
        counted.extend(wanted.iter().filter(|(name, count)| **name == *item.key.name && products == count));
        counted.len() == wanted.len()
    })
    .await
}

/// Until `is_enough` says so of a changed object.
async fn follow(
    plane: &LocalPlane,
    kind: Kind,
    after: ResourceVersion,
    mut is_enough: impl FnMut(&Item, &Value) -> bool,
) -> anyhow::Result<()> {
    let mut stream = plane.watch(&kind, after).await?;
    loop {
        for event in stream.next().await? {
            if let WatchEvent::Added(item) | WatchEvent::Modified(item) = event
                && is_enough(&item, &item.parse()?)
            {
                return Ok(());
            }
        }
    }
}
