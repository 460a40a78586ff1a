//! Kubernetes RBAC: which identity may do what.
//!
//! Invariants: access is granted only by a rule that was understood whole;
//! a question costs the bindings of the caller in two scopes (the cluster and
//! the namespace asked about), never all bindings; a change costs its scope.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use tidegate_model::{FieldError, GroupResource, Object, ObjectKey};

use super::attributes::Attributes;
use super::role::{Binding, Parsed, RBAC_GROUP, Role, RoleRef, Subject};
use super::rule::{RoleScope, Rule};
use super::{GROUP_MASTERS, Identity};

/// Cheap to clone: a clone shares every scope that is not changed afterwards.
#[derive(Clone, Default, Debug)]
pub struct Policy {
    cluster: Arc<Scope>,
    namespaces: HashMap<Arc<str>, Arc<Scope>>,
    /// The ordinary roles behind each aggregated ClusterRole, resolved when a
    /// ClusterRole changes and not when somebody asks.
    aggregated: Arc<HashMap<Arc<str>, Vec<Arc<Role>>>>,
    problems: Arc<BTreeMap<ObjectKey, Vec<FieldError>>>,
}

/// The roles and bindings of the cluster, or of one namespace.
#[derive(Clone, Default, Debug)]
struct Scope {
    roles: HashMap<Arc<str>, Arc<Role>>,
    bindings: HashMap<Arc<str>, Arc<Binding>>,
    by_user: HashMap<Arc<str>, Vec<Arc<Binding>>>,
    by_group: HashMap<Arc<str>, Vec<Arc<Binding>>>,
}

impl Policy {
    /// Objects of other kinds are passed over.
    pub fn build<'a>(objects: impl Iterator<Item = &'a Object>) -> Self {
        let mut policy = Self::default();
        let keyed: Vec<_> = objects.filter_map(|object| Some((rbac_key(object)?, Some(object)))).collect();
        policy.apply_all(keyed.iter().map(|(key, object)| (key, *object)));
        policy
    }

    /// Takes over the new state of one object, `None` if it is gone. Says
    /// whether anybody's permissions may have changed.
    pub fn apply(&mut self, key: &ObjectKey, object: Option<&Object>) -> bool {
        self.apply_all([(key, object)])
    }

    /// The same for the objects of one commit.
    pub fn apply_all<'a>(&mut self, changes: impl IntoIterator<Item = (&'a ObjectKey, Option<&'a Object>)>) -> bool {
        let (mut changed, mut roles_changed) = (false, false);
        for (key, object) in changes {
            let Some(kind) = RbacKind::of(&key.resource) else { continue };
            let effect = match kind {
                RbacKind::Role(scope) => self.apply_role(key, object, scope),
                RbacKind::Binding => self.apply_binding(key, object),
            };
            changed |= effect;
            roles_changed |= effect && kind == RbacKind::Role(RoleScope::Cluster);
        }
        if roles_changed {
            self.aggregated = Arc::new(aggregate(&self.cluster.roles));
        }
        changed
    }

    pub fn allows(&self, identity: &Identity, attributes: &Attributes) -> bool {
        self.any_rule(identity, attributes.namespace.as_deref(), |rule| rule.allows(attributes))
    }

    /// For the paths that are not resources: `/metrics`.
    pub fn allows_url(&self, identity: &Identity, verb: &str, path: &str) -> bool {
        self.any_rule(identity, None, |rule| rule.allows_url(verb, path))
    }

    /// What was left out of the policy because it could not be understood.
    pub fn problems(&self) -> impl Iterator<Item = (&ObjectKey, &FieldError)> {
        self.problems.iter().flat_map(|(key, problems)| problems.iter().map(move |problem| (key, problem)))
    }

    pub fn problems_of(&self, key: &ObjectKey) -> impl Iterator<Item = &FieldError> {
        self.problems.get(key).into_iter().flatten()
    }

    fn any_rule(&self, identity: &Identity, namespace: Option<&str>, test: impl Fn(&Rule) -> bool) -> bool {
        if identity.groups.iter().any(|group| **group == *GROUP_MASTERS) {
            return true;
        }
        let local = namespace.and_then(|namespace| self.namespaces.get(namespace));
        let scopes = [Some(&self.cluster), local];
        scopes
            .into_iter()
            .flatten()
            .any(|scope| scope.bindings_of(identity).any(|binding| self.rules(scope, &binding.role).any(&test)))
    }

    fn rules<'a>(&'a self, scope: &'a Scope, role: &RoleRef) -> impl Iterator<Item = &'a Rule> {
        let (own, parts) = match role {
            RoleRef::Local(name) => (scope.roles.get(&**name), None),
            RoleRef::Cluster(name) => (self.cluster.roles.get(&**name), self.aggregated.get(&**name)),
        };
        // An aggregated role's own rules count as little as in Kubernetes,
        // where its controller overwrites them.
        let own = own.filter(|role| role.aggregates.is_none());
        own.into_iter().chain(parts.into_iter().flatten()).flat_map(|role| &role.rules)
    }

    fn apply_role(&mut self, key: &ObjectKey, object: Option<&Object>, scope: RoleScope) -> bool {
        let parsed = object.map(|object| Role::read(object, scope));
        let role = parsed.map(|parsed| Arc::new(self.note(key, parsed)));
        if role.is_none() {
            self.forget_problems(key);
        }
        self.change_scope(key, |scope| scope.set_role(&key.name, role))
    }

    fn apply_binding(&mut self, key: &ObjectKey, object: Option<&Object>) -> bool {
        let parsed = object.map(|object| Binding::read(object, key.namespace.as_deref()));
        let binding = parsed.and_then(|parsed| self.note(key, parsed)).map(Arc::new);
        if object.is_none() {
            self.forget_problems(key);
        }
        self.change_scope(key, |scope| scope.set_binding(&key.name, binding))
    }

    fn change_scope(&mut self, key: &ObjectKey, change: impl FnOnce(&mut Scope) -> bool) -> bool {
        let Some(namespace) = &key.namespace else { return change(Arc::make_mut(&mut self.cluster)) };
        let scope = Arc::make_mut(self.namespaces.entry(namespace.clone()).or_default());
        let changed = change(scope);
        if scope.is_empty() {
            self.namespaces.remove(namespace);
        }
        changed
    }

    fn note<T>(&mut self, key: &ObjectKey, parsed: Parsed<T>) -> T {
        if parsed.problems.is_empty() {
            self.forget_problems(key);
        } else {
            Arc::make_mut(&mut self.problems).insert(key.clone(), parsed.problems);
        }
        parsed.value
    }

    fn forget_problems(&mut self, key: &ObjectKey) {
        if self.problems.contains_key(key) {
            Arc::make_mut(&mut self.problems).remove(key);
        }
    }
}

impl Scope {
    fn bindings_of(&self, identity: &Identity) -> impl Iterator<Item = &Arc<Binding>> {
        let own = self.by_user.get(&identity.user).into_iter().flatten();
        own.chain(identity.groups.iter().filter_map(|group| self.by_group.get(group)).flatten())
    }

    fn is_empty(&self) -> bool {
        self.roles.is_empty() && self.bindings.is_empty()
    }

    fn set_role(&mut self, name: &Arc<str>, role: Option<Arc<Role>>) -> bool {
        if self.roles.get(name) == role.as_ref() {
            return false;
        }
        match role {
            Some(role) => self.roles.insert(name.clone(), role),
            None => self.roles.remove(name),
        };
        true
    }

    fn set_binding(&mut self, name: &Arc<str>, binding: Option<Arc<Binding>>) -> bool {
        if self.bindings.get(name) == binding.as_ref() {
            return false;
        }
        if let Some(old) = self.bindings.remove(name) {
            self.unindex(&old);
        }
        if let Some(binding) = binding {
            for subject in &binding.subjects {
                self.index_of(subject).push(binding.clone());
            }
            self.bindings.insert(name.clone(), binding);
        }
        true
    }

    fn unindex(&mut self, binding: &Arc<Binding>) {
        for subject in &binding.subjects {
            let bound = self.index_of(subject);
            bound.retain(|other| !Arc::ptr_eq(other, binding));
            if bound.is_empty() {
                match subject {
                    Subject::User(name) => self.by_user.remove(name),
                    Subject::Group(name) => self.by_group.remove(name),
                };
            }
        }
    }

    fn index_of(&mut self, subject: &Subject) -> &mut Vec<Arc<Binding>> {
        match subject {
            Subject::User(name) => self.by_user.entry(name.clone()).or_default(),
            Subject::Group(name) => self.by_group.entry(name.clone()).or_default(),
        }
    }
}

type Roles = HashMap<Arc<str>, Arc<Role>>;

/// An aggregated role may select another one; the ordinary roles at the ends
/// of all paths count. A cycle adds nothing.
fn aggregate(roles: &Roles) -> HashMap<Arc<str>, Vec<Arc<Role>>> {
    let selected: HashMap<&Arc<str>, Vec<&Arc<str>>> = roles
        .iter()
        .filter_map(|(name, role)| Some((name, role.aggregates.as_ref()?)))
        .map(|(name, selectors)| {
            let matches = |role: &Role| selectors.iter().any(|selector| selector.matches(&role.labels));
            (name, roles.iter().filter(|(_, role)| matches(role)).map(|(name, _)| name).collect())
        })
        .collect();
    selected.keys().map(|name| ((*name).clone(), ordinary_roles(name, &selected, roles))).collect()
}

fn ordinary_roles<'a>(
    start: &'a Arc<str>,
    selected: &HashMap<&'a Arc<str>, Vec<&'a Arc<str>>>,
    roles: &Roles,
) -> Vec<Arc<Role>> {
    let (mut seen, mut open, mut found) = (HashSet::from([start]), vec![start], Vec::new());
    while let Some(name) = open.pop() {
        match selected.get(name) {
            Some(parts) => open.extend(parts.iter().filter(|part| seen.insert(**part))),
            None => found.extend(roles.get(name).cloned()),
        }
    }
    found
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RbacKind {
    Role(RoleScope),
    Binding,
}

impl RbacKind {
    fn of(resource: &GroupResource) -> Option<Self> {
        if &*resource.group != RBAC_GROUP {
            return None;
        }
        match &*resource.plural {
            "clusterroles" => Some(Self::Role(RoleScope::Cluster)),
            "roles" => Some(Self::Role(RoleScope::Namespace)),
            "clusterrolebindings" | "rolebindings" => Some(Self::Binding),
            _ => None,
        }
    }
}

pub(super) fn rbac_key(object: &Object) -> Option<ObjectKey> {
    let plural = match (&*object.gvk().group, object.kind()) {
        (RBAC_GROUP, "ClusterRole") => "clusterroles",
        (RBAC_GROUP, "Role") => "roles",
        (RBAC_GROUP, "ClusterRoleBinding") => "clusterrolebindings",
        (RBAC_GROUP, "RoleBinding") => "rolebindings",
        _ => return None,
    };
    let namespace = object.namespace().filter(|_| !plural.starts_with("cluster"));
    Some(ObjectKey::new(GroupResource::new(RBAC_GROUP, plural), namespace, object.name()))
}
