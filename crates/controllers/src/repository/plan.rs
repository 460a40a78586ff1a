//! When to look at a repository, and what to report of it. Pure.

use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};
use tidegate_model::{Object, StatusMerge, merge_status};
use tidegate_runtime::{Backoff, Next};
use tokio::time::Instant;

use super::{Outcome, interval};

const INTERVAL_DEFAULT: Duration = Duration::from_secs(60);
/// A host that stays away is asked this seldom, or at the interval if that is
/// longer.
const RETRY_MAX: Duration = Duration::from_secs(15 * 60);
/// Looks that were due together do not stay so: up to a tenth earlier.
const JITTER: f64 = 0.1;
/// Of a condition's message, whose limit is 32 KiB.
const MESSAGE_BYTES_MAX: usize = 30 << 10;
/// What passes by itself; everything else waits for somebody to act.
const TRANSIENT: [&str; 6] =
    ["Unreachable", "TimedOut", "FetchFailed", "ProjectionFailed", "ProvisioningFailed", "Superseded"];

/// What is known of a repository since it was last looked at.
#[derive(Clone, PartialEq, Debug)]
pub struct Memory {
    uid: String,
    generation: i64,
    outcome: Outcome,
    /// Looks in a row that found nothing.
    failures: u32,
    /// Without jitter, for people.
    delay: Option<Duration>,
    due: Option<Instant>,
    fetched: bool,
}

pub enum Step {
    Wait(Next),
    /// The server has noted what a push, or somebody else's sync, brought:
    /// nothing to look for.
    Take(Outcome),
    Look,
}

pub fn step(object: &Object, memory: Option<&Memory>, now: Instant) -> Step {
    let Some(memory) = memory.filter(|memory| memory.is_of(object)) else { return Step::Look };
    if is_requested(object) || memory.due.is_some_and(|due| due <= now) {
        return Step::Look;
    }
    let observed = object.status().and_then(|status| status.get("observedCommit")).and_then(Value::as_str);
    match in_force(object).filter(|noted| noted.commit.as_deref() != observed) {
        Some(noted) if memory.outcome.in_force || is_remote(object) => Step::Take(noted),
        // A push that mended something may have left other problems.
        Some(_) => Step::Look,
        None => Step::Wait(memory.next(now)),
    }
}

impl Memory {
    pub fn new(object: &Object, outcome: Outcome, before: Option<&Self>, now: Instant, chance: f64) -> Self {
        let has_commit = outcome.in_force || outcome.reason == "Invalid";
        let before = before.filter(|before| before.is_of(object));
        let failures = if has_commit { 0 } else { before.map_or(0, |before| before.failures) + 1 };
        let delay = is_remote(object).then(|| delay(interval_of(object), failures)).or_else(|| {
            // A hosted one that failed is tried again; else a push wakes us.
            (failures > 0 || !outcome.in_force).then(|| delay(INTERVAL_DEFAULT, failures))
        });
        let due = delay.map(|delay| now + delay.mul_f64(1.0 - JITTER * chance.clamp(0.0, 1.0)));
        let uid = object.uid().unwrap_or_default().to_owned();
        let fetched = is_remote(object) && has_commit;
        Self { uid, generation: object.generation(), outcome, failures, delay, due, fetched }
    }

    pub fn next(&self, now: Instant) -> Next {
        self.due.map_or(Next::AwaitChange, |due| Next::After(due.saturating_duration_since(now)))
    }

    fn is_of(&self, object: &Object) -> bool {
        self.generation == object.generation() && Some(&*self.uid) == object.uid()
    }
}

fn delay(interval: Duration, failures: u32) -> Duration {
    let backoff = Backoff { first: interval, max: RETRY_MAX.max(interval) };
    if failures == 0 { interval } else { backoff.delay(failures, 1.0) }
}

/// The patch of `object`'s status that says what `memory` knows of its
/// `generation`; `None` if it says so already. The time of a fetch alone is no
/// reason to write.
pub fn report(
    object: &Object,
    generation: i64,
    requested: Option<&str>,
    memory: &Memory,
    now: DateTime<Utc>,
) -> Option<Value> {
    let outcome = &memory.outcome;
    let mut patch = json!({"observedGeneration": generation, "conditions": conditions(generation, memory)});
    if let Some(requested) = requested {
        patch["syncHandledAt"] = requested.into();
    }
    if outcome.in_force {
        patch["observedCommit"] = json!(outcome.commit);
        patch["objects"] = json!(outcome.objects);
        patch["files"] = json!(outcome.files);
    }
    if outcome.in_force || outcome.reason == "Invalid" {
        patch["attemptedCommit"] = json!(outcome.commit);
    }
    let context = StatusMerge { now, generation: object.generation() };
    let merged = merge_status(object.status(), &patch, &context);
    // What cannot be merged is refused by the server, with the reason.
    if merged.is_ok_and(|merged| !merged.changed) {
        return None;
    }
    if memory.fetched {
        patch["lastFetchTime"] = now.to_rfc3339_opts(SecondsFormat::Secs, true).into();
    }
    Some(patch)
}

fn conditions(generation: i64, memory: &Memory) -> Value {
    let outcome = &memory.outcome;
    let message = message(memory);
    let entry = |kind: &str, holds: bool| {
        let status = if holds { "True" } else { "False" };
        json!({
            "type": kind, "status": status, "reason": outcome.reason, "message": message,
            "observedGeneration": generation,
        })
    };
    let absent = |kind: &str| json!({"type": kind, "$patch": "delete"});
    let passes = TRANSIENT.contains(&&*outcome.reason);
    let holds = outcome.in_force;
    json!([
        entry("Synced", holds),
        entry("Ready", holds),
        if !holds && passes { entry("Reconciling", true) } else { absent("Reconciling") },
        if !holds && !passes { entry("Stalled", true) } else { absent("Stalled") },
    ])
}

fn message(memory: &Memory) -> String {
    let Memory { outcome, delay, failures, .. } = memory;
    let mut text = outcome.message.clone();
    for problem in &outcome.problems {
        text.push('\n');
        text.push_str(problem);
    }
    if text.len() > MESSAGE_BYTES_MAX {
        let end = (0..=MESSAGE_BYTES_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
        text.truncate(end);
        text.push('…');
    }
    if let (Some(delay), true) = (delay, *failures > 0) {
        text.push_str(&format!("; the next attempt is within {} s", delay.as_secs().max(1)));
    }
    text
}

/// What the server has noted after a projection.
fn in_force(object: &Object) -> Option<Outcome> {
    let noted = object.status()?.get("inForce")?;
    let commit = noted.get("commit")?.as_str()?;
    let count = |name: &str| noted.get(name).and_then(Value::as_u64);
    Some(Outcome {
        in_force: true,
        reason: "InForce".into(),
        message: format!("{commit} is in force"),
        problems: Vec::new(),
        commit: Some(commit.to_owned()),
        objects: count("objects"),
        files: count("files"),
    })
}

fn is_remote(object: &Object) -> bool {
    object.spec().is_some_and(|spec| spec.get("remote").is_some())
}

fn interval_of(object: &Object) -> Duration {
    let text = object.spec().and_then(|spec| spec["remote"]["interval"].as_str());
    text.and_then(interval::parse).unwrap_or(INTERVAL_DEFAULT)
}

/// The request that waits for a look, as the webhook wrote it.
pub fn requested(object: &Object) -> Option<String> {
    object.status()?.get("syncRequestedAt")?.as_str().map(str::to_owned)
}

fn is_requested(object: &Object) -> bool {
    let time = |name: &str| {
        let text = object.status()?.get(name)?.as_str()?;
        DateTime::parse_from_rfc3339(text).ok()
    };
    let requested = time("syncRequestedAt");
    requested.is_some() && requested > time("syncHandledAt")
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
