//! Takes away what a hook has left in the status of an object.

use serde_json::{Value, json};
use tidegate_model::{Object, ObjectKey};
use tidegate_runtime::{ApiError, Client, Fault, Item, Kind, QUARANTINED, ReconcileError};

use super::spec::condition_type;

/// A condition, by its type and by its reason if that tells whose it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mark {
    kind: String,
    reason: Option<&'static str>,
}

impl Mark {
    pub fn of_hook(hook: &str) -> Self {
        Self { kind: condition_type(hook), reason: None }
    }

    /// What the runtime has set because a key is in quarantine.
    pub fn of_quarantine() -> Self {
        Self { kind: "Stalled".into(), reason: Some(QUARANTINED) }
    }

    pub fn is_on(&self, object: &Object) -> bool {
        let conditions = object.status().and_then(|status| status.get("conditions")).and_then(Value::as_array);
        let is_it = |condition: &Value| {
            condition["type"] == *self.kind && self.reason.is_none_or(|reason| condition["reason"] == reason)
        };
        conditions.into_iter().flatten().any(is_it)
    }
}

/// Writes nothing if the object is gone, or shows nothing of it.
pub async fn clear(client: &Client, kind: &Kind, key: &ObjectKey, marks: &[Mark]) -> Result<(), ReconcileError> {
    let patch = |item: &Item| {
        let object = item.object()?;
        let shown = marks.iter().filter(|mark| mark.is_on(&object));
        let deleted: Vec<Value> = shown.map(|mark| json!({"type": mark.kind, "$patch": "delete"})).collect();
        Ok((!deleted.is_empty()).then(|| json!({"conditions": deleted})))
    };
    match client.report(kind, key, patch).await {
        // Its objects have gone with it.
        Err(error) if is_kind_gone(&error) => Ok(()),
        // A status that its schema refuses by now: nothing can be written.
        Err(ReconcileError::Terminal(error)) => {
            tracing::warn!(%key, %error, "a hook's condition cannot be taken away");
            Ok(())
        }
        written => written.map(drop),
    }
}

fn is_kind_gone(error: &ReconcileError) -> bool {
    let ReconcileError::Unavailable(source) = error else { return false };
    source.downcast_ref::<ApiError>().is_some_and(|error| error.is(Fault::KindNotFound))
}
