//! The `Stalled` condition of quarantined objects: written until it is there,
//! and taken away until it is gone.
//!
//! Invariant: a row of the key says that the condition may be on the object
//! from before it is written until after it is gone. So whatever crash comes
//! in between, the next life knows that there is something to do.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::{Value, json};
use tidegate_model::{CONDITION_MESSAGE_BYTES_MAX, ObjectKey};
use tokio::task::JoinSet;

use crate::clock::{millis, spread};
use crate::queue::Millis;
use crate::worker::clipped;
use crate::{Backoff, Client, Item, Kind, ReconcileError};

/// Writes at once: they must not take the server from the reconciles.
const WRITES_MAX: usize = 4;

/// The reason of a condition `Stalled` that the runtime itself sets.
const QUARANTINED: &str = "Quarantined";

/// Whether a condition says that this controller has its object in quarantine.
/// Several may; one of them shows it, and the next when that one is done.
pub fn is_stalled_by(controller: &str, condition: &Value) -> bool {
    let message = condition["message"].as_str().unwrap_or_default();
    is_stalled(condition) && message.strip_prefix(controller).is_some_and(|rest| rest.starts_with(": "))
}

fn is_stalled(condition: &Value) -> bool {
    condition["type"] == "Stalled" && condition["status"] == "True" && condition["reason"] == QUARANTINED
}

/// What the condition of a key should be: the error, or none.
pub(crate) type Wanted = Option<String>;

/// What became of a write.
pub(crate) struct Marked {
    pub key: ObjectKey,
    /// Whether the condition was to be there.
    pub shown: bool,
    pub outcome: Outcome,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// Also if the object is gone, or its kind has no place for it.
    Settled,
    Failed,
}

/// The keys whose condition is not what it should be.
pub(crate) struct Marks {
    marker: Arc<Marker>,
    /// When each is to be tried.
    due: BTreeSet<(Millis, ObjectKey)>,
    failures: HashMap<ObjectKey, u32>,
    writing: JoinSet<Marked>,
    busy: BTreeSet<ObjectKey>,
}

impl Marks {
    pub fn new(controller: Arc<str>, kind: Kind, client: Client) -> Self {
        let marker = Arc::new(Marker { controller, kind, client });
        Self { marker, due: BTreeSet::new(), failures: HashMap::new(), writing: JoinSet::new(), busy: BTreeSet::new() }
    }

    /// Once the key's row is durable.
    pub fn want(&mut self, key: ObjectKey, now: Millis) {
        self.due.insert((now, key));
    }

    /// The next key to look at, if a write may begin.
    pub fn take(&mut self, now: Millis) -> Option<ObjectKey> {
        if self.writing.len() >= WRITES_MAX {
            return None;
        }
        // One that is being written comes again when that has ended.
        let found = self.due.iter().take_while(|(due, _)| *due <= now).find(|(_, key)| !self.busy.contains(key));
        let found = found.cloned()?;
        self.due.remove(&found);
        Some(found.1)
    }

    pub fn write(&mut self, key: ObjectKey, wanted: Wanted) {
        self.busy.insert(key.clone());
        self.writing.spawn(self.marker.clone().write(key, wanted));
    }

    /// Waits for ever if nothing is being written. Cancel safe.
    pub async fn next(&mut self) -> Marked {
        loop {
            match self.writing.join_next().await {
                // A write that panics has a defect, which the log shows.
                Some(Err(error)) => tracing::error!(%error, "a condition was not written"),
                Some(Ok(marked)) => return marked,
                None => std::future::pending().await,
            }
        }
    }

    pub fn ended(&mut self, marked: &Marked, now: Millis) {
        self.busy.remove(&marked.key);
        if marked.outcome == Outcome::Settled {
            self.failures.remove(&marked.key);
            return;
        }
        let failures = self.failures.entry(marked.key.clone()).or_default();
        *failures += 1;
        let delay = Backoff::default().delay(*failures, spread((&marked.key, *failures)));
        self.due.insert((now + millis(delay), marked.key.clone()));
    }

    pub fn next_due(&self) -> Option<Millis> {
        let is_free = |(_, key): &&(Millis, ObjectKey)| !self.busy.contains(key);
        self.due.iter().find(is_free).map(|(due, _)| *due).filter(|_| self.writing.len() < WRITES_MAX)
    }
}

struct Marker {
    controller: Arc<str>,
    kind: Kind,
    client: Client,
}

impl Marker {
    async fn write(self: Arc<Self>, key: ObjectKey, wanted: Wanted) -> Marked {
        let written = match &wanted {
            Some(error) => self.show(&key, error).await,
            None => self.hide(&key).await,
        };
        let outcome = match written {
            Ok(()) => Outcome::Settled,
            Err(error @ ReconcileError::Terminal(_)) => {
                tracing::warn!(%key, error = error.chain(), "the object has no place for the condition Stalled");
                Outcome::Settled
            }
            Err(error) => {
                tracing::debug!(%key, error = error.chain(), "the condition Stalled was not written: trying again");
                Outcome::Failed
            }
        };
        Marked { key, shown: wanted.is_some(), outcome }
    }

    /// Another controller's stays: two that take turns would never end.
    async fn show(&self, key: &ObjectKey, error: &str) -> Result<(), ReconcileError> {
        let remedy = "Change its spec, or mend the cause and run `tidegate quarantine release`";
        let message = format!("{}: {error}. {remedy}", self.controller);
        let message = clipped(&message, CONDITION_MESSAGE_BYTES_MAX);
        let patch = |item: &Item| {
            let shown = stalled(item)?;
            let is_anothers = shown.is_some_and(|shown| !is_stalled_by(&self.controller, &shown));
            let condition = json!({"type": "Stalled", "status": "True", "reason": QUARANTINED, "message": message,
                "observedGeneration": item.generation()});
            Ok((!is_anothers).then(|| json!({"conditions": [condition]})))
        };
        self.client.report(&self.kind, key, patch).await.map(drop)
    }

    /// Only what this controller has set.
    async fn hide(&self, key: &ObjectKey) -> Result<(), ReconcileError> {
        let patch = |item: &Item| {
            let ours = stalled(item)?.filter(|shown| is_stalled_by(&self.controller, shown));
            Ok(ours.map(|_| json!({"conditions": [{"type": "Stalled", "$patch": "delete"}]})))
        };
        self.client.report(&self.kind, key, patch).await.map(drop)
    }
}

/// What the object says of a quarantine.
fn stalled(item: &Item) -> Result<Option<Value>, ReconcileError> {
    let object = item.object()?;
    let conditions = object.status().and_then(|status| status.get("conditions")).and_then(Value::as_array);
    Ok(conditions.into_iter().flatten().find(|condition| is_stalled(condition)).cloned())
}
