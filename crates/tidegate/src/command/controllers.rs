//! `tidegate controllers`.

use std::io::{self, Write};

use anyhow::Result;
use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::json;
use tidegate_model::terminal::one_line;

use crate::cli::ConnectionArgs;
use crate::client::connect;
use crate::output::{Table, age};

const CONTROLLERS: &str = "{ controllers { name kind leader leading stopped stoppedMessage queueDepth oldestWaitingTime inFlight retrying \
    quarantined failures checkpoint behindVersions behindSinceTime } }";
/// The rest is in the table.
const EXPLAINED_MAX: usize = 10;
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
    stopped_message: Option<String>,
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
    let born = controllers.iter().filter(|controller| controller.is_born());
    let orphans = born.clone().filter(|controller| !controller.leading).count();
    let remark = remark(born.count(), orphans);
    if controllers.is_empty() {
        tell!("{}", remark.unwrap_or_default());
        return Ok(());
    }
    let explained = explained(&controllers);
    let now = Utc::now();
    let rows: Vec<Vec<String>> = controllers.into_iter().map(|each| row(each, now)).collect();
    io::stdout().write_all(Table::new(HEAD).render(&rows).as_bytes())?;
    remark.into_iter().chain(explained).for_each(|line| tell!("{line}"));
    Ok(())
}

/// A line for each that was stopped, or for the first of them.
fn explained(controllers: &[Controller]) -> Vec<String> {
    let stopped: Vec<&Controller> = controllers.iter().filter(|controller| controller.stopped.is_some()).collect();
    let mut lines: Vec<String> = stopped.iter().filter_map(|each| each.explained()).take(EXPLAINED_MAX).collect();
    if lines.is_empty() && !stopped.is_empty() {
        // Of hooks that the caller may not read.
        return vec![STOPPED.to_owned()];
    }
    if stopped.len() > lines.len() {
        let more = stopped.len() - lines.len();
        lines.push(format!("{more} more do not run\n  next: tidegate get hooks -o yaml"));
    }
    lines
}

impl Controller {
    /// A hook that never started has nobody who ran it.
    fn is_born(&self) -> bool {
        !self.leader.is_empty()
    }

    fn explained(&self) -> Option<String> {
        let (reason, message) = (self.stopped.as_ref()?, self.stopped_message.as_ref()?);
        let line = format!("hook {} does not run ({reason}): {message}", self.hook()?);
        Some(one_line(&line).into_owned())
    }

    /// Of `hook.<name>.<hash>`, where a name may have dots; without the hash if
    /// it never started.
    fn hook(&self) -> Option<&str> {
        let name = self.name.strip_prefix("hook.")?;
        if self.is_born() { name.rsplit_once('.').map(|(hook, _)| hook) } else { Some(name) }
    }
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
    if !controller.is_born() {
        let known = [controller.name, controller.kind, leader];
        return known.into_iter().chain(std::iter::repeat_with(none)).take(HEAD.len()).collect();
    }
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

fn leader(controller: &Controller) -> String {
    let Controller { leader, leading, stopped, .. } = controller;
    match stopped {
        _ if controller.is_born() && !leading => format!("{leader} (gone)"),
        Some(why) => format!("none ({why})"),
        None => leader.clone(),
    }
}

pub(super) fn since(time: &str, now: DateTime<Utc>) -> String {
    age(time, now).unwrap_or_else(|| time.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stopped(name: &str, leader: &str, message: Option<&str>) -> Controller {
        let value = json!({
            "name": name, "kind": "Site", "leader": leader, "leading": !leader.is_empty(), "stopped": "KindNotFound",
            "stoppedMessage": message, "queueDepth": 0, "inFlight": 0, "retrying": 0, "quarantined": 0, "failures": 0,
        });
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_line_each_and_an_end() {
        let message = Some("there is none:\u{1b}[2J push it");
        for (name, leader, hook) in
            [("hook.a.0123", "me", "a"), ("hook.a.b.0123", "me", "a.b"), ("hook.a.b", "", "a.b")]
        {
            let line = format!("hook {hook} does not run (KindNotFound): there is none:\\033[2J push it");
            assert_eq!(explained(&[stopped(name, leader, message)]), [line]);
        }
        let many: Vec<Controller> = (0..12).map(|at| stopped(&format!("hook.{at}"), "", message)).collect();
        let lines = explained(&many);
        assert!(lines.len() == 11 && lines[10].starts_with("2 more do not run"), "{lines:?}");
        assert_eq!(explained(&[stopped("hook.a", "", None)]), [STOPPED]);
        assert!(explained(&[]).is_empty());
    }

    #[test]
    fn a_hook_that_never_ran_has_no_numbers() {
        let cells = row(stopped("hook.a", "", None), Utc::now());
        assert_eq!(cells[..4], ["hook.a", "Site", "none (KindNotFound)", "-"].map(String::from));
        assert_eq!(cells.len(), HEAD.len());
    }
}
