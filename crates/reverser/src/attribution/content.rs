//! A hash of what an object says, whatever version it is said in.

use serde_json::Value;
use tidegate_model::Object;
use xxhash_rust::xxh3::Xxh3;

/// Of a sanitized object; independent of `apiVersion` and of key order.
pub fn content_hash(sanitized: &Object) -> u64 {
    let mut hasher = Xxh3::new();
    for (key, value) in sorted(sanitized.root()) {
        if key != "apiVersion" {
            feed(key, value, &mut hasher);
        }
    }
    hasher.digest()
}

fn sorted(map: &serde_json::Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    entries
}

fn feed(key: &str, value: &Value, hasher: &mut Xxh3) {
    hasher.update(&(key.len() as u64).to_le_bytes());
    hasher.update(key.as_bytes());
    feed_value(value, hasher);
}

/// Each value starts with its kind and its length, so that no two texts of
/// different structure feed the same bytes.
fn feed_value(value: &Value, hasher: &mut Xxh3) {
    let mut scalar = |tag: u8, text: &str| {
        hasher.update(&[tag]);
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    };
    match value {
        Value::Null => scalar(0, ""),
        Value::Bool(is_true) => scalar(1, if *is_true { "true" } else { "false" }),
        Value::Number(number) => scalar(2, &number.to_string()),
        Value::String(text) => scalar(3, text),
        Value::Array(items) => {
            scalar(4, "");
            hasher.update(&(items.len() as u64).to_le_bytes());
            items.iter().for_each(|item| feed_value(item, hasher));
        }
        Value::Object(map) => {
            scalar(5, "");
            hasher.update(&(map.len() as u64).to_le_bytes());
            sorted(map).into_iter().for_each(|(key, value)| feed(key, value, hasher));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hash(value: Value) -> u64 {
        content_hash(&Object::from_value(value).unwrap())
    }

    #[test]
    fn versions_and_order_do_not_matter_and_content_does() {
        let a = json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "a"}, "data": {"a": "1", "b": "2"}});
        let b = json!({"kind": "X", "apiVersion": "v2", "data": {"b": "2", "a": "1"}, "metadata": {"name": "a"}});
        let c = json!({"kind": "X", "apiVersion": "v2", "data": {"b": "21", "a": ""}, "metadata": {"name": "a"}});
        assert_eq!(hash(a), hash(b.clone()));
        assert_ne!(hash(b), hash(c));
    }
}
