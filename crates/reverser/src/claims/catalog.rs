//! What the API server serves, as discovery told it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A type as its path names it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TypeId {
    /// Empty for the core group.
    pub group: String,
    pub version: String,
    pub resource: String,
}

impl TypeId {
    pub fn new(group: &str, version: &str, resource: &str) -> Self {
        Self { group: group.into(), version: version.into(), resource: resource.into() }
    }

    pub fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// `deployments.apps`, `configmaps`.
    pub fn qualified(&self) -> String {
        match self.group.as_str() {
            "" => self.resource.clone(),
            group => format!("{}.{group}", self.resource),
        }
    }
}

impl fmt::Display for TypeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.api_version(), self.resource)
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServedType {
    pub id: TypeId,
    pub kind: String,
    pub namespaced: bool,
    /// Whether it can be listed and watched.
    pub watchable: bool,
}

/// Group → plural → its versions, the preferred one first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Catalog {
    groups: BTreeMap<String, BTreeMap<String, Vec<Arc<ServedType>>>>,
}

impl Catalog {
    /// `types` in the order of the server's preference.
    pub fn new(types: impl IntoIterator<Item = ServedType>) -> Self {
        let mut catalog = Self::default();
        for served in types {
            let resources = catalog.groups.entry(served.id.group.clone()).or_default();
            let versions = resources.entry(served.id.resource.clone()).or_default();
            if versions.iter().all(|known| known.id.version != served.id.version) {
                versions.push(Arc::new(served));
            }
        }
        catalog
    }

    /// Each resource of each group once, with its versions.
    pub fn resources(&self) -> impl Iterator<Item = &[Arc<ServedType>]> {
        self.groups.values().flat_map(BTreeMap::values).map(Vec::as_slice)
    }

    pub fn find(&self, id: &TypeId) -> Option<&Arc<ServedType>> {
        self.groups.get(&id.group)?.get(&id.resource)?.iter().find(|served| served.id == *id)
    }

    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// As though these were not served.
    #[must_use]
    pub fn without(mut self, exclusions: &[Exclusion]) -> Self {
        for (group, resources) in &mut self.groups {
            resources.retain(|plural, _| !exclusions.iter().any(|exclusion| exclusion.matches(group, plural)));
        }
        self
    }

    /// Takes the groups of `before` that `failed` to answer: an aggregated
    /// API that is down is not an API whose types are gone.
    pub fn keep(&mut self, before: &Self, failed: &[String]) {
        for group in failed {
            if let (Some(known), false) = (before.groups.get(group), self.groups.contains_key(group)) {
                self.groups.insert(group.clone(), known.clone());
            }
        }
    }
}

/// `pods`, `deployments.apps`, `*.example.com`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exclusion {
    resource: String,
    /// `None` is any group.
    group: Option<String>,
}

impl Exclusion {
    pub fn parse(text: &str) -> Result<Self, String> {
        let (resource, group) = match text.split_once('.') {
            Some((resource, group)) => (resource, Some(group.to_ascii_lowercase())),
            None => (text, None),
        };
        if resource.is_empty() || group.as_deref() == Some("") || text.contains(['/', ' ']) {
            return Err(format!("`{text}`: write a plural (`pods`), `PLURAL.GROUP` or `*.GROUP`"));
        }
        Ok(Self { resource: resource.to_ascii_lowercase(), group })
    }

    fn matches(&self, group: &str, plural: &str) -> bool {
        (self.resource == "*" || self.resource == plural) && self.group.as_deref().is_none_or(|own| own == group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(group: &str, version: &str, resource: &str) -> ServedType {
        ServedType { id: TypeId::new(group, version, resource), kind: "X".into(), namespaced: true, watchable: true }
    }

    #[test]
    fn exclusions() {
        let catalog =
            Catalog::new([served("", "v1", "pods"), served("apps", "v1", "deployments"), served("a.b", "v1", "xs")]);
        let left = |text: &str| {
            let catalog = catalog.clone().without(&[Exclusion::parse(text).unwrap()]);
            catalog.resources().map(|versions| versions[0].id.resource.clone()).collect::<Vec<_>>()
        };
        assert_eq!(left("pods"), ["xs", "deployments"]);
        assert_eq!(left("deployments.apps"), ["pods", "xs"]);
        assert_eq!(left("deployments.other"), ["pods", "xs", "deployments"]);
        assert_eq!(left("*.a.b"), ["pods", "deployments"]);
        for bad in ["", ".x", "pods.", "pods/log"] {
            assert!(Exclusion::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_group_that_failed_keeps_its_types() {
        let before = Catalog::new([served("a.b", "v1", "xs"), served("c.d", "v1", "ys")]);
        let mut now = Catalog::new([served("", "v1", "pods")]);
        now.keep(&before, &["a.b".into()]);
        assert!(now.find(&TypeId::new("a.b", "v1", "xs")).is_some());
        assert!(now.find(&TypeId::new("c.d", "v1", "ys")).is_none());
    }
}
