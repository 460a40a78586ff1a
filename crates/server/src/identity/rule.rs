//! One rule of a role: read strictly, matched as Kubernetes matches it.
//!
//! Invariant: a rule that is not understood whole grants nothing. Dropping
//! only its unknown part could widen it: a mistyped `resourceNames` would
//! otherwise turn "this one" into "all".

use serde_json::{Map, Value};
use tidegate_model::{FieldError, FieldErrorReason};

use super::attributes::Attributes;

const ANY: &str = "*";

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Rule {
    verbs: Vec<Box<str>>,
    target: Target,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Target {
    Resources {
        groups: Vec<Box<str>>,
        resources: Vec<Box<str>>,
        /// Empty for all names.
        names: Vec<Box<str>>,
    },
    Urls(Vec<Box<str>>),
}

/// Whose rule it is: URLs have no namespace, so a `Role` cannot grant them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RoleScope {
    Cluster,
    Namespace,
}

impl Rule {
    pub fn allows(&self, attributes: &Attributes) -> bool {
        let Target::Resources { groups, resources, names } = &self.target else { return false };
        holds(&self.verbs, attributes.verb.as_str())
            && holds(groups, &attributes.group)
            && resources.iter().any(|pattern| matches_resource(pattern, attributes))
            && (names.is_empty() || attributes.name.as_ref().is_some_and(|name| names.iter().any(|n| **n == **name)))
    }

    pub fn allows_url(&self, verb: &str, path: &str) -> bool {
        let Target::Urls(patterns) = &self.target else { return false };
        holds(&self.verbs, verb) && patterns.iter().any(|pattern| matches_url(pattern, path))
    }

    /// Reads the rule at `path`; what is odd but harmless goes to `problems`.
    pub fn read(
        path: &str,
        value: &Value,
        scope: RoleScope,
        problems: &mut Vec<FieldError>,
    ) -> Result<Self, FieldError> {
        let fields = value.as_object().ok_or_else(|| type_error(path, "an object with verbs and resources"))?;
        refuse_unknown_fields(path, fields)?;
        let verbs = required_texts(path, fields, "verbs")?;
        let urls = texts(path, fields, "nonResourceURLs")?;
        if urls.is_empty() {
            let target = read_resources(path, fields, problems)?;
            return Ok(Self { verbs, target });
        }
        refuse_mixed_urls(path, fields, scope)?;
        Ok(Self { verbs, target: Target::Urls(urls) })
    }
}

fn holds(list: &[Box<str>], wanted: &str) -> bool {
    list.iter().any(|item| **item == *ANY || **item == *wanted)
}

/// `*`, `products`, `products/status` and `*/status`. As in Kubernetes,
/// `products` does not include its subresources and `products/*` is no pattern.
fn matches_resource(pattern: &str, attributes: &Attributes) -> bool {
    if pattern == ANY {
        return true;
    }
    match (pattern.split_once('/'), attributes.subresource) {
        (None, None) => pattern == &*attributes.resource,
        (Some((plural, sub)), Some(wanted)) => sub == wanted && (plural == ANY || plural == &*attributes.resource),
        _ => false,
    }
}

/// `*`, `/metrics` and `/debug/*`.
fn matches_url(pattern: &str, path: &str) -> bool {
    pattern == path || pattern.ends_with(ANY) && path.starts_with(pattern.trim_end_matches(ANY))
}

fn read_resources(
    path: &str,
    fields: &Map<String, Value>,
    problems: &mut Vec<FieldError>,
) -> Result<Target, FieldError> {
    let resources = required_texts(path, fields, "resources")?;
    for pattern in resources.iter().filter(|pattern| pattern.ends_with("/*")) {
        let message = format!("`{pattern}` matches nothing: name the subresource, or write `*` for everything");
        problems.push(FieldError::invalid(format!("{path}.resources"), message));
    }
    let groups = required_texts(path, fields, "apiGroups")?;
    let names = texts(path, fields, "resourceNames")?;
    Ok(Target::Resources { groups, resources, names })
}

fn refuse_mixed_urls(path: &str, fields: &Map<String, Value>, scope: RoleScope) -> Result<(), FieldError> {
    let at = format!("{path}.nonResourceURLs");
    if scope == RoleScope::Namespace {
        return Err(FieldError::invalid(at, "a Role cannot grant URLs: move the rule to a ClusterRole"));
    }
    for field in ["apiGroups", "resources", "resourceNames"] {
        if !texts(path, fields, field)?.is_empty() {
            return Err(FieldError::invalid(at, "a rule is of resources or of URLs: split it in two"));
        }
    }
    Ok(())
}

fn refuse_unknown_fields(path: &str, fields: &Map<String, Value>) -> Result<(), FieldError> {
    const KNOWN: [&str; 5] = ["verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs"];
    match fields.keys().find(|field| !KNOWN.contains(&field.as_str())) {
        Some(field) => Err(FieldError::invalid(
            format!("{path}.{field}"),
            format!("unknown field: use one of {}", KNOWN.join(", ")),
        )),
        None => Ok(()),
    }
}

fn required_texts(path: &str, fields: &Map<String, Value>, field: &str) -> Result<Vec<Box<str>>, FieldError> {
    let list = texts(path, fields, field)?;
    if list.is_empty() {
        return Err(FieldError::required(format!("{path}.{field}"), "at least one is needed"));
    }
    Ok(list)
}

fn texts(path: &str, fields: &Map<String, Value>, field: &str) -> Result<Vec<Box<str>>, FieldError> {
    let wrong = || type_error(&format!("{path}.{field}"), "a list of strings");
    match fields.get(field) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => items.iter().map(|item| item.as_str().map(Into::into).ok_or_else(wrong)).collect(),
        Some(_) => Err(wrong()),
    }
}

pub(super) fn type_error(path: &str, expected: &str) -> FieldError {
    FieldError::new(path, FieldErrorReason::TypeInvalid, format!("expected {expected}"))
}
