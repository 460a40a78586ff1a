//! The compiled form of a structural schema: a tree of nodes, one for each
//! place in an object that the schema specifies.
//!
//! Invariant: equal sub-schemas of one schema are one `Arc`, so a pod template
//! that appears four times costs once. Nothing here changes after compiling.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::cel::Rule;
use super::checks::Checks;

#[derive(Debug)]
pub struct Node {
    pub kind: NodeKind,
    pub nullable: bool,
    /// Unspecified fields below this node are kept, not pruned.
    pub preserve_unknown: bool,
    /// The value is a whole object with `apiVersion`, `kind` and `metadata`.
    pub embedded_resource: bool,
    /// The first paragraph of the author's description, for generated docs.
    pub description: Option<Arc<str>>,
    pub format: Option<Arc<str>>,
    pub default: Option<Arc<Value>>,
    /// Value validations: ranges, patterns, enums, `anyOf`.
    pub checks: Option<Box<Checks>>,
    /// `x-kubernetes-validations`.
    pub(super) rules: Box<[Rule]>,
    /// Some rule applies at this node or below it: a walk that looks for rules
    /// turns back where there are none.
    pub(super) has_rules: bool,
}

#[derive(Debug)]
pub enum NodeKind {
    Object(ObjectNode),
    Array(ArrayNode),
    String,
    Integer,
    Number,
    Boolean,
    IntOrString,
    /// No type: anything, never pruned.
    Any,
}

#[derive(Debug, Default)]
pub struct ObjectNode {
    pub properties: BTreeMap<Arc<str>, Arc<Node>>,
    /// What the schema says of fields that `properties` does not name.
    pub additional: Additional,
    pub required: Box<[Arc<str>]>,
    /// `x-kubernetes-map-type: atomic`.
    pub atomic: bool,
}

#[derive(Debug, Default)]
pub enum Additional {
    /// Not specified: pruned unless the node preserves unknown fields.
    #[default]
    Unspecified,
    Any,
    Of(Arc<Node>),
}

#[derive(Debug)]
pub struct ArrayNode {
    pub items: Arc<Node>,
    pub list_type: ListType,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListType {
    Atomic,
    Set,
    /// Items are identified by these fields; a duplicate is refused.
    Map(Box<[Arc<str>]>),
}

impl Node {
    /// The children of an object, for walks that do not care for the rest.
    pub fn properties(&self) -> Option<&BTreeMap<Arc<str>, Arc<Node>>> {
        match &self.kind {
            NodeKind::Object(object) => Some(&object.properties),
            _ => None,
        }
    }

    pub fn property(&self, name: &str) -> Option<&Arc<Node>> {
        self.properties()?.get(name)
    }

    /// The allowed values, if the schema lists them.
    pub fn enumeration(&self) -> Option<&[Value]> {
        self.checks.as_deref().and_then(|checks| checks.enumeration.as_deref())
    }

    /// The name of the type, as JSON schema spells it.
    pub fn type_name(&self) -> &'static str {
        match self.kind {
            NodeKind::Object(_) => "object",
            NodeKind::Array(_) => "array",
            NodeKind::String => "string",
            NodeKind::Integer => "integer",
            NodeKind::Number => "number",
            NodeKind::Boolean => "boolean",
            NodeKind::IntOrString => "integer or string",
            NodeKind::Any => "any",
        }
    }

    pub(super) fn is_scalar(&self) -> bool {
        !matches!(self.kind, NodeKind::Object(_) | NodeKind::Array(_) | NodeKind::Any)
    }

    /// The node for field `name` of an object at this node, specified by name
    /// or as an additional property.
    pub(super) fn field(&self, name: &str) -> Option<&Arc<Node>> {
        let NodeKind::Object(object) = &self.kind else { return None };
        object.properties.get(name).or(match &object.additional {
            Additional::Of(node) => Some(node),
            Additional::Unspecified | Additional::Any => None,
        })
    }
}
