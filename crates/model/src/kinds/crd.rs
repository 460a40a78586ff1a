//! From a CustomResourceDefinition to a kind, refusing what kube-apiserver
//! refuses.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Kind, NameSyntax, Origin, Scope, versions};
use crate::schema::path::{Errors, Path};
use crate::syntax::{check_dns_label, check_dns_subdomain};
use crate::{FieldError, FieldErrorReason, GroupResource, Object};

/// Groups that Kubernetes reserves for reviewed APIs.
const PROTECTED_GROUPS: [&str; 2] = ["k8s.io", "kubernetes.io"];
const APPROVAL: &str = "api-approved.kubernetes.io";

impl Kind {
    /// Every error, with the place in `crd`.
    pub fn from_crd(crd: &Object) -> Result<Self, Vec<FieldError>> {
        let mut errors = Errors::default();
        let kind = read(crd.root(), &mut errors);
        if let Some(kind) = &kind {
            check_group(crd, kind, &mut errors);
        }
        finish(kind, errors)
    }

    /// A kind of our own: the same reading, without the rules for strangers.
    pub(super) fn from_builtin(definition: &Map<String, Value>) -> Result<Self, Vec<FieldError>> {
        let mut errors = Errors::default();
        let kind = read(definition, &mut errors);
        finish(kind.map(|kind| Self { origin: Origin::Builtin, ..kind }), errors)
    }
}

fn finish(kind: Option<Kind>, mut errors: Errors) -> Result<Kind, Vec<FieldError>> {
    match kind {
        Some(kind) if errors.is_empty() => Ok(kind),
        None if errors.is_empty() => {
            errors.required("spec", "Required value");
            Err(errors.into_vec())
        }
        _ => Err(errors.into_vec()),
    }
}

fn read(definition: &Map<String, Value>, errors: &mut Errors) -> Option<Kind> {
    let path = Path::Root.field("spec");
    let Some(spec) = definition.get("spec").and_then(Value::as_object) else {
        errors.required(path, "Required value");
        return None;
    };
    let group = spec.get("group").and_then(Value::as_str).unwrap_or_default();
    let names = Names::read(spec, &path, errors);
    let scope = read_scope(spec, &path, errors);
    check_conversion(spec, &path, errors);
    let (versions, storage) = versions::read(spec, &path, errors);
    Some(Kind {
        resource: GroupResource::new(group, &names.plural),
        kind: names.kind,
        list_kind: names.list_kind,
        singular: names.singular,
        short_names: names.short_names,
        categories: names.categories,
        scope: scope?,
        versions,
        storage: storage?,
        origin: Origin::Crd,
        name_syntax: NameSyntax::Subdomain,
        extra: None,
    })
}

struct Names {
    plural: Arc<str>,
    singular: Arc<str>,
    kind: Arc<str>,
    list_kind: Arc<str>,
    short_names: Vec<Arc<str>>,
    categories: Vec<Arc<str>>,
}

impl Names {
    fn read(spec: &Map<String, Value>, path: &Path, errors: &mut Errors) -> Self {
        let path = path.field("names");
        let names = spec.get("names").and_then(Value::as_object);
        let text = |name: &str| names.and_then(|names| names.get(name)).and_then(Value::as_str).unwrap_or_default();
        let kind = text("kind");
        let or = |text: &str, default: String| if text.is_empty() { default.into() } else { text.into() };
        let read = Self {
            plural: text("plural").into(),
            singular: or(text("singular"), kind.to_lowercase()),
            kind: kind.into(),
            list_kind: or(text("listKind"), format!("{kind}List")),
            short_names: list(names, "shortNames"),
            categories: list(names, "categories"),
        };
        read.check(&path, errors);
        read
    }

    fn check(&self, path: &Path, errors: &mut Errors) {
        check_label(&self.plural, &path.field("plural"), errors);
        check_label(&self.singular, &path.field("singular"), errors);
        check_label(&self.kind.to_lowercase(), &path.field("kind"), errors);
        check_label(&self.list_kind.to_lowercase(), &path.field("listKind"), errors);
        if self.kind == self.list_kind {
            errors.invalid(
                path.field("listKind"),
                format!("Invalid value: {:?}: kind and listKind may not be the same", self.kind),
            );
        }
        for (field, names) in [("shortNames", &self.short_names), ("categories", &self.categories)] {
            let path = path.field(field);
            for (at, name) in names.iter().enumerate() {
                check_label(name, &path.index(at), errors);
            }
        }
    }
}

fn list(names: Option<&Map<String, Value>>, field: &str) -> Vec<Arc<str>> {
    let list = names.and_then(|names| names.get(field)).and_then(Value::as_array);
    list.into_iter().flatten().map(|name| name.as_str().unwrap_or_default().into()).collect()
}

/// RFC 1035: a DNS label that starts with a letter.
fn is_dns_1035_label(name: &str) -> bool {
    check_dns_label(name).is_ok() && name.starts_with(|c: char| c.is_ascii_lowercase())
}

pub(super) fn check_label(name: &str, path: &Path, errors: &mut Errors) {
    if name.is_empty() {
        errors.required(path, "Required value");
    } else if !is_dns_1035_label(name) {
        let rule = "a DNS-1035 label: lower case letters, digits and '-', starting with a letter, at most 63";
        errors.invalid(path, format!("Invalid value: {name:?}: must be {rule}"));
    }
}

fn read_scope(spec: &Map<String, Value>, path: &Path, errors: &mut Errors) -> Option<Scope> {
    let path = path.field("scope");
    match spec.get("scope").and_then(Value::as_str) {
        Some("Cluster") => Some(Scope::Cluster),
        Some("Namespaced") => Some(Scope::Namespaced),
        None => {
            errors.required(path, "Required value: Cluster or Namespaced");
            None
        }
        Some(other) => {
            let message = format!("Unsupported value: {other:?}: supported values: \"Cluster\", \"Namespaced\"");
            errors.push(path, FieldErrorReason::NotSupported, message);
            None
        }
    }
}

/// Versions differ in their schema alone: nothing here calls webhooks.
fn check_conversion(spec: &Map<String, Value>, path: &Path, errors: &mut Errors) {
    let path = path.field("conversion");
    let strategy = spec.get("conversion").and_then(|conversion| conversion.get("strategy")).and_then(Value::as_str);
    if let Some(other) = strategy.filter(|strategy| *strategy != "None") {
        let message = format!(
            "Unsupported value: {other:?}: supported values: \"None\"; versions that need a webhook to convert cannot be served: keep one version, or versions that differ in schema alone"
        );
        errors.push(path.field("strategy"), FieldErrorReason::NotSupported, message);
    }
    if spec.get("preserveUnknownFields").and_then(Value::as_bool) == Some(true) {
        let message =
            "Invalid value: true: must be false; set x-kubernetes-preserve-unknown-fields: true in the schema";
        errors.invalid("spec.preserveUnknownFields", message);
    }
}

fn check_group(crd: &Object, kind: &Kind, errors: &mut Errors) {
    let group = &*kind.resource.group;
    if group.is_empty() {
        errors.required("spec.group", "Required value");
    } else if check_dns_subdomain(group).is_err() || !group.contains('.') {
        errors.invalid("spec.group", format!("Invalid value: {group:?}: should be a domain with at least one dot"));
    }
    let wanted = kind.resource.to_string();
    if crd.name() != wanted {
        let message =
            format!("Invalid value: {:?}: must be spec.names.plural+\".\"+spec.group: {wanted:?}", crd.name());
        errors.invalid("metadata.name", message);
    }
    let is_protected = PROTECTED_GROUPS
        .iter()
        .any(|protected| group == *protected || group.strip_suffix(protected).is_some_and(|rest| rest.ends_with('.')));
    let annotations = crd.metadata().get("annotations");
    let approved = annotations.and_then(|annotations| annotations.get(APPROVAL)).and_then(Value::as_str);
    if is_protected && approved.is_none_or(str::is_empty) {
        let message = format!(
            "Required value: protected groups must have the annotation {APPROVAL}; use a group of your own domain"
        );
        errors.required(format!("metadata.annotations[{APPROVAL}]"), message);
    }
}
