//! CustomResourceDefinitions: whether their names are accepted and their kind
//! is served.
//!
//! A push refuses a definition whose names another one has, and every
//! definition that does not compile; what is left to say is that it took
//! effect, in the words that clients of Kubernetes wait for.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use tidegate_model::kinds::{Kind as Definition, KindSet};
use tidegate_model::{Object, ObjectKey};
use tidegate_runtime::{AddError, Client, Controller, Item, Kind, Manager, Next, ReconcileError, Reconciler};

use crate::report::needed;

pub fn add_to(manager: &Manager) -> Result<(), AddError> {
    manager.add(Controller::new("definitions", kind(), DefinitionReconciler::new(manager.client())))
}

pub fn kind() -> Kind {
    Kind::new("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions")
}

pub struct DefinitionReconciler {
    kind: Kind,
    client: Client,
}

impl DefinitionReconciler {
    pub fn new(client: Client) -> Self {
        Self { kind: kind(), client }
    }
}

impl Reconciler for DefinitionReconciler {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let patch = |item: &Item| {
            let object = item.object()?;
            Ok(needed(&object, plan(&object)))
        };
        self.client.report(&self.kind, key, patch).await?;
        Ok(Next::AwaitChange)
    }
}

/// The status patch of a definition.
pub fn plan(crd: &Object) -> Value {
    let definition = Definition::from_crd(crd).and_then(|definition| {
        let definition = Arc::new(definition);
        KindSet::builtin().with(definition.clone()).map(|_| definition)
    });
    match definition {
        Ok(definition) => accepted(crd, &definition),
        Err(errors) => {
            let message = errors.first().map(ToString::to_string).unwrap_or_default();
            conditions(crd, "False", "NotAccepted", &message)
        }
    }
}

fn accepted(crd: &Object, definition: &Definition) -> Value {
    let mut status = conditions(crd, "True", "NoConflicts", "");
    let stored_before = crd.status().and_then(|status| status["storedVersions"].as_array());
    let mut stored: BTreeSet<&str> = stored_before.into_iter().flatten().filter_map(Value::as_str).collect();
    stored.insert(&definition.storage_version().name);
    status["storedVersions"] = json!(stored);
    status["acceptedNames"] = json!({
        "kind": &*definition.kind,
        "listKind": &*definition.list_kind,
        "plural": &*definition.resource.plural,
        "singular": &*definition.singular,
        "shortNames": definition.short_names.iter().map(|name| &**name).collect::<Vec<_>>(),
        "categories": definition.categories.iter().map(|name| &**name).collect::<Vec<_>>(),
    });
    status
}

fn conditions(crd: &Object, status: &str, reason: &str, message: &str) -> Value {
    let generation = crd.generation();
    let condition = |kind: &str| json!({"type": kind, "status": status, "reason": reason, "message": message, "observedGeneration": generation});
    let stalled = if status == "True" {
        json!({"type": "Stalled", "$patch": "delete"})
    } else {
        json!({"type": "Stalled", "status": "True", "reason": reason, "message": message, "observedGeneration": generation})
    };
    json!({
        "observedGeneration": generation,
        "conditions": [condition("NamesAccepted"), condition("Established"), condition("Ready"), stalled],
    })
}
