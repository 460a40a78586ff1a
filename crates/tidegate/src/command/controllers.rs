//! `tidegate controllers`.

use std::io::{self, Write};

use anyhow::Result;
use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::json;

use super::idle_hooks::{IdleHook, explained, idle_hooks, without_controller};
use crate::cli::ConnectionArgs;
use crate::client::connect;
use crate::output::{Table, age};

const CONTROLLERS: &str = "{ controllers { name kind leader leading stopped queueDepth oldestWaitingTime inFlight retrying quarantined \
    failures checkpoint behindVersions behindSinceTime } }";
const STOPPED: &str = "some do not run: the condition Ready of their hook says why\n  next: tidegate get hooks -o yaml";
/// What to do where nobody does.
pub(super) const WHO_RUNS_THEM: &str =
    "`tidegate serve` runs a manager unless --controllers=off, `tidegate control` runs one elsewhere";
const HEAD: [&str; 12] = [
    "NAME",
    "KIND",
    "LEADER",
    "QUEUE",
    "OLDEST",
    "RUNNING",
    "RETRYING",
    "FAILURES",
    "QUARANTINED",
    "CHECKPOINT",
    "VERSIONS-BEHIND",
    "BEHIND-FOR",
];

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
    leading: bool,
    stopped: Option<String>,
    queue_depth: u64,
    oldest_waiting_time: Option<String>,
    in_flight: u64,
    retrying: u64,
    quarantined: u64,
    failures: u64,
    checkpoint: Option<String>,
    behind_versions: Option<u64>,
    behind_since_time: Option<String>,
}

pub async fn list(args: &ConnectionArgs) -> Result<()> {
    let client = connect(args)?;
    let Controllers { controllers } = client.query(CONTROLLERS, json!({})).await?;
    let orphans = controllers.iter().filter(|controller| !controller.leading).count();
    let remark = remark(controllers.len(), orphans);
    if controllers.is_empty() {
        tell!("{}", remark.unwrap_or_default());
        return Ok(());
    }
    let idle = idle_hooks(&client).await?;
    let names: Vec<&str> = controllers.iter().map(|controller| &*controller.name).collect();
    let unborn: Vec<Vec<String>> = without_controller(&idle, &names).into_iter().map(unborn).collect();
    let stopped = controllers.iter().any(|controller| controller.leading && controller.stopped.is_some());
    let now = Utc::now();
    let rows: Vec<Vec<String>> = controllers.into_iter().map(|each| row(each, now)).chain(unborn).collect();
    io::stdout().write_all(Table::new(HEAD).render(&rows).as_bytes())?;
    if let Some(remark) = remark {
        tell!("{remark}");
    }
    match explained(&idle) {
        // Of hooks that the caller may not read.
        lines if lines.is_empty() && stopped => tell!("{STOPPED}"),
        lines => lines.iter().for_each(|line| tell!("{line}")),
    }
    Ok(())
}

/// If not all of them are at work.
fn remark(all: usize, orphans: usize) -> Option<String> {
    match (all, orphans) {
        (0, _) => Some(format!("no controller has ever run on this server\n  next: {WHO_RUNS_THEM}")),
        (_, 0) => None,
        (all, orphans) if all == orphans => Some(format!(
            "no controller manager runs: this is what the last one said before its lease ended\n  next: {WHO_RUNS_THEM}"
        )),
        (all, orphans) => Some(format!("{orphans} of {all} are nobody's: the lease of their leader has ended")),
    }
}

fn row(controller: Controller, now: DateTime<Utc>) -> Vec<String> {
    let none = || "-".to_owned();
    let for_how_long = |time: Option<String>| time.map_or_else(none, |time| since(&time, now));
    let leader = leader(&controller);
    vec![
        controller.name,
        controller.kind,
        leader,
        controller.queue_depth.to_string(),
        for_how_long(controller.oldest_waiting_time),
        controller.in_flight.to_string(),
        controller.retrying.to_string(),
        controller.failures.to_string(),
        controller.quarantined.to_string(),
        controller.checkpoint.unwrap_or_else(none),
        controller.behind_versions.map_or_else(none, |versions| versions.to_string()),
        for_how_long(controller.behind_since_time),
    ]
}

/// Of a hook that has no controller yet.
fn unborn(hook: &IdleHook) -> Vec<String> {
    let known = [format!("hook.{}", hook.name), hook.target.clone(), format!("none ({})", hook.reason)];
    known.into_iter().chain(std::iter::repeat("-".to_owned())).take(HEAD.len()).collect()
}

fn leader(Controller { leader, leading, stopped, .. }: &Controller) -> String {
    match stopped {
        _ if !leading => format!("{leader} (gone)"),
        Some(why) => format!("none ({why})"),
        None => leader.clone(),
    }
}

pub(super) fn since(time: &str, now: DateTime<Utc>) -> String {
    age(time, now).unwrap_or_else(|| time.to_owned())
}
