//! An object: JSON with `apiVersion`, `kind` and `metadata`.

use serde_json::{Map, Value};

use crate::{GroupVersionKind, Labels};

/// Invariant: the root and `metadata` are JSON objects; `apiVersion`, `kind`
/// and `metadata.name` are strings. Everything else is the schema's business.
#[derive(Clone, PartialEq, Debug)]
pub struct Object(Map<String, Value>);

impl Object {
    /// `None` if `value` does not have an object's shape.
    pub fn from_value(value: Value) -> Option<Self> {
        let Value::Object(root) = value else { return None };
        let is_text = |value: Option<&Value>| value.is_some_and(Value::is_string);
        let metadata = root.get("metadata")?.as_object()?;
        let shaped = is_text(root.get("apiVersion")) && is_text(root.get("kind")) && is_text(metadata.get("name"));
        shaped.then_some(Self(root))
    }

    pub fn from_json(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok().and_then(Self::from_value)
    }

    pub fn into_value(self) -> Value {
        Value::Object(self.0)
    }

    pub fn root(&self) -> &Map<String, Value> {
        &self.0
    }

    /// The caller keeps the type's invariant.
    pub fn root_mut(&mut self) -> &mut Map<String, Value> {
        &mut self.0
    }

    pub fn gvk(&self) -> GroupVersionKind {
        GroupVersionKind::new(self.api_version(), self.kind())
    }

    pub fn api_version(&self) -> &str {
        self.0["apiVersion"].as_str().unwrap_or_default()
    }

    pub fn kind(&self) -> &str {
        self.0["kind"].as_str().unwrap_or_default()
    }

    pub fn metadata(&self) -> &Map<String, Value> {
        self.0["metadata"].as_object().expect("an object has metadata")
    }

    pub fn metadata_mut(&mut self) -> &mut Map<String, Value> {
        self.0["metadata"].as_object_mut().expect("an object has metadata")
    }

    pub fn name(&self) -> &str {
        self.meta_str("name").unwrap_or_default()
    }

    pub fn namespace(&self) -> Option<&str> {
        self.meta_str("namespace")
    }

    pub fn uid(&self) -> Option<&str> {
        self.meta_str("uid")
    }

    pub fn generation(&self) -> i64 {
        self.metadata().get("generation").and_then(Value::as_i64).unwrap_or(0)
    }

    pub fn deletion_timestamp(&self) -> Option<&str> {
        self.meta_str("deletionTimestamp")
    }

    pub fn finalizers(&self) -> impl Iterator<Item = &str> {
        self.metadata().get("finalizers").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    }

    pub fn labels(&self) -> Labels {
        let pairs = self.metadata().get("labels").and_then(Value::as_object).into_iter().flatten();
        pairs.filter_map(|(k, v)| Some((k.as_str(), v.as_str()?))).collect()
    }

    pub fn spec(&self) -> Option<&Value> {
        self.0.get("spec")
    }

    pub fn status(&self) -> Option<&Value> {
        self.0.get("status")
    }

    fn meta_str(&self, field: &str) -> Option<&str> {
        self.metadata().get(field).and_then(Value::as_str)
    }
}
