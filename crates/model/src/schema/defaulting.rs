//! Filling in what the author left out.
//!
//! A null where the schema does not allow one counts as left out: it takes the
//! default, or goes. Filling twice changes nothing.

use serde_json::{Map, Value};

use super::node::{Additional, Node, NodeKind, ObjectNode};

pub(super) fn fill(node: &Node, value: &mut Value) {
    match (&node.kind, value) {
        (NodeKind::Object(object), Value::Object(fields)) => fill_fields(object, fields),
        (NodeKind::Array(array), Value::Array(items)) => {
            for item in items {
                fill(&array.items, item);
            }
        }
        _ => {}
    }
}

fn fill_fields(object: &ObjectNode, fields: &mut Map<String, Value>) {
    fields.retain(|name, value| {
        !value.is_null() || object.properties.get(name.as_str()).is_none_or(|node| node.nullable)
    });
    for (name, node) in &object.properties {
        if let Some(value) = fields.get_mut(&**name) {
            fill(node, value);
        } else if let Some(default) = &node.default {
            let mut value = Value::clone(default);
            fill(node, &mut value);
            fields.insert(name.to_string(), value);
        }
    }
    if let Additional::Of(node) = &object.additional {
        for value in fields.values_mut() {
            fill(node, value);
        }
    }
}
