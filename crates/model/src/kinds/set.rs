//! The kinds in force: an immutable set, replaced as a whole.
//!
//! Invariant: within a group no two kinds share a plural, singular or short
//! name, nor a kind or list kind.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::{Kind, KindVersion, Origin, builtin};
use crate::{FieldError, FieldErrorReason, GroupResource};

/// Cheap to clone; a change makes another set.
#[derive(Clone, Debug)]
pub struct KindSet(Arc<Index>);

#[derive(Clone, Debug, Default)]
struct Index {
    by_resource: BTreeMap<GroupResource, Arc<Kind>>,
    /// Group, then kind.
    by_kind: HashMap<Arc<str>, HashMap<Arc<str>, Arc<Kind>>>,
}

impl KindSet {
    /// What ships inside the binary; compiled once a process.
    pub fn builtin() -> Self {
        builtin::kinds().clone()
    }

    pub(super) fn of(kinds: impl IntoIterator<Item = Kind>) -> Self {
        let mut index = Index::default();
        for kind in kinds {
            index.insert(Arc::new(kind));
        }
        Self(Arc::new(index))
    }

    /// The set with `kind`, in place of an earlier definition of the same
    /// resource.
    pub fn with(&self, kind: Arc<Kind>) -> Result<Self, Vec<FieldError>> {
        let errors = self.conflicts(&kind);
        if !errors.is_empty() {
            return Err(errors);
        }
        let mut index = Index::clone(&self.0);
        index.remove(&kind.resource);
        index.insert(kind);
        Ok(Self(Arc::new(index)))
    }

    #[must_use]
    pub fn without(&self, resource: &GroupResource) -> Self {
        let mut index = Index::clone(&self.0);
        index.remove(resource);
        Self(Arc::new(index))
    }

    /// A served version of a kind, by what an object says of itself.
    pub fn by_gvk(&self, api_version: &str, kind: &str) -> Option<(&Arc<Kind>, &KindVersion)> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let kind = self.0.by_kind.get(group)?.get(kind)?;
        let version = kind.version(version).filter(|version| version.served)?;
        Some((kind, version))
    }

    pub fn by_resource(&self, resource: &GroupResource) -> Option<&Arc<Kind>> {
        self.0.by_resource.get(resource)
    }

    /// In the order of group and plural.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.0.by_resource.values()
    }

    pub fn len(&self) -> usize {
        self.0.by_resource.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.by_resource.is_empty()
    }

    fn conflicts(&self, kind: &Kind) -> Vec<FieldError> {
        if let Some(present) = self.by_resource(&kind.resource)
            && present.origin == Origin::Builtin
        {
            let message = format!("Forbidden: {} is built in and cannot be redefined", kind.resource);
            return vec![FieldError::new("metadata.name", FieldErrorReason::Forbidden, message)];
        }
        let neighbours =
            self.iter().filter(|other| other.resource.group == kind.resource.group && other.resource != kind.resource);
        neighbours.flat_map(|other| clashes(kind, other)).collect()
    }
}

impl Index {
    fn insert(&mut self, kind: Arc<Kind>) {
        let group = self.by_kind.entry(kind.resource.group.clone()).or_default();
        group.insert(kind.kind.clone(), kind.clone());
        self.by_resource.insert(kind.resource.clone(), kind);
    }

    fn remove(&mut self, resource: &GroupResource) {
        if let Some(kind) = self.by_resource.remove(resource)
            && let Some(group) = self.by_kind.get_mut(&resource.group)
        {
            group.remove(&kind.kind);
        }
    }
}

/// Names of `kind` that `other` already has.
fn clashes(kind: &Kind, other: &Kind) -> Vec<FieldError> {
    let resources = |kind: &Kind| -> Vec<(&'static str, Arc<str>)> {
        let short_names = kind.short_names.iter().map(|name| ("shortNames", name.clone()));
        [("plural", kind.resource.plural.clone()), ("singular", kind.singular.clone())]
            .into_iter()
            .chain(short_names)
            .collect()
    };
    let kinds = |kind: &Kind| vec![("kind", kind.kind.clone()), ("listKind", kind.list_kind.clone())];
    let clash = |mine: Vec<(&'static str, Arc<str>)>, theirs: Vec<(&'static str, Arc<str>)>| {
        let taken = move |name: &Arc<str>| theirs.iter().any(|(_, other)| other == name);
        mine.into_iter().filter(move |(_, name)| taken(name)).collect::<Vec<_>>()
    };
    let mut found = clash(resources(kind), resources(other));
    found.extend(clash(kinds(kind), kinds(other)));
    let error = |(field, name): (&str, Arc<str>)| {
        let message = format!("Invalid value: {name:?} is already in use by {}; choose another", other.resource);
        FieldError::invalid(format!("spec.names.{field}"), message)
    };
    found.into_iter().map(error).collect()
}
