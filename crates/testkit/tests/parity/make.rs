//! Objects made up from a schema as its author wrote it: of the right types,
//! with required fields and allowed values, otherwise left to chance.

use regex::Regex;
use serde_json::{Map, Value, json};

use crate::chance::Chance;
use crate::samples::{FORMATS, WORDS};

/// Deeper than this only what is required.
const DEPTH_MAX: usize = 9;
const TRIES_MAX: usize = 12;

/// `optional` is the chance of a field that may be left out, in percent.
pub fn make(schema: &Value, chance: &mut Chance, optional: usize, depth: usize) -> Value {
    if let Some(allowed) = schema["enum"].as_array() {
        return chance.pick(allowed).clone();
    }
    if schema["nullable"] == true && chance.percent(10) {
        return Value::Null;
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return if chance.percent(50) { json!(chance.below(12)) } else { text(schema, chance).into() };
    }
    match schema["type"].as_str() {
        Some("object") => object(schema, chance, optional, depth),
        Some("array") => array(schema, chance, optional, depth),
        Some("string") => text(schema, chance).into(),
        Some("integer") => json!(number(schema, chance) as i64),
        Some("number") => json!(number(schema, chance) + 0.5),
        Some("boolean") => json!(chance.percent(50)),
        _ => json!({"free": [1, "two", {"three": null}]}),
    }
}

fn object(schema: &Value, chance: &mut Chance, optional: usize, depth: usize) -> Value {
    let mut fields = Map::new();
    if schema["x-kubernetes-embedded-resource"] == true {
        fields.insert("apiVersion".into(), json!("v1"));
        fields.insert("kind".into(), json!("ConfigMap"));
        fields.insert("metadata".into(), json!({"name": "inner"}));
    }
    let mut required = strings(&schema["required"]);
    for junctor in ["oneOf", "anyOf"] {
        if let Some(branches) = schema[junctor].as_array() {
            required.extend(strings(&chance.pick(branches)["required"]));
        }
    }
    for (name, child) in schema["properties"].as_object().into_iter().flatten() {
        let is_wanted = depth < DEPTH_MAX && chance.percent(optional);
        if required.contains(&name.as_str()) || is_wanted {
            fields.insert(name.clone(), make(child, chance, optional, depth + 1));
        }
    }
    if schema["additionalProperties"].is_object() {
        for _ in 0..chance.below(3) {
            let name = (*chance.pick(&WORDS)).to_owned();
            fields.insert(name, make(&schema["additionalProperties"], chance, optional, depth + 1));
        }
    }
    Value::Object(fields)
}

fn array(schema: &Value, chance: &mut Chance, optional: usize, depth: usize) -> Value {
    let least = schema["minItems"].as_u64().unwrap_or(0) as usize;
    let most = schema["maxItems"].as_u64().unwrap_or(3).min(3) as usize;
    let count = least + chance.below(most.saturating_sub(least) + 1);
    let mut items: Vec<Value> = Vec::with_capacity(count);
    for _ in 0..count {
        let item = make(&schema["items"], chance, optional, depth + 1);
        // Mostly without duplicates, which list maps and sets refuse.
        if !items.contains(&item) || chance.percent(5) {
            items.push(item);
        }
    }
    items.into()
}

/// A sample that fits the format, the pattern and the length if chance finds
/// one.
fn text(schema: &Value, chance: &mut Chance) -> String {
    let format = schema["format"].as_str().unwrap_or_default();
    let samples = FORMATS.iter().find(|(name, _)| *name == format).map_or(&WORDS[..], |(_, samples)| samples);
    let pattern = schema["pattern"].as_str().and_then(|pattern| Regex::new(pattern).ok());
    let length = schema["minLength"].as_u64().unwrap_or(0)..=schema["maxLength"].as_u64().unwrap_or(u64::MAX);
    let fits = |word: &str| {
        length.contains(&(word.chars().count() as u64)) && pattern.as_ref().is_none_or(|pattern| pattern.is_match(word))
    };
    let mut word = *chance.pick(samples);
    for _ in 0..TRIES_MAX {
        if fits(word) {
            break;
        }
        word = *chance.pick(samples);
    }
    if fits(word) { word } else { WORDS.iter().copied().find(|word| fits(word)).unwrap_or(word) }.to_owned()
}

fn number(schema: &Value, chance: &mut Chance) -> f64 {
    let least = schema["minimum"].as_f64().unwrap_or(0.0);
    let most = schema["maximum"].as_f64().unwrap_or(least + 5.0);
    (least + chance.below(6) as f64).min(most)
}

fn strings(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}
