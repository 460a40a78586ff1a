//! `tidegate repo verify`: asks the server to compare store and Git.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::json;
use tidegate_client::Client;
use tidegate_server::repos::{Report, Sort};

use super::FAILED;
use crate::cli::Account;
use crate::output::unless_gone;
use crate::progress::grouped;

const LIST: &str = "query($after: String) { resources(apiVersion: \"tidegate.dev/v1\", kind: \"Repository\", after: $after) \
     { nodes { namespace name } pageInfo { endCursor } } }";
const CONTROL: (&str, &str) = ("system", "control");

/// `repositories`, or all if none is named.
pub async fn run(client: &Client, repositories: &[Account], repair: bool) -> Result<ExitCode> {
    let repositories = if repositories.is_empty() { all(client).await? } else { repositories.to_vec() };
    let mut agrees = true;
    for Account { namespace, name } in repositories {
        let path = format!("git/{namespace}/{name}.git/verify?repair={repair}");
        let report: Report =
            client.post(&path).await.with_context(|| format!("failed to verify {namespace}/{name}"))?;
        unless_gone(show(&report))?;
        agrees &= report.agrees() || report.repaired.is_some();
    }
    Ok(if agrees { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

#[derive(Deserialize)]
struct Data {
    resources: Page,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    nodes: Vec<Node>,
    page_info: PageInfo,
}

#[derive(Deserialize)]
struct Node {
    namespace: String,
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageInfo {
    end_cursor: Option<String>,
}

async fn all(client: &Client) -> Result<Vec<Account>> {
    let mut all = vec![Account { namespace: CONTROL.0.into(), name: CONTROL.1.into() }];
    let mut after = None;
    loop {
        let data: Data = client.query(LIST, json!({"after": after})).await?;
        let nodes = data.resources.nodes.into_iter();
        let accounts = nodes.map(|node| Account { namespace: node.namespace, name: node.name });
        all.extend(accounts.filter(|account| (&*account.namespace, &*account.name) != CONTROL));
        after = data.resources.page_info.end_cursor;
        if after.is_none() {
            return Ok(all);
        }
    }
}

fn show(report: &Report) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let Report { repository, branch, head, projected, missing, different, extra, objects, problems, repaired } = report;
    let commit =
        |id: &Option<String>| id.as_deref().map_or_else(|| "none".to_owned(), |id| id.chars().take(12).collect());
    if report.agrees() {
        return match head {
            Some(_) => writeln!(out, "{repository}: store and {branch} agree at {}", commit(head)),
            None => {
                writeln!(out, "{repository}: store and {branch} agree: nothing has been pushed, nothing is in force")
            }
        };
    }
    if head != projected {
        writeln!(out, "{repository}: in force is {}, {branch} is {}", commit(projected), commit(head))?;
    }
    for object in objects {
        let what = match object.sort {
            Sort::Missing => "missing in the store",
            Sort::Different => "different in the store",
            Sort::Extra => "in the store, not in Git",
        };
        writeln!(out, "{repository}: {}: {what}", object.object)?;
    }
    for problem in problems {
        writeln!(out, "{repository}: {branch} cannot be put in force: {problem}")?;
    }
    let counts = [missing, different, extra].map(|count| grouped(*count as u64));
    let [missing, different, extra] = counts;
    writeln!(out, "{repository}: {missing} missing, {different} different, {extra} extra objects")?;
    match repaired {
        Some(version) => writeln!(out, "{repository}: mended from Git, resourceVersion {version}"),
        None if problems.is_empty() => {
            writeln!(out, "{repository}: next: `tidegate repo verify {repository} --repair`")
        }
        None => writeln!(out, "{repository}: next: push a commit that mends the above"),
    }
}
