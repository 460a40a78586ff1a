//! One change to an object at a place that its schema specifies.

use serde_json::{Value, json};

use crate::chance::Chance;
use crate::samples::{FORMATS, WORDS};

/// A place in an object, with what the schema says of it.
pub struct Site<'s> {
    pub pointer: String,
    schema: &'s Value,
}

/// Every specified place of `value`, from the outside in.
pub fn sites<'s>(schema: &'s Value, value: &Value, pointer: &str, found: &mut Vec<Site<'s>>) {
    found.push(Site { pointer: pointer.to_owned(), schema });
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let known = schema["properties"].get(name);
                let child = known.or_else(|| schema.get("additionalProperties").filter(|child| child.is_object()));
                if let Some(child) = child {
                    let escaped = name.replace('~', "~0").replace('/', "~1");
                    sites(child, field, &format!("{pointer}/{escaped}"), found);
                }
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                sites(&schema["items"], item, &format!("{pointer}/{at}"), found);
            }
        }
        _ => {}
    }
}

/// Changes `object` at `site`; what was done.
pub fn mutate(object: &mut Value, site: &Site, chance: &mut Chance) -> String {
    let Some(value) = object.pointer_mut(&site.pointer) else { return "nothing".into() };
    let choice = chance.below(10);
    match choice {
        0 => {
            *value = Value::Null;
            "null".into()
        }
        1 => {
            *value = another_type(value, chance);
            format!("another type: {value}")
        }
        2 => match object.pointer_mut(parent(&site.pointer)) {
            Some(Value::Object(fields)) => {
                fields.remove(&last(&site.pointer));
                "removed".into()
            }
            Some(Value::Array(items)) => {
                let again = items.first().cloned().unwrap_or_default();
                items.push(again);
                "an item twice".into()
            }
            _ => "nothing".into(),
        },
        _ => {
            *value = near_the_edge(value, site.schema, chance);
            format!("edge: {value}")
        }
    }
}

fn another_type(value: &Value, chance: &mut Chance) -> Value {
    let others =
        [json!("text"), json!(7), json!(1.5), json!(true), json!([]), json!({}), json!(["x"]), json!({"x": 1})];
    loop {
        let other = chance.pick(&others);
        if std::mem::discriminant(other) != std::mem::discriminant(value) || other.is_number() {
            return other.clone();
        }
    }
}

/// Something of the same type that the schema may or may not allow.
fn near_the_edge(value: &Value, schema: &Value, chance: &mut Chance) -> Value {
    match value {
        Value::String(_) => text(schema, chance),
        Value::Number(_) => number(schema, chance),
        Value::Array(items) => {
            let mut items = items.clone();
            match chance.below(3) {
                0 => items.clear(),
                1 => items.extend(items.clone()),
                _ => {
                    let more = schema["maxItems"].as_u64().filter(|most| *most < 70).unwrap_or(3) as usize + 1;
                    let item = items.first().cloned().unwrap_or_else(|| json!("x"));
                    items.resize(more, item);
                }
            }
            items.into()
        }
        Value::Object(fields) => {
            let mut fields = fields.clone();
            match chance.below(3) {
                0 => fields.clear(),
                1 => fields.extend([("unknown".to_owned(), json!({"x": [null, 1]}))]),
                _ => fields.extend([("".to_owned(), json!("x")), ("a/b~c".to_owned(), json!(1))]),
            }
            fields.into()
        }
        Value::Bool(is_true) => (!is_true).into(),
        Value::Null => json!({}),
    }
}

fn text(schema: &Value, chance: &mut Chance) -> Value {
    let format = schema["format"].as_str().unwrap_or_default();
    let samples = FORMATS.iter().find(|(name, _)| *name == format).map_or(&WORDS[..], |(_, samples)| samples);
    match chance.below(4) {
        // Counted in characters, not in bytes.
        0 => {
            let most = schema["maxLength"].as_u64().filter(|most| *most < 5000).unwrap_or(10) as usize;
            "ä".repeat(most + chance.below(2)).into()
        }
        1 => {
            let most = schema["maxLength"].as_u64().filter(|most| *most < 5000).unwrap_or(10) as usize;
            "a".repeat(most + chance.below(2)).into()
        }
        2 => (*chance.pick(&WORDS)).into(),
        _ => (*chance.pick(samples)).into(),
    }
}

fn number(schema: &Value, chance: &mut Chance) -> Value {
    let mut edges = vec![
        json!(0),
        json!(-1),
        json!(1),
        json!(1.0),
        json!(1.5),
        json!(1e3),
        json!(i32::MAX),
        json!(i64::from(i32::MAX) + 1),
        json!(i64::MAX),
        json!(u64::MAX),
        json!(1e21),
        json!(-0.0),
        json!(i64::MIN),
        json!(9007199254740993_i64),
    ];
    for bound in [&schema["minimum"], &schema["maximum"]] {
        if let Some(bound) = bound.as_i64() {
            edges.extend([json!(bound - 1), json!(bound), json!(bound + 1)]);
        }
    }
    chance.pick(&edges).clone()
}

fn parent(pointer: &str) -> &str {
    pointer.rsplit_once('/').map_or("", |(parent, _)| parent)
}

fn last(pointer: &str) -> String {
    pointer.rsplit_once('/').map_or("", |(_, last)| last).replace("~1", "/").replace("~0", "~")
}
