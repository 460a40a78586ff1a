//! One run of one key: contained, timed, judged.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use serde_json::{Value, json};
use tidegate_model::{CONDITION_MESSAGE_BYTES_MAX, ObjectKey};

use crate::controller::DynReconciler;
use crate::{Client, Kind, Next, ReconcileError};

/// Of an error's text: it is saved, listed and shown on the object.
const ERROR_BYTES_MAX: usize = 2_048;

/// The reason of the `Stalled` condition that the runtime itself sets.
const QUARANTINED: &str = "Quarantined";

#[derive(Debug)]
pub(crate) struct Run {
    pub key: ObjectKey,
    pub generation: i64,
    /// Failures in a row before this run.
    pub failures: u32,
    /// Those of them that count towards quarantine.
    pub attempts: u32,
    pub was_parked: bool,
}

/// What became of a run, and of the key.
#[derive(Debug)]
pub(crate) struct Finished {
    pub run: Run,
    pub verdict: Verdict,
    pub panicked: bool,
}

#[derive(PartialEq, Debug)]
pub(crate) enum Verdict {
    Done,
    Again(Duration),
    /// `counts` towards quarantine.
    Retry {
        counts: bool,
        error: String,
    },
    Park {
        error: String,
    },
}

/// What all runs of a controller have in common.
pub(crate) struct Worker {
    pub kind: Kind,
    pub reconciler: Arc<dyn DynReconciler>,
    pub client: Client,
    pub deadline: Duration,
    pub attempts_max: u32,
}

impl Worker {
    pub async fn run(self: Arc<Self>, run: Run) -> Finished {
        let attempts = run.attempts;
        let reconcile = AssertUnwindSafe(self.reconciler.clone().run(run.key.clone())).catch_unwind();
        let outcome = tokio::time::timeout(self.deadline, reconcile).await;
        let panicked = matches!(outcome, Ok(Err(_)));
        let verdict = match outcome {
            Ok(Ok(result)) => judge(result, attempts, self.attempts_max),
            Ok(Err(panic)) => {
                let error = format!("the reconciler panicked: {}", panic_text(&*panic));
                judge(Err(ReconcileError::retryable(error)), attempts, self.attempts_max)
            }
            Err(_) => {
                let error = format!("the reconcile took longer than {:?}", self.deadline);
                judge(Err(ReconcileError::retryable(error)), attempts, self.attempts_max)
            }
        };
        match &verdict {
            Verdict::Park { error } => self.show_parked(&run.key, error).await,
            Verdict::Done | Verdict::Again(_) if run.was_parked => self.hide_parked(&run.key).await,
            _ => {}
        }
        Finished { run, verdict, panicked }
    }

    /// Best effort: the quarantine itself is recorded and listed anyway.
    async fn show_parked(&self, key: &ObjectKey, error: &str) {
        let message = format!("{error}. Change the object, or mend the cause and run `tidegate quarantine release`");
        let message = clipped(&message, CONDITION_MESSAGE_BYTES_MAX);
        let shown = self.client.report(&self.kind, key, |item| {
            let generation = item.generation();
            let condition = json!({"type": "Stalled", "status": "True", "reason": QUARANTINED, "message": message,
                "observedGeneration": generation});
            Ok(Some(json!({"conditions": [condition]})))
        });
        if let Err(error) = shown.await {
            tracing::warn!(%key, error = error.chain(), "the quarantine does not show on the object");
        }
    }

    async fn hide_parked(&self, key: &ObjectKey) {
        let hidden = self.client.report(&self.kind, key, |item| {
            let object = item.object()?;
            let conditions = object.status().and_then(|status| status.get("conditions")).and_then(Value::as_array);
            let is_ours = |condition: &&Value| condition["type"] == "Stalled" && condition["reason"] == QUARANTINED;
            let ours = conditions.into_iter().flatten().find(is_ours);
            Ok(ours.map(|_| json!({"conditions": [{"type": "Stalled", "$patch": "delete"}]})))
        });
        if let Err(error) = hidden.await {
            tracing::warn!(%key, error = error.chain(), "the object still shows the quarantine that it has left");
        }
    }
}

fn judge(result: Result<Next, ReconcileError>, attempts: u32, attempts_max: u32) -> Verdict {
    let error = match result {
        Ok(Next::AwaitChange) => return Verdict::Done,
        Ok(Next::After(delay)) => return Verdict::Again(delay),
        Err(error) => error,
    };
    let text = clipped(&error.chain(), ERROR_BYTES_MAX).to_owned();
    match error {
        ReconcileError::Terminal(_) => Verdict::Park { error: text },
        ReconcileError::Retryable(_) if attempts + 1 >= attempts_max => {
            Verdict::Park { error: format!("{text} ({attempts_max} attempts)") }
        }
        ReconcileError::Retryable(_) => Verdict::Retry { counts: true, error: text },
        ReconcileError::Conflict(_) | ReconcileError::Unavailable(_) => Verdict::Retry { counts: false, error: text },
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

fn clipped(text: &str, bytes_max: usize) -> &str {
    let end = (0..=bytes_max.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}
