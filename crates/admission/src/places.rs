//! Which key a document's object has.

use tidegate_model::kinds::{Kind, KindSet, Scope};
use tidegate_model::manifest::{Document, parse_file};
use tidegate_model::{GroupResource, ObjectKey};

use crate::Rules;

/// The keys of the objects in a file as it was, for a [`crate::State`] that
/// finds what a path defined by reading the file of the projected commit.
/// Objects of kinds that are gone are left out: so are they in the store.
pub fn defined_keys(kinds: &KindSet, rules: &Rules, path: &str, bytes: &[u8]) -> Vec<ObjectKey> {
    let documents = parse_file(path, bytes).unwrap_or_default();
    let key = |document: &Document<'_>| {
        let (kind, _) = kinds.by_gvk(document.object.api_version(), document.object.kind())?;
        Some(key_of(kind, document, rules))
    };
    documents.iter().filter_map(key).collect()
}

pub(crate) fn key_of(kind: &Kind, document: &Document<'_>, rules: &Rules) -> ObjectKey {
    let namespace = match kind.scope {
        Scope::Cluster => None,
        Scope::Namespaced => Some(document.object.namespace().unwrap_or(&rules.default_namespace)),
    };
    ObjectKey::new(kind.resource.clone(), namespace, document.object.name())
}

pub(crate) fn namespace_key(name: &str) -> ObjectKey {
    ObjectKey::new(GroupResource::new("", "namespaces"), None, name)
}

pub(crate) fn is_namespace(key: &ObjectKey) -> bool {
    key.resource.group.is_empty() && &*key.resource.plural == "namespaces"
}

pub(crate) fn is_definition(key: &ObjectKey) -> bool {
    &*key.resource.group == "apiextensions.k8s.io" && &*key.resource.plural == "customresourcedefinitions"
}

pub(crate) fn is_repository(key: &ObjectKey) -> bool {
    &*key.resource.group == "tidegate.dev" && &*key.resource.plural == "repositories"
}

/// The resource that a definition defines: its name is `plural.group`.
pub(crate) fn defined_resource(key: &ObjectKey) -> Option<GroupResource> {
    let (plural, group) = key.name.split_once('.').filter(|_| is_definition(key))?;
    Some(GroupResource::new(group, plural))
}
