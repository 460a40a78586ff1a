//! Dropping what the schema does not specify.
//!
//! Invariant: a specified field is never removed. `apiVersion` and `kind` of an
//! object (the root or an embedded one) are left alone; its `metadata` keeps
//! the fields that every object has.

use serde_json::{Map, Value};

use super::node::{Additional, Node, NodeKind, ObjectNode};
use super::object_meta;

/// Where a node stands decides what it keeps implicitly.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Role {
    /// A whole object, with its type and metadata.
    Object,
    Part,
}

impl Role {
    pub fn of(node: &Node) -> Self {
        if node.embedded_resource { Self::Object } else { Self::Part }
    }

    fn keeps(self, name: &str) -> bool {
        self == Self::Object && matches!(name, "apiVersion" | "kind" | "metadata")
    }
}

pub(super) fn prune(node: &Node, value: &mut Value, role: Role) {
    match (&node.kind, value) {
        (NodeKind::Object(object), Value::Object(fields)) => prune_fields(node, object, fields, role),
        (NodeKind::Array(array), Value::Array(items)) => {
            for item in items {
                prune(&array.items, item, Role::of(&array.items));
            }
        }
        _ => {}
    }
}

fn prune_fields(node: &Node, object: &ObjectNode, fields: &mut Map<String, Value>, role: Role) {
    if node.embedded_resource {
        prune_metadata(fields);
    }
    fields.retain(|name, value| {
        if role.keeps(name) {
            return true;
        }
        match fate(node, object, name) {
            Fate::Specified(child) => {
                prune(child, value, Role::of(child));
                true
            }
            Fate::Kept => true,
            Fate::Dropped => false,
        }
    });
}

/// A null counts as metadata that says nothing. Whatever else is no object is
/// left for validation to refuse.
fn prune_metadata(fields: &mut Map<String, Value>) {
    match fields.get_mut("metadata") {
        Some(Value::Object(metadata)) => object_meta::prune(metadata),
        Some(metadata @ Value::Null) => *metadata = Value::Object(Map::new()),
        _ => {}
    }
}

/// Whether pruning `value` would drop anything.
pub(super) fn has_unknown(node: &Node, value: &Value) -> bool {
    match (&node.kind, value) {
        (NodeKind::Object(object), Value::Object(fields)) => {
            let role = Role::of(node);
            fields.iter().filter(|(name, _)| !role.keeps(name)).any(|(name, value)| match fate(node, object, name) {
                Fate::Specified(child) => has_unknown(child, value),
                Fate::Kept => false,
                Fate::Dropped => true,
            })
        }
        (NodeKind::Array(array), Value::Array(items)) => items.iter().any(|item| has_unknown(&array.items, item)),
        _ => false,
    }
}

enum Fate<'a> {
    Specified(&'a Node),
    Kept,
    Dropped,
}

fn fate<'a>(node: &'a Node, object: &'a ObjectNode, name: &str) -> Fate<'a> {
    match (object.properties.get(name), &object.additional) {
        (Some(child), _) | (None, Additional::Of(child)) => Fate::Specified(child),
        (None, Additional::Any) => Fate::Kept,
        (None, Additional::Unspecified) if node.preserve_unknown => Fate::Kept,
        (None, Additional::Unspecified) => Fate::Dropped,
    }
}
