//! Which hooks there are, and which kinds they can mean.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use tidegate_model::kinds::{Kind as Definition, KindSet, Scope, unknown_kind};
use tidegate_model::{GroupVersionKind, Object, ObjectKey};
use tidegate_runtime::{Change, Index, Kind, Touched};

use super::spec::{HookSpec, SpecError, Target};
use crate::definitions;

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
pub(super) struct Hook {
    /// Of one generation of one object.
    pub identity: String,
    generation: i64,
    pub spec: Result<HookSpec, SpecError>,
}

impl HookIndex {
    pub(super) fn hook(&self, name: &str) -> Option<Hook> {
        self.read().hooks.get(name).cloned()
    }

    /// The kind, its scope, and which definition says so.
    pub(super) fn resolve(&self, target: &Target) -> Option<(Kind, Scope, String)> {
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

    /// For the author of a hook whose kind does not exist.
    pub(super) fn unknown(&self, target: &Target) -> String {
        let mut kinds = KindSet::builtin();
        for (definition, _) in self.read().definitions.values() {
            // Of two that claim the same name, one is enough for a hint.
            kinds = kinds.with(definition.clone()).unwrap_or(kinds);
        }
        let wanted = GroupVersionKind::new(&target.api_version, &target.kind);
        unknown_kind(&kinds, &wanted, "push its CustomResourceDefinition, or correct the hook")
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
