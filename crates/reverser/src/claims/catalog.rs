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

    /// Types of this catalogue that `now` does not have.
    pub fn missing_from<'c>(&'c self, now: &'c Self) -> impl Iterator<Item = &'c TypeId> {
        self.resources().flatten().map(|served| &served.id).filter(|id| now.find(id).is_none())
    }

    pub fn has_version(&self, of: &GroupVersion) -> bool {
        let resources = self.groups.get(&of.group).into_iter().flat_map(BTreeMap::values);
        resources.flatten().any(|served| served.id.version == of.version)
    }

    /// Takes from `before` what is missing of the versions that `failed` to
    /// answer: an API that is down is not an API whose types are gone.
    pub fn keep(&mut self, before: &Self, failed: &[GroupVersion]) {
        let of_failed = |id: &&TypeId| failed.iter().any(|of| of.group == id.group && of.version == id.version);
        let missing: Vec<_> = before.missing_from(self).filter(of_failed).cloned().collect();
        missing.iter().for_each(|id| self.put_back(before, id));
    }

    /// In its old place: which version is preferred stays, too.
    pub fn put_back(&mut self, before: &Self, id: &TypeId) {
        let Some(versions) = before.groups.get(&id.group).and_then(|group| group.get(&id.resource)) else { return };
        let Some(at) = versions.iter().position(|served| served.id == *id) else { return };
        let known = self.groups.entry(id.group.clone()).or_default().entry(id.resource.clone()).or_default();
        known.insert(at.min(known.len()), versions[at].clone());
    }
}

/// A version of a group, which one server serves.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct GroupVersion {
    pub group: String,
    pub version: String,
}

impl GroupVersion {
    pub fn new(group: &str, version: &str) -> Self {
        Self { group: group.into(), version: version.into() }
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
    fn a_version_that_failed_keeps_its_types() {
        let before = Catalog::new([served("a.b", "v1", "xs"), served("c.d", "v1", "ys")]);
        let mut now = Catalog::new([served("", "v1", "pods")]);
        now.keep(&before, &[GroupVersion::new("a.b", "v1")]);
        assert!(now.find(&TypeId::new("a.b", "v1", "xs")).is_some());
        assert!(now.find(&TypeId::new("c.d", "v1", "ys")).is_none());
        assert_eq!(before.missing_from(&now).map(|id| id.resource.as_str()).collect::<Vec<_>>(), ["ys"]);
    }

    #[test]
    fn a_version_that_answers_does_not_speak_for_another() {
        let before = Catalog::new([served("a.b", "v2", "xs"), served("a.b", "v1", "xs"), served("a.b", "v2", "zs")]);
        let mut now = Catalog::new([served("a.b", "v1", "xs")]);
        now.keep(&before, &[GroupVersion::new("a.b", "v2")]);
        assert_eq!(now, before, "and the preferred version stays preferred");
    }
}
