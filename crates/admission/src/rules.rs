//! What a repository may define.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use tidegate_model::kinds::Kind;
use tidegate_model::{Object, ObjectKey};

/// The repository that may define everything, whatever its object says: who
/// breaks it must be able to mend it.
const CONTROL: &str = "system/control";

pub(crate) const NAMESPACES: &str = "spec.namespaces";
pub(crate) const KINDS: &str = "spec.kinds";
pub(crate) const CLUSTER_SCOPED: &str = "spec.allowClusterScoped";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// `namespace/name`: the owner of what it defines.
    pub repository: Arc<str>,
    /// For objects whose file names none.
    pub default_namespace: Arc<str>,
    pub namespaces: Allow<String>,
    /// By group and kind.
    pub kinds: Allow<(String, String)>,
    pub allow_cluster_scoped: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allow<T> {
    Any,
    Only(BTreeSet<T>),
}

impl<T: Ord> Allow<T> {
    pub fn allows(&self, item: &T) -> bool {
        match self {
            Self::Any => true,
            Self::Only(items) => items.contains(item),
        }
    }

    fn includes(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any, _) => true,
            (Self::Only(_), Self::Any) => false,
            (Self::Only(items), Self::Only(others)) => others.is_subset(items),
        }
    }
}

impl Rules {
    /// The rules of a `Repository` object, which its schema has checked.
    pub fn of_repository(repository: &Object) -> Self {
        let own = repository.namespace().unwrap_or_default();
        let name: Arc<str> = format!("{own}/{}", repository.name()).into();
        if &*name == CONTROL {
            return Self::unrestricted(own, repository.name());
        }
        let spec = repository.spec().unwrap_or(&Value::Null);
        Self {
            repository: name,
            default_namespace: own.into(),
            namespaces: namespaces(&spec["namespaces"], own),
            kinds: kinds(&spec["kinds"]),
            allow_cluster_scoped: spec["allowClusterScoped"].as_bool().unwrap_or(false),
        }
    }

    /// What an object would need that these rules do not give, as the field of
    /// the Repository that would.
    pub(crate) fn lacking(&self, kind: &Kind, key: &ObjectKey) -> Vec<&'static str> {
        let has_kind = self.kinds.allows(&(kind.resource.group.to_string(), kind.kind.to_string()));
        let has_scope = key.namespace.is_some() || self.allow_cluster_scoped;
        let has_namespace = key.namespace.as_ref().is_none_or(|name| self.namespaces.allows(&name.to_string()));
        let gives = [(KINDS, has_kind), (CLUSTER_SCOPED, has_scope), (NAMESPACES, has_namespace)];
        gives.into_iter().filter(|(_, gives)| !gives).map(|(field, _)| field).collect()
    }

    /// What of `other` is more than these rules have: nobody gives away what is
    /// not theirs. Empty if there is no such thing.
    pub(crate) fn exceeded_by(&self, other: &Self) -> Vec<&'static str> {
        let exceeds = [
            (NAMESPACES, !self.namespaces.includes(&other.namespaces)),
            (KINDS, !self.kinds.includes(&other.kinds)),
            (CLUSTER_SCOPED, other.allow_cluster_scoped && !self.allow_cluster_scoped),
        ];
        exceeds.into_iter().filter(|(_, exceeds)| *exceeds).map(|(field, _)| field).collect()
    }

    /// For the repository that may define everything.
    pub fn unrestricted(namespace: &str, name: &str) -> Self {
        Self {
            repository: format!("{namespace}/{name}").into(),
            default_namespace: namespace.into(),
            namespaces: Allow::Any,
            kinds: Allow::Any,
            allow_cluster_scoped: true,
        }
    }
}

/// Its own namespace unless it lists others; `*` is all of them.
fn namespaces(listed: &Value, own: &str) -> Allow<String> {
    let names: BTreeSet<String> = items(listed).filter_map(Value::as_str).map(Into::into).collect();
    if names.contains("*") {
        Allow::Any
    } else if names.is_empty() {
        Allow::Only([own.to_string()].into())
    } else {
        Allow::Only(names)
    }
}

fn kinds(listed: &Value) -> Allow<(String, String)> {
    let text = |item: &Value, field: &str| item[field].as_str().unwrap_or_default().to_string();
    let kinds: BTreeSet<_> = items(listed).map(|item| (text(item, "group"), text(item, "kind"))).collect();
    if kinds.is_empty() { Allow::Any } else { Allow::Only(kinds) }
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rules(spec: Value) -> Rules {
        let object = json!({"apiVersion": "tidegate.dev/v1", "kind": "Repository", "metadata": {"namespace": "shop", "name": "goods"}, "spec": spec});
        Rules::of_repository(&Object::from_value(object).unwrap())
    }

    #[test]
    fn its_own_namespace_by_default() {
        let rules = rules(json!({}));
        assert_eq!((&*rules.repository, &*rules.default_namespace), ("shop/goods", "shop"));
        assert!(rules.namespaces.allows(&"shop".into()) && !rules.namespaces.allows(&"other".into()));
        assert!(rules.kinds == Allow::Any && !rules.allow_cluster_scoped);
    }

    #[test]
    fn what_is_listed() {
        let rules = rules(
            json!({"namespaces": ["a", "b"], "kinds": [{"kind": "Product", "group": "c"}], "allowClusterScoped": true}),
        );
        assert!(rules.namespaces.allows(&"b".into()) && !rules.namespaces.allows(&"shop".into()));
        assert!(
            rules.kinds.allows(&("c".into(), "Product".into())) && !rules.kinds.allows(&("".into(), "Product".into()))
        );
        assert!(rules.allow_cluster_scoped);
    }

    #[test]
    fn what_exceeds_another() {
        let (own, product) = (rules(json!({})), json!([{"kind": "Product", "group": "c"}]));
        assert!(own.exceeded_by(&own).is_empty());
        assert!(own.exceeded_by(&rules(json!({"kinds": product, "namespaces": ["shop"]}))).is_empty());
        let wide = rules(json!({"namespaces": ["*"], "allowClusterScoped": true}));
        assert_eq!(own.exceeded_by(&wide), ["spec.namespaces", "spec.allowClusterScoped"]);
        assert_eq!(own.exceeded_by(&rules(json!({"namespaces": ["shop", "other"]}))), ["spec.namespaces"]);
        assert_eq!(rules(json!({"kinds": product})).exceeded_by(&own), ["spec.kinds"]);
        assert!(Rules::unrestricted("system", "control").exceeded_by(&wide).is_empty());
    }

    #[test]
    fn the_control_repository_is_bound_by_nothing() {
        let object = json!({"apiVersion": "tidegate.dev/v1", "kind": "Repository", "metadata": {"namespace": "system", "name": "control"}, "spec": {"namespaces": ["a"]}});
        let rules = Rules::of_repository(&Object::from_value(object).unwrap());
        assert_eq!(rules, Rules::unrestricted("system", "control"));
    }

    #[test]
    fn a_star_is_every_namespace() {
        assert_eq!(rules(json!({"namespaces": ["a", "*"]})).namespaces, Allow::Any);
    }
}
