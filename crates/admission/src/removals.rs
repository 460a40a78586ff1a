//! What a change deletes, and what would be left without its kind or its
//! namespace. A kind must stay until its objects are gone; a namespace lets
//! nothing new in and goes when it is empty.

use std::collections::HashMap;
use std::sync::Arc;

use tidegate_model::kinds::KindSet;
use tidegate_model::manifest::Diagnostic;
use tidegate_model::{GroupResource, ObjectKey};

use crate::definitions::InForce;
use crate::places::{defined_resource, is_namespace};
use crate::report::Report;
use crate::{Change, Provenance, Rules, State};

/// Namespaces that the server needs; it would make them again.
const KEPT_NAMESPACES: [&str; 2] = ["system", "default"];

/// An object that its file no longer defines.
pub(crate) struct Removal<'c> {
    pub key: ObjectKey,
    pub path: &'c str,
    /// With finalizers it stays until they are done.
    pub at_once: bool,
    /// A namespace with so many objects left: it goes when they are gone.
    pub left_inside: u64,
}

/// Everything that the paths of the change defined. Which of it is removed is
/// known once its new objects are.
pub(crate) fn candidates<'c, S: State>(
    change: &Change<'c>,
    state: &S,
    rules: &Rules,
) -> Result<Vec<Removal<'c>>, S::Error> {
    let mut candidates = Vec::new();
    for path in change.paths() {
        for key in state.defined_at(path)? {
            let Some(current) = state.current(&key)? else { continue };
            let here = Provenance { repository: &rules.repository, path };
            if Provenance::of(&current) == Some(here) && current.deletion_timestamp().is_none() {
                let at_once = current.finalizers().next().is_none();
                candidates.push(Removal { key, path, at_once, left_inside: 0 });
            }
        }
    }
    Ok(candidates)
}

/// Refuses what would strand objects, and counts what is left in namespaces.
pub(crate) fn check<S: State>(
    removals: &mut [Removal<'_>],
    in_force: &InForce,
    before: &KindSet,
    state: &S,
    report: &mut Report,
) -> Result<(), S::Error> {
    let leaving = Leaving::of(removals);
    for removal in removals.iter_mut() {
        let mut left_of_kind = 0;
        if let Some(resource) = defined_resource(&removal.key) {
            left_of_kind = leaving.left_of_kind(state, &resource)?;
        } else if is_namespace(&removal.key) {
            removal.left_inside = leaving.left_in_namespace(state, before, &removal.key.name)?;
        }
        if let Some(message) = refusal(removal, left_of_kind) {
            report.add(Diagnostic::of_file(removal.path, message));
        }
    }
    for replaced in in_force.replaced.iter().filter(|replaced| !replaced.broken.is_empty()) {
        let left = leaving.left_of_kind(state, &replaced.resource)?;
        if left > 0 {
            report.extend(replaced.broken.iter().cloned().map(|broken| with_count(broken, left)));
        }
    }
    Ok(())
}

/// What its author should know although the removal is admitted.
pub(crate) fn warning(removal: &Removal<'_>) -> Option<Diagnostic> {
    let Removal { key, path, left_inside: left, .. } = removal;
    let objects = if *left == 1 { "1 object is" } else { &format!("{left} objects are") };
    let message = format!("{key} is terminating: {objects} left in it; remove their files, too, and it goes");
    (*left > 0).then(|| Diagnostic::of_file(path, message))
}

fn refusal(removal: &Removal<'_>, left: u64) -> Option<String> {
    let key = &removal.key;
    if is_namespace(key) && KEPT_NAMESPACES.contains(&&*key.name) {
        return Some(format!("{key} cannot be deleted: the server needs it; keep the file"));
    }
    let objects = if left == 1 { "object" } else { "objects" };
    (left > 0).then(|| {
        format!("removing {key} would strand {left} {objects}: remove them first, or in the same change; those with finalizers must be gone before")
    })
}

fn with_count(broken: Diagnostic, left: u64) -> Diagnostic {
    let objects = if left == 1 { "object is" } else { "objects are" };
    Diagnostic { message: format!("{} ({left} {objects} stored)", broken.message), ..broken }
}

/// How many objects leave the store with the change itself.
struct Leaving {
    by_kind: HashMap<GroupResource, u64>,
    by_namespace: HashMap<Arc<str>, u64>,
}

impl Leaving {
    fn of(removals: &[Removal<'_>]) -> Self {
        let mut leaving = Self { by_kind: HashMap::new(), by_namespace: HashMap::new() };
        for Removal { key, .. } in removals.iter().filter(|removal| removal.at_once) {
            *leaving.by_kind.entry(key.resource.clone()).or_default() += 1;
            if let Some(namespace) = &key.namespace {
                *leaving.by_namespace.entry(namespace.clone()).or_default() += 1;
            }
        }
        leaving
    }

    fn left_of_kind<S: State>(&self, state: &S, resource: &GroupResource) -> Result<u64, S::Error> {
        let leaving = self.by_kind.get(resource).copied().unwrap_or(0);
        Ok(state.count(resource, None)?.saturating_sub(leaving))
    }

    fn left_in_namespace<S: State>(&self, state: &S, kinds: &KindSet, namespace: &str) -> Result<u64, S::Error> {
        let mut stored = 0;
        for kind in kinds.iter() {
            stored += state.count(&kind.resource, Some(namespace))?;
        }
        Ok(stored.saturating_sub(self.by_namespace.get(namespace).copied().unwrap_or(0)))
    }
}
