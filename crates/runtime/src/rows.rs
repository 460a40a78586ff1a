//! How a controller's durable state is laid out in rows.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tidegate_model::{ObjectKey, ResourceVersion};

use crate::{Kind, StateChange, StateRow};

/// Everything before this was reconciled, or is among [`UNFINISHED`].
pub const CHECKPOINT: &str = "checkpoint";
/// What the controller says of itself, for `tidegate controllers`.
pub const REPORT: &str = "report";
/// One row for each key that was ever handed to the reconciler and is not
/// known to be gone: what is missing from a later list was deleted meanwhile.
pub const KNOWN: &str = "known/";
/// One row for each key that failed, is quarantined, or asked to be run later.
pub const UNFINISHED: &str = "unfinished/";
/// Written by an operator: a key to try now, or one of those below.
pub const RELEASE: &str = "release/";
/// Whatever is in quarantine.
pub const RELEASE_QUARANTINED: &str = "*";
/// Whatever has failed, also if it would be tried again by itself.
pub const RELEASE_FAILED: &str = "**";

/// One row for each key of which the reconciler itself remembers something.
pub const NOTE: &str = "note/";

/// What there may be of a controller; its report last, so that one of which
/// something is left is still seen.
pub(crate) const OF_CONTROLLERS: [&str; 6] = [RELEASE, UNFINISHED, KNOWN, NOTE, CHECKPOINT, REPORT];

/// Of a durable index: up to where its [`RECORDS`] go, as [`SavedIndex`].
pub const INDEX: &str = "index";
/// One row for each object that the index holds: `records/PLURAL NAMESPACE NAME`.
pub const RECORDS: &str = "records/";
/// A hundred times what an ordinary product needs. Two of them in base64 fit
/// in one request.
pub const RECORD_BYTES_MAX: usize = 1 << 20;

/// Whether and from where a restart may go on with the records of an index.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SavedIndex {
    pub format: u32,
    /// Of these records: all of them were written under it, or changed since.
    pub id: u64,
    /// By plural: every event up to this version is in the records.
    pub versions: BTreeMap<String, String>,
    /// Some records are newer than that: a save of several writes has begun.
    #[serde(default)]
    pub torn: bool,
    /// What the index says of all of them together.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub summary: Value,
}

pub(crate) fn record_prefix(kind: &Kind) -> String {
    format!("{RECORDS}{} ", kind.resource.plural)
}

pub(crate) fn record_name(key: &ObjectKey) -> String {
    format!("{RECORDS}{} {}", key.resource.plural, key_text(key))
}

pub(crate) fn record(key: &ObjectKey, value: Option<Bytes>) -> StateChange {
    StateChange { name: record_name(key), value }
}

/// A key that needs another run although nothing changes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unfinished {
    /// Failures in a row, which the backoff goes by; 0 for a key that only
    /// asked to be run later.
    pub failures: u32,
    /// Those of them that count towards quarantine.
    pub attempts: u32,
    /// The generation that was last tried; 0 if it is not known.
    pub generation: i64,
    /// When it runs again, in milliseconds since 1970; `None` if quarantined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due_ms: Option<u64>,
    /// The last failure.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// Since when it has not succeeded, in milliseconds since 1970.
    pub since_ms: u64,
    /// What is to be done about the condition `Stalled`; `None` if the object
    /// does not show it because of us.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalled: Option<Stalled>,
}

/// Recorded before the condition is written, and until it is gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Stalled {
    /// The object may not say yet what it should.
    Due,
    Shown,
    /// The key has succeeded: the row goes when the condition is gone.
    Leaving,
}

impl Unfinished {
    pub fn is_quarantined(&self) -> bool {
        self.due_ms.is_none()
    }

    /// In quarantine, or waiting for its next attempt.
    pub fn has_failed(&self) -> bool {
        self.is_quarantined() || self.failures > 0
    }
}

/// `namespace name`. A space sorts before whatever a name may hold, so rows
/// have the order of namespace and name.
pub fn key_text(key: &ObjectKey) -> String {
    format!("{} {}", key.namespace.as_deref().unwrap_or_default(), key.name)
}

pub fn parse_key(kind: &Kind, text: &str) -> Option<ObjectKey> {
    let (namespace, name) = text.split_once(' ')?;
    Some(kind.key(Some(namespace).filter(|namespace| !namespace.is_empty()), name))
}

pub(crate) fn put(name: String, value: impl Into<Bytes>) -> StateChange {
    StateChange { name, value: Some(value.into()) }
}

pub(crate) fn remove(name: String) -> StateChange {
    StateChange { name, value: None }
}

pub(crate) fn known(key: &ObjectKey) -> StateChange {
    put(format!("{KNOWN}{}", key_text(key)), Bytes::new())
}

pub(crate) fn forgotten(key: &ObjectKey) -> StateChange {
    remove(format!("{KNOWN}{}", key_text(key)))
}

pub(crate) fn unfinished(key: &ObjectKey, row: Option<&Unfinished>) -> StateChange {
    let value = row.map(|row| serde_json::to_vec(row).unwrap_or_default().into());
    StateChange { name: format!("{UNFINISHED}{}", key_text(key)), value }
}

pub(crate) fn checkpoint(version: ResourceVersion) -> StateChange {
    put(CHECKPOINT.into(), version.to_string())
}

pub(crate) fn read_checkpoint(row: &StateRow) -> Option<ResourceVersion> {
    std::str::from_utf8(&row.value).ok()?.parse().ok()
}

/// What a row with a key in its name says; `None` if it is not readable, which
/// is reported and passed over.
pub(crate) fn read_unfinished(kind: &Kind, row: &StateRow) -> Option<(ObjectKey, Unfinished)> {
    let key = parse_key(kind, row.name.strip_prefix(UNFINISHED)?)?;
    match serde_json::from_slice(&row.value) {
        Ok(unfinished) => Some((key, unfinished)),
        Err(error) => {
            tracing::error!(%key, %error, "an unfinished key's record cannot be read: it is run at once");
            Some((
                key,
                Unfinished {
                    failures: 0,
                    attempts: 0,
                    generation: 0,
                    due_ms: Some(0),
                    error: String::new(),
                    since_ms: 0,
                    // Nobody knows: it is looked at.
                    stalled: Some(Stalled::Due),
                },
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_they_were_written_and_sort_by_namespace() {
        let kind = Kind::new("v1", "Thing", "things");
        let keys: Vec<ObjectKey> = [(None, "z"), (Some("a"), "b.c"), (Some("a"), "x"), (Some("a-b"), "a")]
            .map(|(namespace, name)| kind.key(namespace, name))
            .into();
        let texts: Vec<String> = keys.iter().map(key_text).collect();
        assert!(texts.is_sorted(), "{texts:?}");
        for (key, text) in keys.iter().zip(&texts) {
            assert_eq!(parse_key(&kind, text).as_ref(), Some(key));
        }
    }
}
