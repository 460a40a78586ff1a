//! Dropping what the schema does not specify.
//!
//! Invariant: a specified field is never removed, and `apiVersion`, `kind` and
//! `metadata` of an object (the root or an embedded one) are left alone.

use serde_json::{Map, Value};

use super::node::{Additional, Node, NodeKind, ObjectNode};

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
