//! One run of one key: contained, timed, judged.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tidegate_model::ObjectKey;

use crate::controller::DynReconciler;
use crate::{Client, Kind, Next, ReconcileError};

/// Of an error's text: it is saved, listed and shown on the object.
const ERROR_BYTES_MAX: usize = 2_048;

#[derive(Debug)]
pub(crate) struct Run {
    pub key: ObjectKey,
    pub generation: i64,
    /// Failures in a row before this run.
    pub failures: u32,
    /// Those of them that count towards quarantine.
    pub attempts: u32,
    /// The object was deleted, as far as we have heard.
    pub gone: bool,
}

/// What became of a run, and of the key.
#[derive(Debug)]
pub(crate) struct Finished {
    pub run: Run,
    pub verdict: Verdict,
    pub panicked: bool,
    /// Seen to be gone after the run: whatever the run made of the object, it
    /// made of none. Otherwise one of the same name may have come meanwhile.
    pub absent: bool,
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
    pub reconciler: Arc<dyn DynReconciler>,
    pub deadline: Duration,
    pub attempts_max: u32,
    pub kind: Kind,
    pub client: Client,
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
        let succeeded = matches!(verdict, Verdict::Done | Verdict::Again(_));
        let absent = if run.gone && succeeded { self.is_absent(&run.key).await } else { Ok(false) };
        match absent {
            Ok(absent) => Finished { run, verdict, panicked, absent },
            Err(error) => {
                let verdict = Verdict::Retry { counts: false, error };
                Finished { run, verdict, panicked, absent: false }
            }
        }
    }

    async fn is_absent(&self, key: &ObjectKey) -> Result<bool, String> {
        match tokio::time::timeout(self.deadline, self.client.get(&self.kind, key)).await {
            Ok(Ok(found)) => Ok(found.is_none()),
            Ok(Err(error)) => Err(format!("whether the object is gone cannot be seen: {error}")),
            Err(_) => Err(format!("whether the object is gone was not answered within {:?}", self.deadline)),
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

pub(crate) fn clipped(text: &str, bytes_max: usize) -> &str {
    let end = (0..=bytes_max.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}
