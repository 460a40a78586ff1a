//! Namespaces: one whose file is removed lets nothing new in and goes when it
//! is empty.
//!
//! Admission stamps it and gives it the finalizer below; the server refuses to
//! take that away while anything is left. So this only has to ask.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_model::{Object, ObjectKey};
use tidegate_runtime::{AddError, Client, Controller, Fault, Item, Kind, Manager, Next, ReconcileError, Reconciler};

use crate::report::needed;

/// As admission writes it.
pub const CONTENTS_FINALIZER: &str = "tidegate.dev/contents";
/// How often a terminating namespace is asked for; it costs one count for each
/// kind, and only while one is on its way out. Who has removed the last object
/// waits for it.
const DRAIN_INTERVAL: Duration = Duration::from_secs(1);

pub fn add_to(manager: &Manager) -> Result<(), AddError> {
    manager.add(Controller::new("namespaces", kind(), NamespaceReconciler::new(manager.client())))
}

pub fn kind() -> Kind {
    Kind::new("v1", "Namespace", "namespaces")
}

pub struct NamespaceReconciler {
    kind: Kind,
    client: Client,
}

impl NamespaceReconciler {
    pub fn new(client: Client) -> Self {
        Self { kind: kind(), client }
    }

    /// `Err` with what is left in it, in words.
    async fn release(&self, item: &Item) -> Result<Result<(), String>, ReconcileError> {
        let released = self.client.patch_finalizers(&self.kind, &item.key, item.version, &[], &[CONTENTS_FINALIZER]);
        match released.await {
            Ok(_) => Ok(Ok(())),
            Err(error) if error.is(Fault::Invalid) => Ok(Err(error.message)),
            Err(error) => Err(error.into()),
        }
    }

    async fn report(
        &self,
        key: &ObjectKey,
        patch: impl Fn(&Object) -> Value + Send + Sync,
    ) -> Result<(), ReconcileError> {
        let needed = |item: &Item| {
            let object = item.object()?;
            Ok(needed(&object, patch(&object)))
        };
        self.client.report(&self.kind, key, needed).await.map(drop)
    }
}

impl Reconciler for NamespaceReconciler {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(item) = self.client.get(&self.kind, key).await? else { return Ok(Next::AwaitChange) };
        let object = item.object()?;
        if object.deletion_timestamp().is_none() {
            self.report(key, active).await?;
            return Ok(Next::AwaitChange);
        }
        let holders: Vec<&str> = object.finalizers().collect();
        let waits_for = if holders.contains(&CONTENTS_FINALIZER) {
            self.release(&item).await?.err()
        } else {
            Some(format!("it waits for {}", holders.join(", ")))
        };
        let Some(waits_for) = waits_for else { return Ok(Next::AwaitChange) };
        self.report(key, |object| terminating(object, &waits_for)).await?;
        Ok(Next::After(DRAIN_INTERVAL))
    }
}

fn active(object: &Object) -> Value {
    let generation = object.generation();
    json!({
        "phase": "Active",
        "observedGeneration": generation,
        "conditions": [
            {"type": "Ready", "status": "True", "reason": "Active", "message": "", "observedGeneration": generation},
            {"type": "Reconciling", "$patch": "delete"},
            {"type": "Stalled", "$patch": "delete"},
        ],
    })
}

fn terminating(object: &Object, waits_for: &str) -> Value {
    let generation = object.generation();
    let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "reason": "Terminating", "message": waits_for, "observedGeneration": generation});
    json!({
        "phase": "Terminating",
        "observedGeneration": generation,
        "conditions": [condition("Ready", "False"), condition("Reconciling", "True"), {"type": "Stalled", "$patch": "delete"}],
    })
}
