//! `tidegate repo`: repositories, through the server that holds them.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use serde::Deserialize;
use serde_json::json;
use tidegate_client::Client;
use tidegate_model::terminal::one_line;

use super::{FAILED, repo_verify};
use crate::cli::{Account, RepoArgs, RepoCommand};
use crate::client::connect_patiently;
use crate::output::unless_gone;

/// The longest `remote.fetch_timeout`, and some time to project.
pub const SYNC_TIME_MAX: Duration = Duration::from_secs(25 * 3600);

const SYNC: &str = "mutation($namespace: String!, $name: String!) { syncRepository(namespace: $namespace, name: $name) \
                    { inForce reason message problems resourceVersion created updated deleted } }";

pub async fn run(args: &RepoArgs) -> Result<ExitCode> {
    let client = connect_patiently(&args.connection, SYNC_TIME_MAX)?;
    match &args.command {
        RepoCommand::Sync { repository } => sync(&client, repository).await,
        RepoCommand::Verify { repositories, repair } => repo_verify::run(&client, repositories, *repair).await,
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    sync_repository: Synced,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Synced {
    in_force: bool,
    reason: String,
    message: String,
    problems: Vec<String>,
    resource_version: Option<String>,
    created: u64,
    updated: u64,
    deleted: u64,
}

async fn sync(client: &Client, repository: &Account) -> Result<ExitCode> {
    let Account { namespace, name } = repository;
    let data: Data = client.query(SYNC, json!({"namespace": namespace, "name": name})).await?;
    let Synced { in_force, reason, message, problems, resource_version, created, updated, deleted } =
        data.sync_repository;
    let mut out = io::stdout();
    for problem in problems {
        unless_gone(writeln!(out, "{}", one_line(&problem)))?;
    }
    if !in_force {
        tell!("{namespace}/{name}: {reason}: {}", one_line(&message));
        return Ok(ExitCode::from(FAILED));
    }
    let version = resource_version.unwrap_or_default();
    let objects = format!("+{created} ~{updated} -{deleted} objects, resourceVersion {version}");
    unless_gone(writeln!(out, "{}\n{objects}", one_line(&message)))?;
    Ok(ExitCode::SUCCESS)
}
