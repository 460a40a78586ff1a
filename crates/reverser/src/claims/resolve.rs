//! One rule ∩ the catalogue: the types that it selects.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::catalog::{Catalog, ServedType, TypeId};
use super::preset::{is_excluded_unless_named, is_preset};
use crate::config::{OperationName, Problem, Reason, Rule, RuleScope};

/// Which operations a rule wants to see in Git.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Operations {
    pub create: bool,
    pub update: bool,
    pub delete: bool,
}

impl Operations {
    pub const ALL: Self = Self { create: true, update: true, delete: true };

    /// None named means all.
    pub fn of(names: &[OperationName]) -> Self {
        let has = |name| names.is_empty() || names.contains(&name) || names.contains(&OperationName::All);
        Self {
            create: has(OperationName::Create),
            update: has(OperationName::Update),
            delete: has(OperationName::Delete),
        }
    }

    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            create: self.create || other.create,
            update: self.update || other.update,
            delete: self.delete || other.delete,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Selected {
    pub served: Arc<ServedType>,
    pub operations: Operations,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Resolved {
    pub selected: BTreeMap<TypeId, Selected>,
    /// Names that nothing serves, yet.
    pub waiting: Vec<String>,
    pub problems: Vec<Problem>,
}

/// What `resources: []` means.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Omitted {
    #[default]
    Preset,
    Everything,
}

/// `scope` is what the rule's kind and its `scope` field allow.
pub fn resolve(rule: &Rule, scope: RuleScope, omitted: Omitted, catalog: &Catalog) -> Resolved {
    let mut resolved = Resolved::default();
    let operations = Operations::of(&rule.operations);
    let select = |resolved: &mut Resolved, name: &Wanted| {
        let mut found = false;
        for versions in catalog.resources() {
            let Some(served) = name.pick(rule, versions) else { continue };
            found = true;
            add(resolved, name, scope, served, operations);
        }
        if let (Wanted::Named(text, ..), false) = (name, found) {
            resolved.waiting.push(text.clone());
        }
    };
    if rule.resources.is_empty() {
        select(&mut resolved, if omitted == Omitted::Preset { &Wanted::Preset } else { &Wanted::Everything });
    }
    for text in &rule.resources {
        match Wanted::parse(text) {
            Ok(name) => select(&mut resolved, &name),
            Err(problem) => resolved.problems.push(problem),
        }
    }
    resolved
}

fn add(resolved: &mut Resolved, name: &Wanted, scope: RuleScope, served: &Arc<ServedType>, operations: Operations) {
    let fits = served.namespaced == (scope == RuleScope::Namespaced);
    if !fits || !served.watchable {
        // A wildcard takes what it can; a name deserves an answer.
        if let Wanted::Named(text, ..) = name {
            resolved.problems.push(Problem::new(Reason::InvalidRule, misfit(text, served, fits)));
        }
        return;
    }
    let entry = resolved.selected.entry(served.id.clone());
    let selected = entry.or_insert_with(|| Selected { served: served.clone(), operations: Operations::default() });
    selected.operations = selected.operations.or(operations);
}

fn misfit(text: &str, served: &ServedType, fits: bool) -> String {
    match (fits, served.namespaced) {
        (true, _) => format!("`{text}` cannot be listed and watched"),
        (false, true) => format!("`{text}` is namespaced: use a WatchRule, or `scope: Namespaced`"),
        (false, false) => format!("`{text}` is cluster-scoped: use a ClusterWatchRule with `scope: Cluster`"),
    }
}

/// One entry of `resources`, understood.
enum Wanted {
    Preset,
    Everything,
    /// As written, the plural, and the group if the name has one.
    Named(String, String, Option<String>),
}

impl Wanted {
    fn parse(text: &str) -> Result<Self, Problem> {
        let refuse = |why: &str| Err(Problem::new(Reason::InvalidRule, format!("resources: `{text}`: {why}")));
        match text {
            "*" => Ok(Self::Everything),
            "" => refuse("it is empty; name a plural such as `configmaps`"),
            text if text.contains('/') => refuse("subresources are no objects of their own; name the resource alone"),
            text if text.contains(['*', '?', '[']) => refuse("patterns are not supported; name the plural, or `*`"),
            text => {
                let lower = text.to_ascii_lowercase();
                let (plural, group) = match lower.split_once('.') {
                    Some((plural, group)) => (plural.to_owned(), Some(group.to_owned())),
                    None => (lower, None),
                };
                Ok(Self::Named(text.to_owned(), plural, group))
            }
        }
    }

    /// The one version of a resource that the rule means, if it means it.
    fn pick<'v>(&self, rule: &Rule, versions: &'v [Arc<ServedType>]) -> Option<&'v Arc<ServedType>> {
        let TypeId { group, resource, .. } = &versions.first()?.id;
        let is_wanted = match self {
            Self::Preset => is_preset(group, resource),
            Self::Everything => !is_excluded_unless_named(group, resource),
            Self::Named(_, plural, own_group) => {
                plural == resource && own_group.as_ref().is_none_or(|own| own == group)
            }
        };
        if !is_wanted || !allows(&rule.api_groups, group) {
            return None;
        }
        // One version: the object is the same in all of them, and one file is enough.
        versions.iter().find(|served| allows(&rule.api_versions, &served.id.version))
    }
}

fn allows(list: &[String], value: &str) -> bool {
    list.is_empty() || list.iter().any(|entry| entry == "*" || entry == value)
}
