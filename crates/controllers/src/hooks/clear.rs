//! Takes away what a hook has left in the status of an object.

use serde_json::{Value, json};
use tidegate_model::{Object, ObjectKey};
use tidegate_runtime::{ApiError, Client, Fault, Item, Kind, ReconcileError, is_stalled_by};

use super::spec::condition_type;

/// A condition that is there because of a hook.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Mark {
    /// Its own, by its type.
    OfHook(String),
    /// What the runtime has set because a key of this controller is in
    /// quarantine.
    OfQuarantine(String),
}

impl Mark {
    pub fn of_hook(hook: &str) -> Self {
        Self::OfHook(condition_type(hook))
    }

    pub fn is_on(&self, object: &Object) -> bool {
        let conditions = object.status().and_then(|status| status.get("conditions")).and_then(Value::as_array);
        conditions.into_iter().flatten().any(|condition| match self {
            Self::OfHook(kind) => condition["type"] == **kind,
            Self::OfQuarantine(controller) => is_stalled_by(controller, condition),
        })
    }

    fn kind(&self) -> &str {
        match self {
            Self::OfHook(kind) => kind,
            Self::OfQuarantine(_) => "Stalled",
        }
    }
}

/// Writes nothing if the object is gone, or shows nothing of it.
pub async fn clear(client: &Client, kind: &Kind, key: &ObjectKey, marks: &[Mark]) -> Result<(), ReconcileError> {
    let patch = |item: &Item| {
        let object = item.object()?;
        let shown = marks.iter().filter(|mark| mark.is_on(&object));
        let deleted: Vec<Value> = shown.map(|mark| json!({"type": mark.kind(), "$patch": "delete"})).collect();
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
