//! A running controller for each hook that can run.
//!
//! A controller is named after its hook, the hook's generation and its kind's
//! definition: a changed hook is another controller, which begins with every
//! object, because nobody knows what its endpoint would say now.
//!
//! Invariant: a controller is noted before it starts and until nothing is left
//! of it. So whatever happens in between, its hook's next turn ends it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidegate_model::ObjectKey;
use tidegate_model::kinds::Scope;
use tidegate_runtime::{Client, Controller, ControllerOptions, Item, Kind, Manager, Next, ReconcileError, Reconciler};
use xxhash_rust::xxh3::xxh3_64;

use super::HookOptions;
use super::call::{Endpoint, described};
use super::hook_index::{Hook, HookIndex};
use super::reconciler::HookReconciler;
use super::related_index::RelatedIndex;
use super::relation::Relation;
use super::retire::{Past, Retirement, Retiring};
use super::spec::{HookSpec, SpecError, Target};
use crate::report::{Condition, Report, needed};

/// A hook that cannot run for want of a secret or a certificate is tried again.
const SETUP_INTERVAL: Duration = Duration::from_secs(30);
/// What a reconcile takes besides the call: reads and status writes.
const CALL_MARGIN: Duration = Duration::from_secs(30);
/// Between two turns of a hook whose old controllers are not wholly gone.
const RETIRE_PAUSE: Duration = Duration::from_millis(100);

/// Starts, replaces and stops the controllers of hooks.
pub struct RegistryReconciler {
    manager: Manager,
    client: Client,
    index: Arc<HookIndex>,
    options: HookOptions,
    retirement: Retirement,
    /// The controllers that the manager has from here.
    running: Mutex<HashSet<String>>,
}

/// A hook that can run, and the controller that it would be.
struct Planned {
    controller: String,
    spec: HookSpec,
    kind: Kind,
    relations: Vec<Relation>,
    endpoint: Endpoint,
}

/// Why a hook does not run, for its author.
struct Obstacle {
    reason: &'static str,
    message: String,
    /// Nothing of the store has to change for it to go away.
    passing: bool,
}

impl From<SpecError> for Obstacle {
    fn from(SpecError(message): SpecError) -> Self {
        Self { reason: "SpecInvalid", message, passing: false }
    }
}

impl RegistryReconciler {
    pub fn new(manager: Manager, index: Arc<HookIndex>, options: HookOptions) -> Self {
        let client = manager.client();
        let retirement = Retirement::new(manager.clone());
        Self { manager, client, index, options, retirement, running: Mutex::default() }
    }

    fn plan(&self, hook: &Hook) -> Result<Planned, Obstacle> {
        let spec = hook.spec.clone()?;
        let (kind, target_scope, definition) = self.resolve(&spec.target)?;
        let mut relations = Vec::new();
        let mut identity = format!("{}/{definition}", hook.identity);
        for each in &spec.related {
            let (kind, scope, definition) = self.resolve(&each.target)?;
            identity += &format!("/{definition}");
            relations.push(Relation::new(each, kind, scope, target_scope)?);
        }
        let endpoint = Endpoint::new(&spec, self.options.secrets_dir.as_deref()).map_err(|error| Obstacle {
            reason: "EndpointNotUsable",
            message: described(&error),
            passing: true,
        })?;
        let controller = format!("hook.{}.{:016x}", spec.name, xxh3_64(identity.as_bytes()));
        Ok(Planned { controller, spec, kind, relations, endpoint })
    }

    fn resolve(&self, target: &Target) -> Result<(Kind, Scope, String), Obstacle> {
        let unknown = || Obstacle { reason: "KindNotFound", message: self.index.unknown(target), passing: false };
        self.index.resolve(target).ok_or_else(unknown)
    }

    /// Ensures that the hook's controller runs.
    async fn start(&self, planned: Planned) -> Result<Result<(), Obstacle>, ReconcileError> {
        let name = planned.controller.clone();
        if self.running(|running| running.contains(&name)) {
            return Ok(Ok(()));
        }
        if let Err(error) = self.manager.add(self.controller(planned).await?) {
            return Ok(Err(Obstacle { reason: "NotStarted", message: error.to_string(), passing: true }));
        }
        self.running(|running| running.insert(name));
        Ok(Ok(()))
    }

    async fn controller(&self, planned: Planned) -> Result<Controller, ReconcileError> {
        let Planned { controller: name, spec, kind, relations, endpoint } = planned;
        let options = ControllerOptions {
            concurrency: spec.concurrency,
            deadline: spec.timeout + CALL_MARGIN,
            ..ControllerOptions::default()
        };
        let related = if relations.is_empty() {
            None
        } else {
            let notes = self.client.notes(&name, &kind).await?;
            Some(Arc::new(RelatedIndex::new(kind.clone(), spec.clone(), relations, notes)))
        };
        let index = related.clone().map(|related| self.manager.index_while_used(related));
        let reconciler = HookReconciler::new(spec, kind.clone(), name.clone(), related, endpoint, self.client.clone());
        let controller = Controller::new(&name, kind, reconciler).options(options);
        Ok(match &index {
            Some(index) => controller.index(index),
            None => controller,
        })
    }

    /// What it keeps stays.
    async fn stop(&self, past: &Past) {
        self.manager.stop(&past.controller).await;
        self.running(|running| running.remove(&past.controller));
    }

    fn running<R>(&self, change: impl FnOnce(&mut HashSet<String>) -> R) -> R {
        change(&mut self.running.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn report(&self, key: &ObjectKey, obstacle: Option<&Obstacle>) -> Result<(), ReconcileError> {
        let patch = |item: &Item| {
            let object = item.object()?;
            let condition = match obstacle {
                None => vec![],
                Some(Obstacle { reason, message, .. }) => vec![Condition::fails("Ready", reason, message.clone())],
            };
            Ok(needed(&object, Report::new(object.generation(), condition, None).patch()))
        };
        self.client.report(&super::kind(), key, patch).await.map(drop)
    }

    /// The hook is gone: so is, in the end, everything of it.
    async fn end(&self, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let past = self.retirement.past(key).await?;
        for each in &past {
            self.stop(each).await;
        }
        Ok(next(self.retirement.retire(key, past, |_| true).await?))
    }

    async fn replace(&self, key: &ObjectKey, planned: Planned) -> Result<Next, ReconcileError> {
        let mut past = self.retirement.past(key).await?;
        let wanted = Past::new(&planned.controller, &planned.kind);
        for each in past.iter().filter(|each| **each != wanted) {
            self.stop(each).await;
        }
        if !past.contains(&wanted) {
            past.push(wanted.clone());
            self.retirement.save(key, &past).await?;
        }
        // Before the new one says anything of the same objects.
        let is_rival = |each: &Past| *each != wanted && each.has_kind(&planned.kind);
        if self.retirement.retire(key, past.clone(), is_rival).await? == Retiring::Goes {
            return Ok(next(Retiring::Goes));
        }
        let obstacle = self.start(planned).await?.err();
        self.report(key, obstacle.as_ref()).await?;
        let past = self.retirement.past(key).await?;
        let retiring = self.retirement.retire(key, past, |each| *each != wanted).await?;
        Ok(if obstacle.is_some() { Next::After(SETUP_INTERVAL) } else { next(retiring) })
    }

    /// Nothing is taken away: the same controller goes on when it can.
    async fn hold(&self, key: &ObjectKey, obstacle: &Obstacle) -> Result<Next, ReconcileError> {
        for each in &self.retirement.past(key).await? {
            self.stop(each).await;
            self.manager.explain(&each.controller, obstacle.reason).await?;
        }
        self.report(key, Some(obstacle)).await?;
        Ok(if obstacle.passing { Next::After(SETUP_INTERVAL) } else { Next::AwaitChange })
    }
}

fn next(retiring: Retiring) -> Next {
    match retiring {
        Retiring::Done => Next::AwaitChange,
        Retiring::Goes => Next::After(RETIRE_PAUSE),
    }
}

impl Reconciler for RegistryReconciler {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, ReconcileError> {
        match self.index.hook(&key.name).map(|hook| self.plan(&hook)) {
            None => self.end(key).await,
            Some(Ok(planned)) => self.replace(key, planned).await,
            Some(Err(obstacle)) => self.hold(key, &obstacle).await,
        }
    }
}
