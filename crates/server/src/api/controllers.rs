//! The durable state of controllers: small rows beside the objects, without
//! versions and events, and what operators see and do of it.
//!
//! A row `known/a b` of the controller `x` is the mark `controller/known/x/a b`:
//! by family first, so that what is asked of all controllers at once is
//! together.

use bytes::Bytes;
use chrono::Utc;
use serde_json::Value;
use tidegate_model::{GroupResource, ResourceVersion};
use tidegate_runtime::{ControllerReport, STATE_NAMES_MAX, rows};
use tidegate_store::{CommitError, StoreError, Transaction};

use super::Api;
use super::error::{ApiError, Code};
use super::fence::{Fence, lease_key, lease_lost};
use super::idle_hooks::{self, IdleHooks};
use crate::identity::{Attributes, SUBRESOURCE_QUARANTINE, Session, Verb};

/// Of one answer: about 100 bytes a row.
const ROWS_MAX: usize = 5_000;
/// Of one answer to names; five hundred rows have about 100 KiB as a rule.
const NAMED_BYTES_MAX: usize = 16 << 20;
const ROW_NAME_BYTES_MAX: usize = 1_024;
/// A report, or an error's text with its key.
const ROW_VALUE_BYTES_MAX: usize = 64 << 10;
/// Of one list of quarantined keys.
const QUARANTINED_MAX: usize = 10_000;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateEntry {
    pub name: String,
    pub value: Bytes,
}

/// What a controller last said of itself, and what the server knows of it.
#[derive(Clone, PartialEq, Debug)]
pub struct SeenController {
    pub report: ControllerReport,
    /// How far its checkpoint is behind the store; nothing, if that has gone on
    /// with other kinds only.
    pub behind_versions: Option<u64>,
    /// Since when something waits that it has not reconciled, or not even seen.
    pub behind_since_ms: Option<u64>,
    /// Its leader holds the lease now.
    pub leads: bool,
    /// What is wrong with its hook and what to do, if it was stopped.
    pub stopped_message: Option<String>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct QuarantinedKey {
    pub controller: String,
    /// `None` for cluster scope.
    pub namespace: Option<String>,
    pub name: String,
    pub row: rows::Unfinished,
}

/// Which of the keys that failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failed {
    Quarantined,
    /// Also those that wait for their next attempt.
    OrRetrying,
}

impl Failed {
    fn has(self, row: &rows::Unfinished) -> bool {
        match self {
            Self::Quarantined => row.is_quarantined(),
            Self::OrRetrying => row.has_failed(),
        }
    }

    fn all(self) -> &'static str {
        match self {
            Self::Quarantined => rows::RELEASE_QUARANTINED,
            Self::OrRetrying => rows::RELEASE_FAILED,
        }
    }
}

impl Api {
    /// Rows in order, after the name `after`; none if there are no more.
    pub fn controller_state(
        &self,
        session: &Session,
        controller: &str,
        prefix: &str,
        after: Option<&str>,
    ) -> Result<Vec<StateEntry>, ApiError> {
        self.authorize(session, &attributes(Verb::Get).name(controller))?;
        check_controller(controller)?;
        let mark_prefix = mark(controller, prefix);
        let after = after.map(|after| mark(controller, after));
        let (family, _) = split(prefix);
        let strip = mark(controller, &format!("{family}/"));
        let rows = self.0.store.view().marks(&mark_prefix, after.as_deref()).take(ROWS_MAX);
        rows.map(|row| {
            let (name, value) = row?;
            let rest = name.strip_prefix(&strip).unwrap_or_default();
            let name = if rest.is_empty() { family.to_owned() } else { format!("{family}/{rest}") };
            Ok(StateEntry { name, value })
        })
        .collect()
    }

    /// Those of these rows that there are.
    pub fn controller_rows(
        &self,
        session: &Session,
        controller: &str,
        names: Vec<String>,
    ) -> Result<Vec<StateEntry>, ApiError> {
        self.authorize(session, &attributes(Verb::Get).name(controller))?;
        check_controller(controller)?;
        if names.len() > STATE_NAMES_MAX {
            return Err(ApiError::bad_request(format!(
                "`names` has more than {STATE_NAMES_MAX}: ask in several steps"
            )));
        }
        let view = self.0.store.view();
        let (mut found, mut bytes) = (Vec::new(), 0);
        for name in names {
            let Some(value) = view.mark(&mark(controller, &name))? else { continue };
            bytes += value.len();
            if bytes > NAMED_BYTES_MAX {
                let message = "these rows are too much for one answer: ask for fewer";
                return Err(ApiError::new(Code::TooLarge, message).with("limitBytes", NAMED_BYTES_MAX));
            }
            found.push(StateEntry { name, value });
        }
        Ok(found)
    }

    /// All of it or none, durable when it returns; `None` removes a row.
    pub async fn update_controller_state(
        &self,
        session: &Session,
        controller: &str,
        fence: Option<&Fence>,
        changes: Vec<(String, Option<Bytes>)>,
    ) -> Result<(), ApiError> {
        self.authorize(session, &attributes(Verb::Patch).name(controller))?;
        check_controller(controller)?;
        changes.iter().try_for_each(check_row)?;
        let marks = changes.into_iter().map(|(name, value)| (mark(controller, &name), value)).collect();
        let writes = fence.map(Fence::guard).into_iter().collect();
        match self.0.store.commit(Transaction { writes, marks }).await {
            Ok(_) => Ok(()),
            Err(CommitError::Conflict { .. }) => Err(lease_lost()),
            Err(error) => Err(error.into()),
        }
    }

    /// A hook's message is part of its object: for who may list those.
    pub fn controllers(&self, session: &Session) -> Result<Vec<SeenController>, ApiError> {
        self.authorize(session, &attributes(Verb::List))?;
        let mut seen = self.seen_controllers()?;
        if self.authorize(session, &Attributes::new(Verb::List, &idle_hooks::resource())).is_err() {
            seen.iter_mut().for_each(|seen| seen.stopped_message = None);
        }
        Ok(seen)
    }

    /// Those that have ever run, and hooks that never could.
    pub fn seen_controllers(&self) -> Result<Vec<SeenController>, StoreError> {
        let view = self.0.store.view();
        let idle = IdleHooks::read(&view)?;
        let mut reports = Vec::new();
        for row in view.marks(&format!("{ROOT}report/"), None) {
            let (name, value) = row?;
            match serde_json::from_slice::<ControllerReport>(&value) {
                Ok(report) => {
                    let behind_since_ms = self.behind_since_ms(&report);
                    let behind_versions = match behind_since_ms {
                        None => Some(0),
                        Some(_) => behind(&report, self.0.store.epoch(), view.version()),
                    };
                    let lease = view.get(&lease_key(&report.lease_namespace, &report.lease_name))?;
                    let leads = lease.is_some_and(|lease| fence(&report).is_held(&lease, Utc::now()));
                    let stopped_message = idle.message_of(&report);
                    reports.push(SeenController { report, behind_versions, behind_since_ms, leads, stopped_message });
                }
                Err(error) => tracing::warn!(%name, %error, "a controller's report cannot be read"),
            }
        }
        reports.extend(idle.unborn(&reports));
        Ok(reports)
    }

    /// Since when something waits that a controller has not reconciled, or not
    /// even heard of: then, when its kind last changed.
    pub fn behind_since_ms(&self, report: &ControllerReport) -> Option<u64> {
        report.behind_since_ms.or_else(|| self.unseen_since_ms(report))
    }

    fn unseen_since_ms(&self, report: &ControllerReport) -> Option<u64> {
        let kind = self.kind(&report.api_version, &report.kind).ok()?;
        let last = self.0.store.last_change(&kind.kind.resource);
        let received: Option<ResourceVersion> = report.received.as_deref().and_then(|version| version.parse().ok());
        received.is_none_or(|received| received < last.version).then_some(last.time_ms)
    }

    pub fn quarantine(
        &self,
        session: &Session,
        controller: Option<&str>,
        which: Failed,
    ) -> Result<Vec<QuarantinedKey>, ApiError> {
        let wanted = attributes(Verb::Get).subresource(SUBRESOURCE_QUARANTINE);
        self.authorize(session, &controller.map_or(wanted.clone(), |controller| wanted.name(controller)))?;
        self.failed(controller, which)
    }

    fn failed(&self, controller: Option<&str>, which: Failed) -> Result<Vec<QuarantinedKey>, ApiError> {
        let prefix = format!("{ROOT}unfinished/");
        let within = controller.map_or(prefix.clone(), |controller| format!("{prefix}{controller}/"));
        let mut found = Vec::new();
        for row in self.0.store.view().marks(&within, None) {
            let (name, value) = row?;
            let parsed = name.strip_prefix(&prefix).and_then(|rest| rest.split_once('/'));
            let Some((controller, (namespace, name))) =
                parsed.and_then(|(controller, key)| Some((controller, key.split_once(' ')?)))
            else {
                continue;
            };
            let Ok(row) = serde_json::from_slice::<rows::Unfinished>(&value) else { continue };
            if which.has(&row) {
                let namespace = Some(namespace).filter(|namespace| !namespace.is_empty()).map(Into::into);
                found.push(QuarantinedKey { controller: controller.into(), namespace, name: name.into(), row });
            }
            if found.len() >= QUARANTINED_MAX {
                break;
            }
        }
        Ok(found)
    }

    /// Asks the controller to run a key that failed again, or all of them; it
    /// does so within its save interval. How many there are, as far as they
    /// are listed.
    pub async fn release_quarantine(
        &self,
        session: &Session,
        controller: &str,
        key: Option<(Option<&str>, &str)>,
        which: Failed,
    ) -> Result<u64, ApiError> {
        let wanted = attributes(Verb::Patch).subresource(SUBRESOURCE_QUARANTINE).name(controller);
        self.authorize(session, &wanted)?;
        check_controller(controller)?;
        let count = match key {
            Some((namespace, name)) => {
                let row = format!("{}{} {name}", rows::UNFINISHED, namespace.unwrap_or_default());
                let row = self.0.store.view().mark(&mark(controller, &row))?;
                let row = row.and_then(|row| serde_json::from_slice(&row).ok());
                u64::from(row.is_some_and(|row| which.has(&row)))
            }
            None => self.failed(Some(controller), which)?.len() as u64,
        };
        if count == 0 {
            let what = key.map_or("nothing".to_owned(), |(_, name)| format!("no `{name}`"));
            let message =
                format!("{what} is in the quarantine of `{controller}`: `tidegate quarantine list` shows what is");
            return Err(ApiError::new(Code::NotFound, message));
        }
        let row = match key {
            Some((namespace, name)) => format!("{}{} {name}", rows::RELEASE, namespace.unwrap_or_default()),
            None => format!("{}{}", rows::RELEASE, which.all()),
        };
        check_row(&(row.clone(), None))?;
        let marks = vec![(mark(controller, &row), Some(Bytes::new()))];
        self.0.store.commit(Transaction { writes: Vec::new(), marks }).await?;
        Ok(count)
    }
}

const ROOT: &str = "controller/";

fn split(row: &str) -> (&str, &str) {
    row.split_once('/').unwrap_or((row, ""))
}

fn mark(controller: &str, row: &str) -> String {
    let (family, rest) = split(row);
    format!("{ROOT}{family}/{controller}/{rest}")
}

fn attributes(verb: Verb) -> Attributes {
    Attributes::new(verb, &GroupResource::new("tidegate.dev", "controllerstates"))
}

/// The term that a controller worked under when it said so.
fn fence(report: &ControllerReport) -> Fence {
    Fence {
        namespace: report.lease_namespace.clone(),
        name: report.lease_name.clone(),
        holder: report.leader.clone(),
        transitions: report.lease_transitions,
    }
}

/// `None` without a checkpoint, or with one of another epoch, from which
/// nothing can be counted.
fn behind(report: &ControllerReport, epoch: ResourceVersion, newest: ResourceVersion) -> Option<u64> {
    let checkpoint: ResourceVersion = report.checkpoint.as_deref()?.parse().ok()?;
    (checkpoint >= epoch).then(|| newest.raw().saturating_sub(checkpoint.raw()))
}

fn check_controller(name: &str) -> Result<(), ApiError> {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    if name.is_empty() || name.len() > 63 || !name.bytes().all(is_fine) {
        let message = "`controller` is not a controller's name: letters, digits, `-` and `.`, 63 at most";
        return Err(ApiError::bad_request(message));
    }
    Ok(())
}

fn check_row((name, value): &(String, Option<Bytes>)) -> Result<(), ApiError> {
    let (family, _) = split(name);
    let families = ["checkpoint", "report", "known", "unfinished", "release", "index", "records", "note"];
    if !families.contains(&family) || name.len() > ROW_NAME_BYTES_MAX || name.contains(char::is_control) {
        return Err(ApiError::bad_request(format!(
            "`{}` is not a row of a controller's state: it begins with one of {}, and has at most {ROW_NAME_BYTES_MAX} bytes",
            Value::from(name.chars().take(64).collect::<String>()),
            families.join(", ")
        )));
    }
    let limit = if family == "records" { rows::RECORD_BYTES_MAX } else { ROW_VALUE_BYTES_MAX };
    match value {
        Some(value) if value.len() > limit => {
            let message = format!("a row has {} bytes: the limit is {limit}", value.len());
            Err(ApiError::new(Code::TooLarge, message).with("limitBytes", limit))
        }
        _ => Ok(()),
    }
}
