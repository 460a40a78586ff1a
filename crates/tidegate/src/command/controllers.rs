//! `tidegate controllers` and `tidegate quarantine`.

use std::io::{self, Write};

use anyhow::{Result, bail};
use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::json;
use tidegate_client::Client;

use crate::cli::{ConnectionArgs, QuarantineArgs, QuarantineCommand};
use crate::client::connect;
use crate::output::{Table, age};

const CONTROLLERS: &str = "{ controllers { name kind leader queueDepth oldestWaitingTime inFlight delayed quarantined \
    failures checkpoint behindVersions behindSinceTime } }";
const QUARANTINE: &str = "query($controller: String) { quarantine(controller: $controller) { \
    controller namespace name attempts error since } }";
const RELEASE: &str = "mutation($input: ReleaseQuarantineInput!) { releaseQuarantine(input: $input) }";

#[derive(Deserialize)]
struct Controllers {
    controllers: Vec<Controller>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Controller {
    name: String,
    kind: String,
    leader: String,
    queue_depth: u64,
    oldest_waiting_time: Option<String>,
    in_flight: u64,
    delayed: u64,
    quarantined: u64,
    failures: u64,
    checkpoint: Option<String>,
    behind_versions: Option<u64>,
    behind_since_time: Option<String>,
}

pub async fn list(args: &ConnectionArgs) -> Result<()> {
    let found: Controllers = connect(args)?.query(CONTROLLERS, json!({})).await?;
    let now = Utc::now();
    let rows: Vec<Vec<String>> = found.controllers.into_iter().map(|controller| row(controller, now)).collect();
    let head = [
        "NAME",
        "KIND",
        "LEADER",
        "QUEUE",
        "OLDEST",
        "RUNNING",
        "DELAYED",
        "FAILURES",
        "QUARANTINED",
        "CHECKPOINT",
        "VERSIONS-BEHIND",
        "BEHIND-FOR",
    ];
    Ok(io::stdout().write_all(Table::new(head).render(&rows).as_bytes())?)
}

fn row(controller: Controller, now: DateTime<Utc>) -> Vec<String> {
    let none = || "-".to_owned();
    let for_how_long = |time: Option<String>| time.map_or_else(none, |time| since(&time, now));
    vec![
        controller.name,
        controller.kind,
        controller.leader,
        controller.queue_depth.to_string(),
        for_how_long(controller.oldest_waiting_time),
        controller.in_flight.to_string(),
        controller.delayed.to_string(),
        controller.failures.to_string(),
        controller.quarantined.to_string(),
        controller.checkpoint.unwrap_or_else(none),
        controller.behind_versions.map_or_else(none, |versions| versions.to_string()),
        for_how_long(controller.behind_since_time),
    ]
}

fn since(time: &str, now: DateTime<Utc>) -> String {
    age(time, now).unwrap_or_else(|| time.to_owned())
}

#[derive(Deserialize)]
struct Quarantine {
    quarantine: Vec<Held>,
}

#[derive(Deserialize)]
struct Held {
    controller: String,
    namespace: Option<String>,
    name: String,
    attempts: u64,
    error: String,
    since: String,
}

pub async fn quarantine(args: &QuarantineArgs) -> Result<()> {
    let client = connect(&args.connection)?;
    match &args.command {
        QuarantineCommand::List { controller } => show(&client, controller.as_deref()).await,
        QuarantineCommand::Release { all, controller, key } => {
            release(&client, *all, controller.as_deref(), key.as_deref()).await
        }
    }
}

async fn show(client: &Client, controller: Option<&str>) -> Result<()> {
    let now = Utc::now();
    let rows: Vec<Vec<String>> = held(client, controller)
        .await?
        .into_iter()
        .map(|held| {
            let (key, since) = (held.key(), since(&held.since, now));
            vec![held.controller, key, held.attempts.to_string(), since, held.error]
        })
        .collect();
    let text = Table::new(["CONTROLLER", "KEY", "ATTEMPTS", "SINCE", "ERROR"]).render(&rows);
    Ok(io::stdout().write_all(text.as_bytes())?)
}

async fn held(client: &Client, controller: Option<&str>) -> Result<Vec<Held>> {
    Ok(client.query::<Quarantine>(QUARANTINE, json!({"controller": controller})).await?.quarantine)
}

impl Held {
    fn key(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{namespace}/{}", self.name),
            None => self.name.clone(),
        }
    }
}

async fn release(client: &Client, all: bool, controller: Option<&str>, key: Option<&str>) -> Result<()> {
    let held = held(client, controller).await?;
    let wanted: Vec<&Held> = held.iter().filter(|held| all || key.is_some_and(|key| key == held.key())).collect();
    if wanted.is_empty() {
        match key {
            Some(key) => bail!("`{key}` is not in quarantine\n  next: `tidegate quarantine list` shows what is"),
            None => return Ok(writeln!(io::stdout(), "nothing is in quarantine")?),
        }
    }
    for held in &wanted {
        let input = json!({"controller": held.controller, "namespace": held.namespace, "name": held.name});
        client.query::<serde_json::Value>(RELEASE, json!({"input": input})).await?;
        writeln!(io::stdout(), "{} {} released", held.controller, held.key())?;
    }
    Ok(())
}
