//! `tidegate controllers` and `tidegate quarantine`.

use std::io::{self, Write};

use anyhow::{Result, bail};
use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::json;
use tidegate_client::Client;

use super::UsageError;
use super::idle_hooks::{IdleHook, explained, idle_hooks, without_controller};
use crate::cli::{ConnectionArgs, QuarantineArgs, QuarantineCommand};
use crate::client::connect;
use crate::nearest::hint;
use crate::output::{Table, age, unless_gone};

const CONTROLLERS: &str = "{ controllers { name kind leader leading stopped queueDepth oldestWaitingTime inFlight delayed quarantined \
    failures checkpoint behindVersions behindSinceTime } }";
const QUARANTINE: &str = "query($controller: String) { quarantine(controller: $controller) { \
    controller namespace name attempts error since } }";
const STOPPED: &str = "some do not run: the condition Ready of their hook says why\n  next: tidegate get hooks -o yaml";
const HEAD: [&str; 12] = [
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
const NAMES: &str = "{ controllers { name } }";
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
    leading: bool,
    stopped: Option<String>,
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
    let next = "`tidegate serve` runs a manager unless --controllers=off, `tidegate control` runs one elsewhere";
    match (all, orphans) {
        (0, _) => Some(format!("no controller has ever run on this server\n  next: {next}")),
        (_, 0) => None,
        (all, orphans) if all == orphans => Some(format!(
            "no controller manager runs: this is what the last one said before its lease ended\n  next: {next}"
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
        controller.delayed.to_string(),
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

fn since(time: &str, now: DateTime<Utc>) -> String {
    age(time, now).unwrap_or_else(|| time.to_owned())
}

#[derive(Deserialize)]
struct Names {
    controllers: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
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
        QuarantineCommand::Release { all: false, controller, key: None } => Err(what_to_release(controller.as_deref())),
        QuarantineCommand::Release { controller, key, .. } => {
            release(&client, controller.as_deref(), key.as_deref()).await
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

/// What is in quarantine, of one controller or of all.
async fn held(client: &Client, controller: Option<&str>) -> Result<Vec<Held>> {
    let held = client.query::<Quarantine>(QUARANTINE, json!({"controller": controller})).await?.quarantine;
    match controller {
        // Nothing, or a name that was mistyped.
        Some(controller) if held.is_empty() => check_name(client, controller).await?,
        _ => {}
    }
    Ok(held)
}

async fn check_name(client: &Client, controller: &str) -> Result<()> {
    // Who may not list them need not know which there are.
    let Ok(found) = client.query::<Names>(NAMES, json!({})).await else { return Ok(()) };
    let names: Vec<&str> = found.controllers.iter().map(|named| named.name.as_str()).collect();
    if names.contains(&controller) {
        return Ok(());
    }
    let known = if names.is_empty() {
        "no controller has ever run on this server".into()
    } else {
        format!("there are {}", names.join(", "))
    };
    let of_hook = format!("hook.{controller}.");
    let meant = match names.iter().find(|name| name.starts_with(&of_hook)) {
        Some(name) => format!(": did you mean `{name}`, the controller of that hook?"),
        None => hint(controller, names.iter().copied()),
    };
    bail!("there is no controller `{controller}`{meant}\n  next: {known}")
}

fn what_to_release(controller: Option<&str>) -> anyhow::Error {
    let all = controller.map_or("--all".to_owned(), |controller| format!("--all --controller {controller}"));
    UsageError(format!(
        "say what to release: an object as NAMESPACE/NAME (NAME for cluster scope), or {all}\n  \
         next: `tidegate quarantine list` shows what is in quarantine, and why"
    ))
    .into()
}

impl Held {
    fn key(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{namespace}/{}", self.name),
            None => self.name.clone(),
        }
    }
}

/// All of them without a key.
async fn release(client: &Client, controller: Option<&str>, key: Option<&str>) -> Result<()> {
    let held = held(client, controller).await?;
    let wanted: Vec<&Held> = held.iter().filter(|held| key.is_none_or(|key| key == held.key())).collect();
    if wanted.is_empty() {
        match key {
            Some(key) => bail!("`{key}` is not in quarantine\n  next: `tidegate quarantine list` shows what is"),
            None => {
                let whose = controller.map_or_else(String::new, |controller| format!(" of {controller}"));
                return Ok(unless_gone(writeln!(io::stdout(), "nothing{whose} is in quarantine"))?);
            }
        }
    }
    for held in &wanted {
        let input = json!({"controller": held.controller, "namespace": held.namespace, "name": held.name});
        client.query::<serde_json::Value>(RELEASE, json!({"input": input})).await?;
        unless_gone(writeln!(io::stdout(), "{} {} released", held.controller, held.key()))?;
    }
    Ok(())
}
