//! A hook's spec, read once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tidegate_model::{LabelSelector, Object};

const TIMEOUT_MIN: Duration = Duration::from_millis(100);
const TIMEOUT_MAX: Duration = Duration::from_secs(60);

#[derive(Clone, PartialEq, Debug)]
pub struct HookSpec {
    pub name: Arc<str>,
    pub target: Target,
    pub namespaces: Vec<String>,
    pub selector: LabelSelector,
    pub url: String,
    pub ca_bundle: Option<String>,
    pub timeout: Duration,
    pub secret: Option<SecretRef>,
    pub related: Vec<Related>,
    pub concurrency: usize,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    pub api_version: String,
    pub kind: String,
}

/// A file of the secrets directory.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct SecretRef {
    pub namespace: String,
    pub name: String,
    #[serde(default = "default_key")]
    pub key: String,
}

/// A kind of which objects are sent along, and which of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Related {
    pub name: String,
    pub target: Target,
    pub by: By,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum By {
    /// The one that this field names: `spec.siteRef.name`.
    Field(String),
    /// All that the selector matches and whose labels have the values of these
    /// fields: `example.com/site` and `metadata.name`.
    Labels { selector: LabelSelector, fields: Vec<(String, String)> },
}

/// Something that the schema let pass, and where.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct SpecError(pub String);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire {
    target: Target,
    #[serde(default)]
    namespaces: Vec<String>,
    selector: Option<Value>,
    endpoint: WireEndpoint,
    secret_ref: Option<SecretRef>,
    #[serde(default)]
    related: Vec<WireRelated>,
    concurrency: Option<usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireEndpoint {
    url: String,
    ca_bundle: Option<String>,
    timeout: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireRelated {
    name: String,
    #[serde(flatten)]
    target: Target,
    field: Option<String>,
    selector: Option<Value>,
    label_fields: Option<BTreeMap<String, String>>,
}

impl WireRelated {
    fn read(self, at: usize) -> Result<Related, SpecError> {
        let Self { name, target, field, selector, label_fields } = self;
        let path = format!("spec.related[{at}]");
        let by = match (field, selector, label_fields) {
            (Some(field), None, None) => By::Field(field),
            (None, selector, fields) if selector.is_some() || fields.is_some() => By::Labels {
                selector: read_selector(&format!("{path}.selector"), selector.as_ref())?,
                fields: fields.into_iter().flatten().collect(),
            },
            _ => {
                let message = format!("{path}: give either `field`, or `selector` and `labelFields`");
                return Err(SpecError(message));
            }
        };
        Ok(Related { name, target, by })
    }
}

/// Everything if there is none.
fn read_selector(path: &str, selector: Option<&Value>) -> Result<LabelSelector, SpecError> {
    let Some(selector) = selector else { return Ok(LabelSelector::everything()) };
    LabelSelector::from_object_form(path, selector)
        .map_err(|errors| SpecError(errors.first().map(ToString::to_string).unwrap_or_default()))
}

fn default_key() -> String {
    "token".into()
}

impl HookSpec {
    pub fn read(hook: &Object) -> Result<Self, SpecError> {
        let spec = hook.spec().cloned().unwrap_or_default();
        let wire: Wire = serde_json::from_value(spec).map_err(|error| SpecError(format!("spec: {error}")))?;
        let selector = read_selector("spec.selector", wire.selector.as_ref())?;
        let related = wire.related.into_iter().enumerate().map(|(at, related)| related.read(at));
        Ok(Self {
            name: hook.name().into(),
            target: wire.target,
            namespaces: wire.namespaces,
            selector,
            timeout: timeout(wire.endpoint.timeout.as_deref().unwrap_or("10s"))?,
            url: wire.endpoint.url,
            ca_bundle: wire.endpoint.ca_bundle,
            secret: wire.secret_ref,
            related: related.collect::<Result<_, _>>()?,
            concurrency: wire.concurrency.unwrap_or(4).clamp(1, 64),
        })
    }

    /// Whether an object of the target kind is this hook's.
    pub fn selects(&self, object: &Object) -> bool {
        let namespace = object.namespace().unwrap_or_default();
        let in_namespace = self.namespaces.is_empty() || self.namespaces.iter().any(|name| name == namespace);
        in_namespace && self.selector.matches(&object.labels())
    }

    /// The condition of this hook on the objects that it reconciles.
    pub fn condition_type(&self) -> String {
        condition_type(&self.name)
    }
}

/// Of the conditions that say how calls ended.
pub(super) const CONDITION_PREFIX: &str = "hook.tidegate.dev/";

/// The condition of a hook of this name.
pub(super) fn condition_type(hook: &str) -> String {
    format!("{CONDITION_PREFIX}{hook}")
}

fn timeout(text: &str) -> Result<Duration, SpecError> {
    duration(text).filter(|timeout| (TIMEOUT_MIN..=TIMEOUT_MAX).contains(timeout)).ok_or_else(|| {
        SpecError(format!("spec.endpoint.timeout: `{text}` is not a time from 100ms to 60s, such as 10s"))
    })
}

/// `500ms`, `30s`, `5m`, `1h`.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(unit_at);
    let number: u64 = number.parse().ok()?;
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number.checked_mul(unit_ms).map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(spec: Value) -> Result<HookSpec, SpecError> {
        let hook =
            json!({"apiVersion": "tidegate.dev/v1", "kind": "ReconcileHook", "metadata": {"name": "h"}, "spec": spec});
        HookSpec::read(&Object::from_value(hook).unwrap())
    }

    #[test]
    fn times() {
        let table = [("500ms", Some(500)), ("30s", Some(30_000)), ("2m", Some(120_000)), ("1h", Some(3_600_000))];
        for (text, expected) in
            table.into_iter().chain(["", "5", "s", "-1s", "1d", "99999999999999999999s"].map(|text| (text, None)))
        {
            assert_eq!(duration(text), expected.map(Duration::from_millis), "{text}");
        }
    }

    #[test]
    fn what_is_left_out_has_a_default() {
        let target = json!({"apiVersion": "example.com/v1", "kind": "Site"});
        let spec = read(json!({"target": target, "endpoint": {"url": "http://a"}})).unwrap();
        assert_eq!((spec.timeout, spec.concurrency), (Duration::from_secs(10), 4));
        let error = read(json!({"target": target, "endpoint": {"url": "http://a", "timeout": "99s"}})).unwrap_err();
        assert_eq!(error.to_string(), "spec.endpoint.timeout: `99s` is not a time from 100ms to 60s, such as 10s");
    }

    #[test]
    fn only_what_is_selected() {
        let spec = json!({
            "target": {"apiVersion": "v1", "kind": "X"}, "endpoint": {"url": "http://a"},
            "namespaces": ["shop"], "selector": {"matchLabels": {"a": "b"}},
        });
        let spec = read(spec).unwrap();
        for (namespace, label, expected) in [("shop", "b", true), ("shop", "c", false), ("other", "b", false)] {
            let object = json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "x", "namespace": namespace, "labels": {"a": label}}});
            assert_eq!(spec.selects(&Object::from_value(object).unwrap()), expected, "{namespace} {label}");
        }
    }
}
