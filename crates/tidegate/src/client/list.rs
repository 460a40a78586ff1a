//! Lists: all pages of one snapshot.

use anyhow::{Result, bail};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidegate_client::{Client, Code};

use super::connect::code_of;
use super::kinds::KindInfo;

/// Small enough that the first rows show soon, large enough that a page costs
/// its rows and not its round trip.
const PAGE_OBJECTS: u64 = 1_000;
/// A snapshot expires only if nobody reads it for minutes; thrice in a row
/// means that the output is not being read.
const RESTARTS_MAX: usize = 3;

const QUERY: &str = "query($apiVersion: String!, $kind: String!, $namespace: String, $labelSelector: String, \
    $fieldSelector: String, $first: Int, $after: String) { \
    page: resources(apiVersion: $apiVersion, kind: $kind, namespace: $namespace, labelSelector: $labelSelector, \
    fieldSelector: $fieldSelector, first: $first, after: $after) { \
    resourceVersion nodes { object } pageInfo { hasNextPage endCursor } } }";

/// Which objects of one kind.
#[derive(Clone, Debug)]
pub struct Selection {
    pub kind: KindInfo,
    pub namespace: Option<String>,
    pub labels: Option<String>,
    pub fields: Option<String>,
}

impl Selection {
    /// The variables that lists and watches have in common; absent ones are
    /// left out.
    pub fn variables(&self) -> Map<String, Value> {
        let optional =
            [("namespace", &self.namespace), ("labelSelector", &self.labels), ("fieldSelector", &self.fields)];
        let fixed = [("apiVersion", &self.kind.api_version), ("kind", &self.kind.kind)];
        let given = optional.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        fixed.into_iter().chain(given).map(|(name, value)| (name.to_owned(), json!(value))).collect()
    }
}

/// Takes the pages of a list.
pub trait Sink {
    fn page(&mut self, version: &str, objects: Vec<Value>) -> Result<()>;
    /// Forget what came: the list begins again. An error if it cannot be
    /// forgotten any more.
    fn restart(&mut self) -> Result<()>;
}

/// All objects of one snapshot, at most `limit`.
pub async fn run(client: &Client, selection: &Selection, limit: Option<u64>, sink: &mut impl Sink) -> Result<()> {
    for _ in 0..=RESTARTS_MAX {
        match pages(client, selection, limit, sink).await {
            Err(error) if code_of(&error) == Some(Code::ListExpired) => sink.restart()?,
            outcome => return outcome,
        }
    }
    bail!("the list expired {RESTARTS_MAX} times before its last page: ask for less with --limit or a selector")
}

/// The current version, to watch from.
pub async fn version(client: &Client, selection: &Selection) -> Result<String> {
    Ok(page(client, selection, 1, None).await?.resource_version)
}

async fn pages(client: &Client, selection: &Selection, limit: Option<u64>, sink: &mut impl Sink) -> Result<()> {
    let mut left = limit.unwrap_or(u64::MAX);
    let mut after = None;
    while left > 0 {
        let page = page(client, selection, left.min(PAGE_OBJECTS), after).await?;
        left = left.saturating_sub(page.nodes.len() as u64);
        sink.page(&page.resource_version, page.nodes.into_iter().map(|node| node.object).collect())?;
        after = page.page_info.end_cursor;
        if !page.page_info.has_next_page || after.is_none() {
            break;
        }
    }
    Ok(())
}

async fn page(client: &Client, selection: &Selection, first: u64, after: Option<String>) -> Result<Page> {
    let mut variables = selection.variables();
    variables.insert("first".into(), first.into());
    if let Some(after) = after {
        variables.insert("after".into(), after.into());
    }
    Ok(client.query::<Data>(QUERY, Value::Object(variables)).await?.page)
}

#[derive(Deserialize)]
struct Data {
    page: Page,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    resource_version: String,
    nodes: Vec<Node>,
    page_info: PageInfo,
}

#[derive(Deserialize)]
struct Node {
    object: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageInfo {
    has_next_page: bool,
    end_cursor: Option<String>,
}
