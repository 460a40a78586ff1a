//! All configuration objects, as the watches of the four kinds tell them.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::kinds::{ClusterWatchRule, ConfigKind, GitDestination, GitRepoConfig, WatchRule};
use super::status::Reason;
use super::validate::Problem;

/// An object of one kind. `namespace` is empty for cluster-scoped ones.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Id {
    pub namespace: String,
    pub name: String,
}

impl Id {
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace.as_str() {
            "" => f.write_str(&self.name),
            namespace => write!(f, "{namespace}/{}", self.name),
        }
    }
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct Meta {
    pub uid: String,
    pub generation: i64,
    pub resource_version: String,
    pub created: String,
    pub status: Option<Value>,
}

impl Meta {
    /// Stays while the spec stays: the API server counts its changes.
    pub fn incarnation(&self) -> (String, i64) {
        (self.uid.clone(), self.generation)
    }
}

/// An object whose spec may be unreadable; then the reason stands in for it.
#[derive(Clone, PartialEq, Debug)]
pub struct Configured<T> {
    pub meta: Meta,
    pub spec: Result<T, Problem>,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct ConfigSet {
    pub repos: BTreeMap<Id, Configured<GitRepoConfig>>,
    pub destinations: BTreeMap<Id, Configured<GitDestination>>,
    pub rules: BTreeMap<Id, Configured<WatchRule>>,
    pub cluster_rules: BTreeMap<Id, Configured<ClusterWatchRule>>,
}

impl ConfigSet {
    /// Takes in an object as the API sent it. One that is being deleted is gone.
    pub fn put(&mut self, kind: ConfigKind, object: &Value) {
        let id = id_of(object);
        if object["metadata"].get("deletionTimestamp").is_some() {
            return self.remove(kind, &id);
        }
        match kind {
            ConfigKind::GitRepoConfig => _ = self.repos.insert(id, read(object)),
            ConfigKind::GitDestination => _ = self.destinations.insert(id, read(object)),
            ConfigKind::WatchRule => _ = self.rules.insert(id, read(object)),
            ConfigKind::ClusterWatchRule => _ = self.cluster_rules.insert(id, read(object)),
        }
    }

    pub fn remove(&mut self, kind: ConfigKind, id: &Id) {
        match kind {
            ConfigKind::GitRepoConfig => _ = self.repos.remove(id),
            ConfigKind::GitDestination => _ = self.destinations.remove(id),
            ConfigKind::WatchRule => _ = self.rules.remove(id),
            ConfigKind::ClusterWatchRule => _ = self.cluster_rules.remove(id),
        }
    }

    /// Whether both ask for the same; statuses and versions aside.
    pub fn has_same_specs(&self, other: &Self) -> bool {
        fn same<T: PartialEq>(a: &BTreeMap<Id, Configured<T>>, b: &BTreeMap<Id, Configured<T>>) -> bool {
            let spec = |entry: &Configured<T>| entry.meta.incarnation();
            a.len() == b.len()
                && a.iter().zip(b).all(|((a_id, a), (b_id, b))| a_id == b_id && spec(a) == spec(b) && a.spec == b.spec)
        }
        same(&self.repos, &other.repos)
            && same(&self.destinations, &other.destinations)
            && same(&self.rules, &other.rules)
            && same(&self.cluster_rules, &other.cluster_rules)
    }

    pub fn ids(&self, kind: ConfigKind) -> Vec<Id> {
        match kind {
            ConfigKind::GitRepoConfig => self.repos.keys().cloned().collect(),
            ConfigKind::GitDestination => self.destinations.keys().cloned().collect(),
            ConfigKind::WatchRule => self.rules.keys().cloned().collect(),
            ConfigKind::ClusterWatchRule => self.cluster_rules.keys().cloned().collect(),
        }
    }

    pub fn meta(&self, kind: ConfigKind, id: &Id) -> Option<&Meta> {
        match kind {
            ConfigKind::GitRepoConfig => self.repos.get(id).map(|found| &found.meta),
            ConfigKind::GitDestination => self.destinations.get(id).map(|found| &found.meta),
            ConfigKind::WatchRule => self.rules.get(id).map(|found| &found.meta),
            ConfigKind::ClusterWatchRule => self.cluster_rules.get(id).map(|found| &found.meta),
        }
    }
}

pub fn id_of(object: &Value) -> Id {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    Id::new(text("namespace"), text("name"))
}

fn read<T: DeserializeOwned>(object: &Value) -> Configured<T> {
    let metadata = &object["metadata"];
    let text = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
    let meta = Meta {
        uid: text("uid"),
        generation: metadata["generation"].as_i64().unwrap_or_default(),
        resource_version: text("resourceVersion"),
        created: text("creationTimestamp"),
        status: object.get("status").cloned(),
    };
    let spec = T::deserialize(&object["spec"])
        .map_err(|error| Problem::new(Reason::InvalidSpec, format!("spec cannot be read: {error}")));
    Configured { meta, spec }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_bad_spec_is_kept_with_its_reason() {
        let mut set = ConfigSet::default();
        set.put(ConfigKind::WatchRule, &json!({"metadata": {"namespace": "a", "name": "b"}, "spec": {"rules": 1}}));
        let rule = &set.rules[&Id::new("a", "b")];
        assert_eq!(rule.spec.as_ref().unwrap_err().reason, Reason::InvalidSpec);
    }

    #[test]
    fn what_is_being_deleted_is_gone() {
        let mut set = ConfigSet::default();
        let mut object = json!({"metadata": {"name": "b"}, "spec": {"destinationRef": {"name": "x"}, "rules": [{}]}});
        set.put(ConfigKind::ClusterWatchRule, &object);
        assert_eq!(set.ids(ConfigKind::ClusterWatchRule), [Id::new("", "b")]);
        object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        set.put(ConfigKind::ClusterWatchRule, &object);
        assert!(set.cluster_rules.is_empty());
    }
}
