//! Reconciles the objects of a hook's kind by asking its endpoint.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use chrono::Utc;
use serde_json::{Value, json};
use tidegate_model::{CONDITION_MESSAGE_BYTES_MAX, Object, ObjectKey};
use tidegate_runtime::{Client, Fault, Item, Kind, Next, ReconcileError, Reconciler};
use xxhash_rust::xxh3::Xxh3;

use super::answer::{Answer, HookError};
use super::away::Away;
use super::call::Endpoint;
use super::clear::{Mark, clear};
use super::gather::{Gathered, gather};
use super::related_index::{Note, RelatedIndex};
use super::spec::{CONDITION_PREFIX, HookSpec};
use crate::report::needed;

/// An object that did not change is sent again by a resync only after so long:
/// our own status writes must not make us call again.
const RECALL_AFTER: Duration = Duration::from_secs(60 * 60);
/// After a failure the endpoint has at least this pause for an object, below
/// the queue's first delay: the event of the condition that we wrote is no
/// reason to call.
const PAUSE: Duration = Duration::from_millis(300);

pub struct HookReconciler {
    pub(super) spec: HookSpec,
    pub(super) kind: Kind,
    /// Its name, under which its notes are.
    pub(super) controller: String,
    /// `None` if nothing is sent along.
    pub(super) related: Option<Arc<RelatedIndex>>,
    pub(super) endpoint: Endpoint,
    pub(super) client: Client,
    /// About 150 bytes an object that the hook selects.
    seen: Mutex<HashMap<ObjectKey, Seen>>,
    /// What the hook's status says of the endpoint.
    responding: Mutex<Option<bool>>,
    away: Away,
}

/// What was sent: the digest of all of it, and that of the related objects.
#[derive(Clone, Copy)]
struct Sent {
    all: u64,
    related: u64,
}

/// The last call for an object.
#[derive(Clone)]
struct Seen {
    /// Of what was sent.
    digest: u64,
    /// Of the lease: before the next one, another manager may have called.
    term: Option<i64>,
    at: Instant,
    due: Option<Instant>,
    failures: u32,
    error: Option<HookError>,
}

impl HookReconciler {
    pub fn new(
        spec: HookSpec,
        kind: Kind,
        controller: String,
        related: Option<Arc<RelatedIndex>>,
        endpoint: Endpoint,
        client: Client,
    ) -> Self {
        let (seen, responding, away) = Default::default();
        Self { spec, kind, controller, related, endpoint, client, seen, responding, away }
    }

    async fn call(&self, item: &Item, object: &Object) -> Result<Next, ReconcileError> {
        let gathered = self.gather(item, object).await?;
        let related = gathered.as_ref().map(|gathered| gathered.digest).unwrap_or_default();
        let sent = Sent { all: digest(object, related), related };
        let term = self.client.term();
        let last = self.seen(|seen| seen.get(&item.key).cloned());
        let last = last.filter(|last| last.digest == sent.all && last.term == term);
        if let Some(settled) = last.as_ref().and_then(Seen::settled) {
            return settled;
        }
        let failures = last.map_or(0, |last| last.failures);
        let outcome = match gathered {
            Ok(gathered) => self.ask(item, sent, &gathered, failures + 1).await?,
            Err(excess) => Err(excess),
        };
        let (due, error) = match &outcome {
            Ok(answer) => (answer.requeue_after.map(|after| Instant::now() + after), None),
            Err(error) => (None, Some(error.clone())),
        };
        self.note(&item.key, Some(Note { digest: related, answered: error.is_none() })).await?;
        let failures = if error.is_some() { failures + 1 } else { 0 };
        let last = Seen { digest: sent.all, term, at: Instant::now(), due, failures, error };
        self.seen(|seen| seen.insert(item.key.clone(), last));
        self.report_endpoint(&item.key, outcome.as_ref().err()).await;
        match outcome {
            Ok(answer) => Ok(answer.requeue_after.map_or(Next::AwaitChange, Next::After)),
            Err(error) => {
                self.report_failure(item, sent, &error).await?;
                Err(error.into())
            }
        }
    }

    async fn gather(&self, item: &Item, object: &Object) -> Result<Result<Gathered, HookError>, ReconcileError> {
        match &self.related {
            Some(index) => gather(&self.client, index, &item.key, object).await,
            None => Ok(Ok(Gathered::default())),
        }
    }

    /// One call, and what it answered is written.
    async fn ask(
        &self,
        item: &Item,
        sent: Sent,
        gathered: &Gathered,
        attempt: u32,
    ) -> Result<Result<Answer, HookError>, ReconcileError> {
        match self.endpoint.call(&item.json, &gathered.objects, attempt, Utc::now().timestamp()).await {
            Ok(answer) => Ok(self.accept(item, sent, &answer).await?.map(|()| answer)),
            Err(error) => Ok(Err(error)),
        }
    }

    /// Saved after the answer is: a crash in between repeats the call.
    async fn note(&self, key: &ObjectKey, note: Option<Note>) -> Result<(), ReconcileError> {
        let Some(index) = self.related.as_ref().filter(|index| index.note(key) != note) else { return Ok(()) };
        self.client.set_note(&self.controller, key, note.map(Note::to_bytes)).await?;
        index.set_note(key, note);
        Ok(())
    }

    /// It was ours, perhaps, before its labels or the hook changed.
    async fn leave(&self, key: &ObjectKey, object: Option<&Object>) -> Result<Next, ReconcileError> {
        self.seen(|seen| seen.remove(key));
        let mark = Mark::of_hook(&self.spec.name);
        if object.is_some_and(|object| mark.is_on(object)) {
            clear(&self.client, &self.kind, key, &[mark]).await?;
        }
        self.note(key, None).await?;
        Ok(Next::AwaitChange)
    }

    /// Writes the status that the endpoint answered. The inner error is that
    /// the server does not take it.
    async fn accept(&self, item: &Item, sent: Sent, answer: &Answer) -> Result<Result<(), HookError>, ReconcileError> {
        let mut patch = answer.status.clone().unwrap_or_else(|| json!({}));
        if let Some(reserved) = reserved(&patch) {
            return Ok(Err(HookError::Terminal(format!(
                "the endpoint tried to write the condition `{reserved}`: those of {CONDITION_PREFIX} say how calls ended, and are written here"
            ))));
        }
        let generation = item.object()?.generation();
        self.add_condition(&mut patch, generation, "True", "Answered", "");
        match self.write(item, sent, patch).await {
            Ok(()) => Ok(Ok(())),
            Err(ReconcileError::Terminal(source)) => {
                Ok(Err(HookError::Terminal(format!("the endpoint's status is refused: {source}"))))
            }
            Err(error) => Err(error),
        }
    }

    async fn report_failure(&self, item: &Item, sent: Sent, error: &HookError) -> Result<(), ReconcileError> {
        let (reason, message) = match error {
            HookError::Unreachable(message) => ("EndpointUnreachable", message),
            HookError::TooMuch(message) => ("TooMuchRelated", message),
            HookError::Retryable(message) => ("Retrying", message),
            HookError::Terminal(message) => ("Refused", message),
        };
        let mut patch = json!({});
        self.add_condition(&mut patch, item.object()?.generation(), "False", reason, message);
        match self.write(item, sent, patch).await {
            // The kind has no place for it: the queue's own report remains.
            Err(ReconcileError::Terminal(_)) => Ok(()),
            written => written,
        }
    }

    /// Only into the object that was sent: another spec gets another call.
    async fn write(&self, item: &Item, sent: Sent, patch: Value) -> Result<(), ReconcileError> {
        let patch = |current: &Item| {
            let object = current.object()?;
            Ok(if digest(&object, sent.related) == sent.all { needed(&object, patch.clone()) } else { None })
        };
        self.client.report(&self.kind, &item.key, patch).await.map(drop)
    }

    fn add_condition(&self, patch: &mut Value, generation: i64, status: &str, reason: &str, message: &str) {
        let condition = json!({
            "type": self.spec.condition_type(), "status": status, "reason": reason, "message": clipped(message),
            "observedGeneration": generation,
        });
        let Value::Object(fields) = patch else { return };
        // Anything but a list is nonsense, which the server refuses.
        if let Value::Array(conditions) = fields.entry("conditions").or_insert_with(|| json!([])) {
            conditions.push(condition);
        }
    }

    /// On the hook itself, when the endpoint begins or ceases to answer.
    async fn report_endpoint(&self, object: &ObjectKey, error: Option<&HookError>) {
        if matches!(error, Some(HookError::TooMuch(_))) {
            return;
        }
        self.away.hear(&self.spec.name, error);
        let responds = error.is_none();
        let before = self.responding.lock().unwrap_or_else(PoisonError::into_inner).replace(responds);
        if before == Some(responds) {
            return;
        }
        let (status, reason) = if responds { ("True", "Answered") } else { ("False", "CallFailed") };
        let message = error.map(|error| format!("{object}: {error}")).unwrap_or_default();
        let message = clipped(&message);
        let key = super::kind().key(None, &self.spec.name);
        let patch = |item: &Item| {
            let generation = item.object()?.generation();
            let condition = json!({"type": "Responding", "status": status, "reason": reason, "message": message, "observedGeneration": generation});
            Ok(Some(json!({"conditions": [condition]})))
        };
        if let Err(error) = self.client.report(&super::kind(), &key, patch).await {
            tracing::warn!(hook = %self.spec.name, error = error.chain(), "the hook's own status could not be written");
            *self.responding.lock().unwrap_or_else(PoisonError::into_inner) = before;
        }
    }

    fn seen<R>(&self, change: impl FnOnce(&mut HashMap<ObjectKey, Seen>) -> R) -> R {
        change(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Reconciler for HookReconciler {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let item = match self.client.get(&self.kind, key).await {
            // Its definition is on the way out, and this controller with it.
            Err(error) if error.is(Fault::KindNotFound) => None,
            item => item?,
        };
        let object = item.as_ref().map(Item::object).transpose()?;
        match (&item, object) {
            (Some(item), Some(object)) if self.spec.selects(&object) => self.call(item, &object).await,
            (_, object) => self.leave(key, object.as_ref()).await,
        }
    }
}

impl Seen {
    /// What follows without another call; `None` if one is due.
    fn settled(&self) -> Option<Result<Next, ReconcileError>> {
        if let Some(error) = &self.error {
            return (self.at.elapsed() < PAUSE).then(|| Err(error.clone().into()));
        }
        match self.due.map(|due| due.saturating_duration_since(Instant::now())) {
            Some(Duration::ZERO) => None,
            Some(left) => Some(Ok(Next::After(left))),
            None => (self.at.elapsed() < RECALL_AFTER).then_some(Ok(Next::AwaitChange)),
        }
    }
}

impl From<HookError> for ReconcileError {
    fn from(error: HookError) -> Self {
        match error {
            HookError::Unreachable(_) | HookError::TooMuch(_) => Self::unavailable(error),
            HookError::Retryable(_) => Self::retryable(error),
            HookError::Terminal(_) => Self::terminal(error),
        }
    }
}

/// A condition in the patch that is not the endpoint's to write.
fn reserved(patch: &Value) -> Option<&str> {
    let mut kinds = patch["conditions"].as_array()?.iter().filter_map(|condition| condition["type"].as_str());
    kinds.find(|kind| kind.starts_with(CONDITION_PREFIX))
}

/// As much as a condition takes.
fn clipped(message: &str) -> &str {
    &message[..message.floor_char_boundary(CONDITION_MESSAGE_BYTES_MAX)]
}

/// Of what an endpoint decides by: everything but the object's own status, and
/// the related objects by their digest.
fn digest(object: &Object, related: u64) -> u64 {
    let mut root = object.root().clone();
    root.remove("status");
    if let Some(Value::Object(metadata)) = root.get_mut("metadata") {
        metadata.remove("resourceVersion");
    }
    let mut hash = Xxh3::new();
    hash.update(Value::Object(root).to_string().as_bytes());
    hash.update(&related.to_le_bytes());
    hash.digest()
}
