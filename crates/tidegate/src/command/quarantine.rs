//! `tidegate quarantine`: what controllers have given up on, and its release.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write};

use anyhow::{Result, bail};
use chrono::Utc;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tidegate_client::Client;

use super::UsageError;
use super::controllers::{WHO_RUNS_THEM, since};
use crate::cli::{FailedArgs, QuarantineArgs, QuarantineCommand, QuarantineFormat};
use crate::client::connect;
use crate::nearest::hint;
use crate::output::{Table, unless_gone, until};

const QUARANTINE: &str = "query($controller: String, $retrying: Boolean) { \
    quarantine(controller: $controller, retrying: $retrying) { \
    controller namespace name attempts error since dueTime } }";
const CONTROLLERS: &str = "{ controllers { name leading stopped } }";
const RELEASE: &str = "mutation($input: ReleaseQuarantineInput!) { releaseQuarantine(input: $input) }";

#[derive(Deserialize)]
struct Quarantine {
    quarantine: Vec<Held>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Held {
    controller: String,
    namespace: Option<String>,
    name: String,
    attempts: u64,
    error: String,
    since: String,
    /// When it is tried again; `None` in quarantine.
    due_time: Option<String>,
}

/// Which of the objects that failed.
#[derive(Clone, Copy)]
struct Which<'a> {
    controller: Option<&'a str>,
    /// Also those that wait for their next attempt.
    retrying: bool,
}

impl Held {
    fn key(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{namespace}/{}", self.name),
            None => self.name.clone(),
        }
    }
}

pub async fn run(args: &QuarantineArgs) -> Result<()> {
    let client = connect(&args.connection)?;
    match &args.command {
        QuarantineCommand::List { which, output } => show(&client, which.into(), *output).await,
        QuarantineCommand::Release { all: false, which, key: None } => {
            Err(what_to_release(which.controller.as_deref()))
        }
        QuarantineCommand::Release { which, key, .. } => release(&client, which.into(), key.as_deref()).await,
    }
}

impl<'a> From<&'a FailedArgs> for Which<'a> {
    fn from(args: &'a FailedArgs) -> Self {
        Self { controller: args.controller.as_deref(), retrying: args.retrying }
    }
}

async fn show(client: &Client, which: Which<'_>, output: QuarantineFormat) -> Result<()> {
    let held = Held::of(client, which).await?;
    let text = match output {
        QuarantineFormat::Table => table(held),
        QuarantineFormat::Json => format!("{}\n", serde_json::to_string_pretty(&held)?),
    };
    Ok(unless_gone(io::stdout().write_all(text.as_bytes()))?)
}

fn table(held: Vec<Held>) -> String {
    let now = Utc::now();
    let row = |held: Held| {
        let (key, since) = (held.key(), since(&held.since, now));
        let next = held.due_time.as_deref().map_or(Some("never".to_owned()), |due| until(due, now));
        vec![held.controller, key, held.attempts.to_string(), since, next.unwrap_or_default(), held.error]
    };
    let rows: Vec<Vec<String>> = held.into_iter().map(row).collect();
    let table = Table::new(["CONTROLLER", "KEY", "ATTEMPTS", "SINCE", "NEXT", "ERROR"]);
    // An error is long, and its end may be what matters.
    let mut table = if io::stdout().is_terminal() { table } else { table.whole() };
    table.render(&rows)
}

impl Held {
    async fn of(client: &Client, Which { controller, retrying }: Which<'_>) -> Result<Vec<Self>> {
        let controller = match controller {
            Some(named) => Some(resolve(client, named).await?),
            None => None,
        };
        let variables = json!({"controller": controller, "retrying": retrying});
        Ok(client.query::<Quarantine>(QUARANTINE, variables).await?.quarantine)
    }
}

#[derive(Deserialize)]
struct Controllers {
    controllers: Vec<Controller>,
}

#[derive(Deserialize)]
struct Controller {
    name: String,
    leading: bool,
    stopped: Option<String>,
}

/// The controller that is meant: a hook's has a name that changes with it.
async fn resolve(client: &Client, named: &str) -> Result<String> {
    // Who may not list them need not know which there are.
    let Ok(found) = client.query::<Controllers>(CONTROLLERS, json!({})).await else { return Ok(named.to_owned()) };
    let names: Vec<&str> = found.controllers.iter().map(|controller| controller.name.as_str()).collect();
    meant(named, &names)
}

fn meant(named: &str, names: &[&str]) -> Result<String> {
    if names.contains(&named) {
        return Ok(named.to_owned());
    }
    let of_hook = if named.starts_with("hook.") { format!("{named}.") } else { format!("hook.{named}.") };
    let of_hook: Vec<&str> = names.iter().copied().filter(|name| name.starts_with(&of_hook)).collect();
    match of_hook[..] {
        [only] => return Ok(only.to_owned()),
        [] => {}
        _ => bail!("`{named}` has several controllers\n  next: name one of {}", of_hook.join(", ")),
    }
    let known = if names.is_empty() {
        "no controller has ever run on this server".into()
    } else {
        format!("there are {}", names.join(", "))
    };
    bail!("there is no controller `{named}`{}\n  next: {known}", hint(named, names.iter().copied()))
}

fn what_to_release(controller: Option<&str>) -> anyhow::Error {
    let all = controller.map_or("--all".to_owned(), |controller| format!("--all --controller {controller}"));
    UsageError(format!(
        "say what to release: an object as NAMESPACE/NAME (NAME for cluster scope), or {all}\n  \
         next: `tidegate quarantine list` shows what is in quarantine, and why"
    ))
    .into()
}

/// All of them without a key.
async fn release(client: &Client, which: Which<'_>, key: Option<&str>) -> Result<()> {
    let held = Held::of(client, which).await?;
    let wanted: Vec<&Held> = held.iter().filter(|held| key.is_none_or(|key| key == held.key())).collect();
    if wanted.is_empty() {
        match key {
            Some(key) if which.retrying => {
                bail!("`{key}` has not failed\n  next: `tidegate quarantine list --retrying` shows what has")
            }
            Some(key) => bail!(
                "`{key}` is not in quarantine\n  next: `tidegate quarantine list` shows what is; --retrying is for what is tried again by itself"
            ),
            None => {
                let whose = which.controller.map_or_else(String::new, |controller| format!(" of {controller}"));
                let what = if which.retrying { "has failed" } else { "is in quarantine" };
                return Ok(unless_gone(writeln!(io::stdout(), "nothing{whose} {what}"))?);
            }
        }
    }
    let controllers: BTreeSet<&str> = wanted.iter().map(|held| &*held.controller).collect();
    for controller in &controllers {
        let mut of_it = wanted.iter().filter(|held| held.controller == **controller).peekable();
        let mut input = json!({"controller": controller, "retrying": which.retrying});
        if let Some(held) = of_it.peek().filter(|_| key.is_some()) {
            (input["namespace"], input["name"]) = (json!(held.namespace), json!(held.name));
        }
        client.query::<serde_json::Value>(RELEASE, json!({"input": input})).await?;
        for held in of_it {
            unless_gone(writeln!(io::stdout(), "{controller} {} released", held.key()))?;
        }
    }
    remark(client, controllers).await;
    Ok(())
}

/// If some of these do not run: a release is theirs to act on.
async fn remark(client: &Client, of: BTreeSet<&str>) {
    let Ok(found) = client.query::<Controllers>(CONTROLLERS, json!({})).await else { return };
    let idle = idle(of, &found.controllers);
    if !idle.is_empty() {
        tell!(
            "nobody runs {} now: what is released is tried when somebody does\n  next: {WHO_RUNS_THEM}",
            idle.join(", ")
        );
    }
}

fn idle<'c>(of: BTreeSet<&'c str>, controllers: &[Controller]) -> Vec<&'c str> {
    let runs = |name: &str| {
        let mut of_name = controllers.iter().filter(|controller| controller.name == name);
        of_name.any(|controller| controller.leading && controller.stopped.is_none())
    };
    of.into_iter().filter(|name| !runs(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_is_meant_by_its_name() {
        let names = ["products", "hook.sizes.a1", "hook.colors.b1", "hook.colors.b2"];
        let check = |named: &str, expected: Result<&str, &str>| match (meant(named, &names), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected),
            (Err(error), Err(expected)) => assert!(error.to_string().contains(expected), "{named}: {error}"),
            (found, _) => panic!("{named}: {found:?}"),
        };
        check("products", Ok("products"));
        check("hook.sizes.a1", Ok("hook.sizes.a1"));
        check("hook.sizes", Ok("hook.sizes.a1"));
        check("sizes", Ok("hook.sizes.a1"));
        check("colors", Err("several controllers\n  next: name one of hook.colors.b1, hook.colors.b2"));
        check("product", Err("did you mean `products`?"));
        check("hook.size", Err("there is no controller"));
    }

    #[test]
    fn a_release_waits_for_whoever_does_not_run() {
        let controller = |name: &str, leading, stopped: Option<&str>| Controller {
            name: name.into(),
            leading,
            stopped: stopped.map(Into::into),
        };
        let all = [
            controller("runs", true, None),
            controller("gone", false, None),
            controller("stopped", true, Some("no kind")),
        ];
        assert_eq!(idle(BTreeSet::from(["gone", "runs", "stopped", "unknown"]), &all), ["gone", "stopped", "unknown"]);
    }
}
