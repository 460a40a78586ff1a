//! An object as the bytes that the store keeps and every reader receives.
//!
//! Encoded once, by whoever writes it; the commit then stamps the version into
//! the bytes in place, because every version has the same number of digits.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use crate::{Labels, Object, ResourceVersion};

/// Invariant: `json` starts with `{"apiVersion":"…","kind":"…","metadata":{`
/// and holds sixteen digits at `version_at`, its `metadata.resourceVersion`.
#[derive(Clone, Debug)]
pub struct EncodedObject {
    pub labels: Labels,
    json: Vec<u8>,
    version_at: usize,
}

const PLACEHOLDER: &str = "0000000000000000";

impl EncodedObject {
    pub fn new(object: &Object) -> Self {
        let json = serde_json::to_vec(&Ordered(object.root())).expect("JSON values serialize");
        let head = br#""metadata":{"resourceVersion":""#;
        let start =
            json.windows(head.len()).position(|window| window == head).expect("metadata starts with the version");
        Self { labels: object.labels(), json, version_at: start + head.len() }
    }

    /// The finished bytes, at `version`.
    pub fn stamp(mut self, version: ResourceVersion) -> Vec<u8> {
        let digits = version.to_string();
        self.json[self.version_at..self.version_at + ResourceVersion::DIGITS].copy_from_slice(digits.as_bytes());
        self.json
    }

    /// Where the version's digits are, for whoever stamps the bytes again.
    pub fn version_at(&self) -> usize {
        self.version_at
    }

    pub fn len(&self) -> usize {
        self.json.len()
    }

    pub fn is_empty(&self) -> bool {
        self.json.is_empty()
    }
}

/// The root with `apiVersion`, `kind`, `metadata` first, then the rest sorted.
struct Ordered<'a>(&'a Map<String, Value>);

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        const FIRST: [&str; 3] = ["apiVersion", "kind", "metadata"];
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("apiVersion", &self.0["apiVersion"])?;
        map.serialize_entry("kind", &self.0["kind"])?;
        map.serialize_entry(
            "metadata",
            &OrderedMetadata(self.0["metadata"].as_object().expect("an object has metadata")),
        )?;
        for (key, value) in self.0.iter().filter(|(key, _)| !FIRST.contains(&key.as_str())) {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

struct OrderedMetadata<'a>(&'a Map<String, Value>);

impl Serialize for OrderedMetadata<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("resourceVersion", PLACEHOLDER)?;
        for (key, value) in self.0.iter().filter(|(key, _)| *key != "resourceVersion") {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn stamps_the_version_into_metadata() {
        // A decoy before metadata must not be mistaken for it.
        let object = Object::from_value(json!({
            "apiVersion": "v1", "kind": "\"metadata\":{\"resourceVersion\":\"", "metadata": {"name": "a", "resourceVersion": "old"}, "data": {"x": 1}
        }));
        let version = ResourceVersion::line_start(1_763_240_000);
        let bytes = EncodedObject::new(&object.unwrap()).stamp(version);
        let back: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(back["metadata"]["resourceVersion"], version.to_string());
        assert_eq!(back["data"]["x"], 1);
        assert!(bytes.starts_with(br#"{"apiVersion":"v1","kind":"#));
    }
}
