//! Filling in what the author left out.
//!
//! A null where the schema does not allow one counts as left out: it takes the
//! default, or goes. Filling twice changes nothing. Invariant: what is filled
//! in is bounded, whatever the schema and the object multiply to.

use serde_json::{Map, Value};

use super::DEFAULTS_BYTES_MAX;
use super::node::{Additional, Node, NodeKind, ObjectNode};

/// The defaults of one object have more than [`DEFAULTS_BYTES_MAX`] bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "too large after defaulting: the defaults alone have more than {DEFAULTS_BYTES_MAX} bytes; \
     use fewer items, or give the kind smaller defaults"
)]
pub struct DefaultsTooLarge;

/// After an error, `value` is filled in part.
pub(super) fn fill(node: &Node, value: &mut Value) -> Result<(), DefaultsTooLarge> {
    Filler { bytes_left: DEFAULTS_BYTES_MAX }.fill(node, value)
}

struct Filler {
    bytes_left: usize,
}

impl Filler {
    fn fill(&mut self, node: &Node, value: &mut Value) -> Result<(), DefaultsTooLarge> {
        match (&node.kind, value) {
            (NodeKind::Object(object), Value::Object(fields)) => self.fill_fields(object, fields),
            (NodeKind::Array(array), Value::Array(items)) => {
                items.iter_mut().try_for_each(|item| self.fill(&array.items, item))
            }
            _ => Ok(()),
        }
    }

    fn fill_fields(&mut self, object: &ObjectNode, fields: &mut Map<String, Value>) -> Result<(), DefaultsTooLarge> {
        fields.retain(|name, value| !value.is_null() || allows_null(object, name));
        for (name, node) in &object.properties {
            if let Some(value) = fields.get_mut(&**name) {
                self.fill(node, value)?;
            } else if let Some(default) = &node.default {
                // Before it is copied: the copy is what must not grow.
                self.spend(field_bytes_min(name, default))?;
                let mut value = Value::clone(default);
                self.fill(node, &mut value)?;
                fields.insert(name.to_string(), value);
            }
        }
        if let Additional::Of(node) = &object.additional {
            fields.values_mut().try_for_each(|value| self.fill(node, value))?;
        }
        Ok(())
    }

    fn spend(&mut self, bytes: usize) -> Result<(), DefaultsTooLarge> {
        self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or(DefaultsTooLarge)?;
        Ok(())
    }
}

/// Of what is not specified nothing is known.
fn allows_null(object: &ObjectNode, name: &str) -> bool {
    match (object.properties.get(name), &object.additional) {
        (Some(node), _) | (None, Additional::Of(node)) => node.nullable,
        (None, Additional::Any | Additional::Unspecified) => true,
    }
}

/// With its quotes and colon.
fn field_bytes_min(name: &str, value: &Value) -> usize {
    name.len() + 3 + bytes_min(value)
}

/// No more than the value has as JSON, so that nothing is refused here which
/// the limit of the whole object would allow.
fn bytes_min(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 4,
        Value::Number(_) => 1,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(bytes_min).sum::<usize>(),
        Value::Object(fields) => 2 + fields.iter().map(|(name, value)| field_bytes_min(name, value)).sum::<usize>(),
    }
}
