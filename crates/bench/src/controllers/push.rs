//! A catalogue pushed in one go, until every status is ready.

use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::catalogue::{CATEGORY_PRODUCTS, category, category_name, product, product_name};
use crate::branch::Branch;
use crate::process::Server;
use crate::socket::Socket;
use crate::table::Table;

const PRODUCTS: usize = 100_000;
const READY_TIME_MAX: Duration = Duration::from_secs(300);
const WATCH: &str = "subscription { watchResources(apiVersion: \"catalog.gitstore.dev/v1beta1\", kind: \"Product\") { type name object } }";
const CATEGORIES: &str = "query($after: String) { resources(apiVersion: \"catalog.gitstore.dev/v1beta1\", kind: \"CategoryTaxonomy\", after: $after) { nodes { object } pageInfo { endCursor } } }";

pub async fn run(table: &mut Table, program: &Path) -> anyhow::Result<()> {
    let mut branch = Branch::new()?;
    let categories = (0..PRODUCTS / CATEGORY_PRODUCTS)
        .map(|at| (format!("catalogue/categories/{}.json", category_name(at)), file(category(at))));
    let products = (0..PRODUCTS).map(|at| {
        let path = format!("catalogue/products/{:04}/{}.json", at / 1_000, product_name(at));
        (path, file(product(at, at / CATEGORY_PRODUCTS)))
    });
    branch.commit_files(std::iter::once(categories.chain(products)))?;
    let data = tempfile::tempdir()?;
    let server = Server::start(program, data.path()).await?;
    let watcher = Socket::subscribe(&server, WATCH).await?;
    let started = Instant::now();
    let ready = tokio::time::timeout(READY_TIME_MAX, ready(&server, watcher, started));
    let (pushed, ready) = tokio::join!(branch.push(&server, "main"), ready);
    let (pushed, ready) = (pushed?.as_secs_f64(), ready.context("statuses are missing")??.as_secs_f64());
    table.row(
        format!(
            "{PRODUCTS} products in {} categories in one push, until every status is ready",
            PRODUCTS / CATEGORY_PRODUCTS
        ),
        format!("{ready:.1} s from the start of `git push`, which returned after {pushed:.1} s"),
        "",
        "",
    );
    server.stop().await
}

fn file(mut object: Value) -> String {
    object["metadata"]["namespace"] = "default".into();
    object.to_string()
}

async fn ready(server: &Server, mut watcher: Socket, started: Instant) -> anyhow::Result<Duration> {
    let mut left: HashSet<String> = (0..PRODUCTS).map(product_name).collect();
    while !left.is_empty() {
        let frame = watcher.next().await?.context("the watch has ended")?;
        // Cheap first: most of what comes has no status yet.
        if memchr::memmem::find(frame, b"\"Ready\"").is_some() {
            let event: Value = serde_json::from_slice(frame)?;
            let event = &event["payload"]["data"]["watchResources"];
            if is_ready(&event["object"]) {
                left.remove(event["name"].as_str().unwrap_or_default());
            }
        }
    }
    while !categories_are_ready(server).await? {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(started.elapsed())
}

fn is_ready(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    object["status"]["observedGeneration"] == object["metadata"]["generation"]
        && conditions.into_iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

async fn categories_are_ready(server: &Server) -> anyhow::Result<bool> {
    let mut connection = server.connect().await?;
    let (mut after, mut count) = (Value::Null, 0);
    loop {
        let answer = connection.query(CATEGORIES, json!({"after": after})).await?;
        let page = &answer["data"]["resources"];
        for node in page["nodes"].as_array().into_iter().flatten() {
            let counted = &node["object"]["status"]["resolved"]["productCount"];
            if !is_ready(&node["object"]) || counted != CATEGORY_PRODUCTS {
                return Ok(false);
            }
            count += 1;
        }
        after = page["pageInfo"]["endCursor"].clone();
        if after.is_null() {
            ensure!(count == PRODUCTS / CATEGORY_PRODUCTS, "{count} categories");
            return Ok(true);
        }
    }
}
