//! `ReconcileHook`: a kind reconciled by an HTTP endpoint, in any language.
//!
//! The endpoint gets the object and answers with a status patch, a time to be
//! asked again, or an error. `registry` starts and stops a controller for each
//! hook, and `retire` takes away what an old one has left; `relation` says what
//! is sent along, `related_index` who has to be called again because of it;
//! `call` speaks HTTP; `answer` judges what came back, without IO.
//!
//! Invariant: nothing but `.status` of the object that was sent is ever
//! written for an endpoint, whatever it answers.

mod answer;
mod away;
mod call;
mod clear;
mod gather;
mod hook_index;
mod reconciler;
mod registry;
mod related_index;
mod relation;
mod retire;
mod spec;

use std::path::PathBuf;
use std::sync::Arc;

use tidegate_runtime::{AddError, Controller, Kind, Manager};

pub use answer::{ANSWER_BYTES_MAX, Answer, HookError, judge};
pub use call::{Endpoint, EndpointError, SIGNATURE_HEADER, TIMESTAMP_HEADER, sign};
pub use gather::{RELATED_BYTES_MAX, RELATED_OBJECTS_MAX};
pub use hook_index::HookIndex;
pub use reconciler::HookReconciler;
pub use registry::RegistryReconciler;
pub use related_index::RelatedIndex;
pub use relation::Relation;
pub use spec::{HookSpec, SpecError, Target};

/// The controller of the hooks themselves.
const CONTROLLER: &str = "hooks";

/// What the process that runs the manager decides.
#[derive(Clone, Debug, Default)]
pub struct HookOptions {
    /// Files `NAMESPACE/NAME/KEY`; without it no hook can have a secret.
    pub secrets_dir: Option<PathBuf>,
}

pub fn kind() -> Kind {
    Kind::new("tidegate.dev/v1", "ReconcileHook", "reconcilehooks")
}

/// Adds the controller that starts and stops those of the hooks.
pub fn add_to(manager: &Manager, options: HookOptions) -> Result<(), AddError> {
    let index = Arc::new(HookIndex::default());
    let handle = manager.index(index.clone());
    let reconciler = RegistryReconciler::new(manager.clone(), index, options);
    // One at a time: two runs of a hook must not race for its controller.
    manager.add(Controller::new(CONTROLLER, kind(), reconciler).index(&handle).concurrency(1))
}
