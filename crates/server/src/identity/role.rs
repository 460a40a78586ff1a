//! Roles and bindings as the policy keeps them: parsed once, when they change.

use std::sync::Arc;

use serde_json::Value;
use tidegate_model::{FieldError, LabelSelector, Labels, Object};

use super::rule::{RoleScope, Rule, type_error};

/// A Role or a ClusterRole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Role {
    pub labels: Labels,
    pub rules: Vec<Rule>,
    /// If there are any, the rules are those of the selected roles instead.
    pub aggregates: Option<Vec<LabelSelector>>,
}

/// A RoleBinding or a ClusterRoleBinding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Binding {
    pub role: RoleRef,
    pub subjects: Vec<Subject>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum RoleRef {
    Cluster(Box<str>),
    /// A Role of the binding's own namespace.
    Local(Box<str>),
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Subject {
    /// Service accounts too, by their user name.
    User(Arc<str>),
    Group(Arc<str>),
}

/// A parsed value and what was left out of it.
pub(super) struct Parsed<T> {
    pub value: T,
    pub problems: Vec<FieldError>,
}

pub(super) fn service_account_user(namespace: &str, name: &str) -> String {
    format!("system:serviceaccount:{namespace}:{name}")
}

impl Role {
    pub fn read(object: &Object, scope: RoleScope) -> Parsed<Self> {
        let mut problems = Vec::new();
        let aggregates = match object.root().get("aggregationRule") {
            None | Some(Value::Null) => None,
            Some(_) if scope == RoleScope::Namespace => {
                problems.push(FieldError::invalid("aggregationRule", "a Role has none: make it a ClusterRole"));
                None
            }
            Some(value) => Some(read_selectors(value, &mut problems)),
        };
        let mut rules = Vec::new();
        for (at, value) in list(object, "rules", &mut problems).iter().enumerate() {
            match Rule::read(&format!("rules[{at}]"), value, scope, &mut problems) {
                Ok(rule) => rules.push(rule),
                Err(problem) => problems.push(problem),
            }
        }
        Parsed { value: Self { labels: object.labels(), rules, aggregates }, problems }
    }
}

/// A selector that cannot be read selects nothing.
fn read_selectors(value: &Value, problems: &mut Vec<FieldError>) -> Vec<LabelSelector> {
    const PATH: &str = "aggregationRule.clusterRoleSelectors";
    let Some(items) = value.get("clusterRoleSelectors").and_then(Value::as_array) else {
        problems.push(type_error(PATH, "a list of label selectors"));
        return Vec::new();
    };
    let mut selectors = Vec::new();
    for (at, item) in items.iter().enumerate() {
        match LabelSelector::from_object_form(&format!("{PATH}[{at}]"), item) {
            Ok(selector) => selectors.push(selector),
            Err(errors) => problems.extend(errors),
        }
    }
    selectors
}

impl Binding {
    /// `namespace` is the binding's own, `None` for a ClusterRoleBinding.
    /// Without a usable `roleRef` there is nothing to bind.
    pub fn read(object: &Object, namespace: Option<&str>) -> Parsed<Option<Self>> {
        let mut problems = Vec::new();
        let role = match read_role_ref(object.root().get("roleRef"), namespace) {
            Ok(role) => role,
            Err(problem) => return Parsed { value: None, problems: vec![problem] },
        };
        let mut subjects = Vec::new();
        for (at, value) in list(object, "subjects", &mut problems).iter().enumerate() {
            match read_subject(&format!("subjects[{at}]"), value, namespace) {
                Ok(subject) => subjects.push(subject),
                Err(problem) => problems.push(problem),
            }
        }
        subjects.sort();
        subjects.dedup();
        Parsed { value: Some(Self { role, subjects }), problems }
    }
}

fn read_role_ref(value: Option<&Value>, namespace: Option<&str>) -> Result<RoleRef, FieldError> {
    let field = |name: &str| value.and_then(|v| v.get(name)).and_then(Value::as_str).unwrap_or_default();
    check_group("roleRef", field("apiGroup"), RBAC_GROUP)?;
    let name = field("name");
    if name.is_empty() {
        return Err(FieldError::required("roleRef.name", "name the role that is granted"));
    }
    match (field("kind"), namespace) {
        ("ClusterRole", _) => Ok(RoleRef::Cluster(name.into())),
        ("Role", Some(_)) => Ok(RoleRef::Local(name.into())),
        ("Role", None) => Err(FieldError::invalid("roleRef.kind", "a ClusterRoleBinding can grant a ClusterRole only")),
        _ => Err(FieldError::invalid("roleRef.kind", "expected ClusterRole or Role")),
    }
}

fn read_subject(path: &str, value: &Value, namespace: Option<&str>) -> Result<Subject, FieldError> {
    let field = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    let name = field("name");
    if name.is_empty() {
        return Err(FieldError::required(format!("{path}.name"), "name the user, group or service account"));
    }
    match field("kind") {
        "User" => check_group(path, field("apiGroup"), RBAC_GROUP).map(|()| Subject::User(name.into())),
        "Group" => check_group(path, field("apiGroup"), RBAC_GROUP).map(|()| Subject::Group(name.into())),
        "ServiceAccount" => {
            check_group(path, field("apiGroup"), "")?;
            let home = Some(field("namespace")).filter(|home| !home.is_empty()).or(namespace);
            let home =
                home.ok_or_else(|| FieldError::required(format!("{path}.namespace"), "a service account has one"))?;
            Ok(Subject::User(service_account_user(home, name).into()))
        }
        _ => Err(FieldError::invalid(format!("{path}.kind"), "expected User, Group or ServiceAccount")),
    }
}

pub(super) const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

/// Absent means the default, which is the only group there is.
fn check_group(path: &str, found: &str, expected: &str) -> Result<(), FieldError> {
    if found.is_empty() || found == expected {
        return Ok(());
    }
    Err(FieldError::invalid(format!("{path}.apiGroup"), format!("expected {expected:?}")))
}

fn list<'a>(object: &'a Object, field: &str, problems: &mut Vec<FieldError>) -> &'a [Value] {
    match object.root().get(field) {
        None | Some(Value::Null) => &[],
        Some(Value::Array(items)) => items,
        Some(_) => {
            problems.push(type_error(field, "a list"));
            &[]
        }
    }
}
