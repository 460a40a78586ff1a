//! Which hooks there are, and a running controller for each that can run.
//!
//! A controller is named after its hook, the hook's generation and its kind's
//! definition: a changed hook is another controller, which begins with every
//! object, because nobody knows what its endpoint would say now.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use tidegate_model::kinds::{Kind as Definition, KindSet, Scope};
use tidegate_model::{Object, ObjectKey};
use tidegate_runtime::{
    Change, Client, Controller, ControllerOptions, Index, Item, Kind, Manager, Next, ReconcileError, Reconciler,
    Touched,
};
use xxhash_rust::xxh3::xxh3_64;

use super::HookOptions;
use super::call::{Endpoint, described};
use super::reconciler::HookReconciler;
use super::spec::{HookSpec, SpecError, Target};
use crate::definitions;
use crate::report::{Condition, Report, needed};

/// A hook that cannot run for want of a secret or a certificate is tried again.
const SETUP_INTERVAL: Duration = Duration::from_secs(30);
/// What a reconcile takes besides the call: reads and status writes.
const CALL_MARGIN: Duration = Duration::from_secs(30);

/// The hooks, and the kinds that definitions make.
#[derive(Default)]
pub struct HookIndex(RwLock<Known>);

#[derive(Default)]
struct Known {
    hooks: BTreeMap<Arc<str>, Hook>,
    /// By the definition's name.
    definitions: HashMap<Arc<str>, (Arc<Definition>, String)>,
}

#[derive(Clone, PartialEq)]
struct Hook {
    identity: String,
    generation: i64,
    spec: Result<HookSpec, SpecError>,
}

impl HookIndex {
    fn hook(&self, name: &str) -> Option<Hook> {
        self.read().hooks.get(name).cloned()
    }

    /// The kind, its scope, and which definition says so.
    fn resolve(&self, target: &Target) -> Option<(Kind, Scope, String)> {
        let of = |definition: &Definition, identity: &str| {
            let kind = Kind::new(&target.api_version, &target.kind, &definition.resource.plural);
            (kind, definition.scope, identity.to_owned())
        };
        if let Some((definition, _)) = KindSet::builtin().by_gvk(&target.api_version, &target.kind) {
            return Some(of(definition, "built-in"));
        }
        let known = self.read();
        let found = known.definitions.values().find(|(definition, _)| defines(definition, target));
        found.map(|(definition, identity)| of(definition, identity))
    }

    fn read(&self) -> RwLockReadGuard<'_, Known> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

fn defines(definition: &Definition, target: &Target) -> bool {
    let is_version = |version| definition.api_version(version) == target.api_version;
    *definition.kind == *target.kind && definition.served_versions().any(is_version)
}

impl Known {
    fn apply_hook(&mut self, key: &ObjectKey, object: Option<&Object>, touched: &mut Touched) {
        let hook = object.map(|object| Hook {
            identity: identity(object),
            generation: object.generation(),
            spec: HookSpec::read(object),
        });
        let before = match hook.clone() {
            Some(hook) => self.hooks.insert(key.name.clone(), hook),
            None => self.hooks.remove(&key.name),
        };
        if before != hook {
            touched.add(key.clone());
        }
    }

    fn apply_definition(&mut self, key: &ObjectKey, object: Option<&Object>, touched: &mut Touched) {
        let found = object.and_then(|object| Some((Arc::new(Definition::from_crd(object).ok()?), identity(object))));
        let before = match found.clone() {
            Some(found) => self.definitions.insert(key.name.clone(), found),
            None => self.definitions.remove(&key.name),
        };
        if before.as_ref().map(|(_, identity)| identity) == found.as_ref().map(|(_, identity)| identity) {
            return;
        }
        let changed = |target: &Target| [&before, &found].into_iter().flatten().any(|(kind, _)| defines(kind, target));
        let concerned = self.hooks.iter().filter(|(_, hook)| {
            let targets =
                |spec: &HookSpec| changed(&spec.target) || spec.related.iter().any(|related| changed(&related.target));
            hook.spec.as_ref().is_ok_and(targets)
        });
        touched.extend(concerned.map(|(name, _)| super::kind().key(None, name)));
    }
}

/// Of one generation of one object.
fn identity(object: &Object) -> String {
    format!("{}@{}", object.uid().unwrap_or_default(), object.generation())
}

impl Index for HookIndex {
    fn kinds(&self) -> Vec<Kind> {
        vec![super::kind(), definitions::kind()]
    }

    fn apply(&self, kind: &Kind, changes: &[Change<'_>], touched: &mut Touched) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for change in changes {
            let object = match change {
                Change::Put(item) => item.object().ok(),
                Change::Gone(_) => None,
            };
            if *kind == super::kind() {
                known.apply_hook(change.key(), object.as_ref(), touched);
            } else {
                known.apply_definition(change.key(), object.as_ref(), touched);
            }
        }
    }

    fn keys(&self, kind: &Kind) -> Vec<ObjectKey> {
        let known = self.read();
        if *kind == super::kind() {
            known.hooks.keys().map(|name| kind.key(None, name)).collect()
        } else {
            known.definitions.keys().map(|name| kind.key(None, name)).collect()
        }
    }

    /// A manager that starts runs no hook yet.
    fn audit(&self, touched: &mut Touched) {
        touched.everything();
    }
}

/// Starts, replaces and stops the controllers of hooks.
pub struct RegistryReconciler {
    manager: Manager,
    client: Client,
    index: Arc<HookIndex>,
    options: HookOptions,
    /// By hook, the name of its controller.
    running: Mutex<HashMap<Arc<str>, String>>,
}

/// Why a hook does not run, for its author.
struct Obstacle {
    reason: &'static str,
    message: String,
    /// Nothing of the store has to change for it to go away.
    passing: bool,
}

impl RegistryReconciler {
    pub fn new(manager: Manager, index: Arc<HookIndex>, options: HookOptions) -> Self {
        let client = manager.client();
        Self { manager, client, index, options, running: Mutex::default() }
    }

    /// Ensures that the hook's controller runs, and no other for it.
    async fn start(&self, hook: &Hook) -> Result<Result<(), Obstacle>, ReconcileError> {
        let (name, controller) = match self.controller(hook) {
            Ok(made) => made,
            Err(obstacle) => return Ok(Err(obstacle)),
        };
        let hook_name = hook.spec.as_ref().map(|spec| spec.name.clone()).unwrap_or_default();
        if self.controller_of(&hook_name).as_deref() == Some(&*name) {
            return Ok(Ok(()));
        }
        self.stop(&hook_name).await?;
        if let Err(error) = self.manager.add(controller) {
            return Ok(Err(Obstacle { reason: "NotStarted", message: error.to_string(), passing: true }));
        }
        self.running(|running| running.insert(hook_name, name));
        Ok(Ok(()))
    }

    /// What its controller kept goes with it: another one begins anew.
    async fn stop(&self, hook: &str) -> Result<(), ReconcileError> {
        let Some(name) = self.controller_of(hook) else { return Ok(()) };
        self.manager.forget(&name).await?;
        self.running(|running| running.remove(hook));
        Ok(())
    }

    fn controller_of(&self, hook: &str) -> Option<String> {
        self.running(|running| running.get(hook).cloned())
    }

    fn running<R>(&self, change: impl FnOnce(&mut HashMap<Arc<str>, String>) -> R) -> R {
        change(&mut self.running.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn controller(&self, hook: &Hook) -> Result<(String, Controller), Obstacle> {
        let spec = hook.spec.clone().map_err(|SpecError(message)| Obstacle {
            reason: "SpecInvalid",
            message,
            passing: false,
        })?;
        let (kind, _, definition) = self.resolve(&spec.target)?;
        let mut related = Vec::new();
        let mut identity = format!("{}/{definition}", hook.identity);
        for each in &spec.related {
            let (kind, scope, definition) = self.resolve(&each.target)?;
            identity += &format!("/{definition}");
            related.push((each.clone(), kind, scope));
        }
        let endpoint = endpoint(&spec, self.options.secrets_dir.as_deref())?;
        let name = format!("hook.{}.{:016x}", spec.name, xxh3_64(identity.as_bytes()));
        let options = ControllerOptions {
            concurrency: spec.concurrency,
            deadline: spec.timeout + CALL_MARGIN,
            ..ControllerOptions::default()
        };
        let reconciler = HookReconciler::new(spec, kind.clone(), related, endpoint, self.client.clone());
        let controller = Controller::new(&name, kind, reconciler).options(options);
        Ok((name, controller))
    }

    fn resolve(&self, target: &Target) -> Result<(Kind, Scope, String), Obstacle> {
        self.index.resolve(target).ok_or_else(|| {
            let message = format!(
                "there is no kind {} of {}: push its CustomResourceDefinition, or correct the hook",
                target.kind, target.api_version
            );
            Obstacle { reason: "KindNotFound", message, passing: false }
        })
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
}

fn endpoint(spec: &HookSpec, secrets_dir: Option<&Path>) -> Result<Endpoint, Obstacle> {
    Endpoint::new(spec, secrets_dir).map_err(|error| Obstacle {
        reason: "EndpointNotUsable",
        message: described(&error),
        passing: true,
    })
}

impl Reconciler for RegistryReconciler {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(hook) = self.index.hook(&key.name) else {
            self.stop(&key.name).await?;
            return Ok(Next::AwaitChange);
        };
        let obstacle = self.start(&hook).await?.err();
        if obstacle.is_some() {
            self.stop(&key.name).await?;
        }
        self.report(key, obstacle.as_ref()).await?;
        let again = obstacle.is_some_and(|obstacle| obstacle.passing);
        Ok(if again { Next::After(SETUP_INTERVAL) } else { Next::AwaitChange })
    }
}
