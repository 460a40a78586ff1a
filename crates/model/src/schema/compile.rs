//! From OpenAPI v3 JSON to nodes, under the structural rules of
//! `apiextensions.k8s.io/v1`.
//!
//! Every error names the keyword's place. A schema that compiles can be walked
//! without further checks: the depth and the number of its nodes are bounded,
//! its patterns and rules are compiled, its defaults are valid.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::checks::Pattern;
use super::node::{Additional, ArrayNode, ListType, Node, NodeKind, ObjectNode};
use super::path::{Errors, Path};
use super::source::{Source, Texts};
use super::{DESCRIPTION_LENGTH_MAX, PATTERNS_MAX, SCHEMA_DEPTH_MAX, SCHEMA_NODES_MAX, defaulting, go_regex, validate};
use crate::FieldErrorReason;

const TYPE_REQUIRED: &str = "Required value: must not be empty for specified fields; \
     say x-kubernetes-preserve-unknown-fields: true for any value";

pub(super) struct Compiler<'a> {
    pub errors: Errors,
    pub texts: Texts,
    pub patterns: Patterns,
    pub expression_bytes: usize,
    pub nodes: usize,
    /// Equal sub-schemas in the same surroundings compile to one node.
    shared: HashMap<(&'a Value, Surroundings), Arc<Node>>,
}

/// Each distinct pattern of a schema, compiled once.
#[derive(Default)]
pub(super) struct Patterns(HashMap<Box<str>, Result<Pattern, String>>);

impl Patterns {
    pub fn compile(&mut self, text: &str) -> Result<Pattern, String> {
        if let Some(known) = self.0.get(text) {
            return known.clone();
        }
        if self.0.len() == PATTERNS_MAX {
            return Err(format!("is one of more than {PATTERNS_MAX} different patterns"));
        }
        let compiled = go_regex::compile(text).map(|regex| Pattern::new(text, regex));
        self.0.insert(text.into(), compiled.clone());
        compiled
    }
}

/// What a place inherits from above it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Surroundings {
    pub place: Place,
    /// An update can tell which old value became which new one: `oldSelf` has
    /// a meaning here.
    pub correlated: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// The whole object.
    Root,
    /// `metadata` of the object or of an embedded one, and all below it.
    Metadata,
    Ordinary,
}

pub(super) fn compile(schema: &Value) -> (Arc<Node>, Errors) {
    let mut compiler = Compiler {
        errors: Errors::default(),
        texts: Texts::default(),
        patterns: Patterns::default(),
        expression_bytes: 0,
        nodes: 0,
        shared: HashMap::new(),
    };
    let surroundings = Surroundings { place: Place::Root, correlated: true };
    let root = compiler.node(schema, &Path::Root, surroundings, 0);
    if compiler.errors.is_empty() && !matches!(root.kind, NodeKind::Object(_)) {
        compiler.errors.invalid("type", "Invalid value: must be object at the root");
    }
    (root, compiler.errors)
}

impl<'a> Compiler<'a> {
    pub fn node(&mut self, schema: &'a Value, path: &Path, around: Surroundings, depth: usize) -> Arc<Node> {
        self.nodes += 1;
        if depth > SCHEMA_DEPTH_MAX || self.nodes > SCHEMA_NODES_MAX {
            return self.refuse_size(path, depth);
        }
        let is_parent = ["properties", "items", "additionalProperties"].iter().any(|key| schema.get(key).is_some());
        if is_parent && let Some(node) = self.shared.get(&(schema, around)) {
            return node.clone();
        }
        let Some(source) = Source::new(schema, path, &mut self.errors) else { return Arc::new(Node::any()) };
        let node = Arc::new(self.node_at(source, around, depth));
        if is_parent {
            self.shared.insert((schema, around), node.clone());
        }
        node
    }

    /// Said once: every other place of an oversized schema would say the same.
    fn refuse_size(&mut self, path: &Path, depth: usize) -> Arc<Node> {
        if depth > SCHEMA_DEPTH_MAX {
            self.errors.push(
                path,
                FieldErrorReason::TooMany,
                format!("schema is nested deeper than {SCHEMA_DEPTH_MAX}"),
            );
        } else if self.nodes == SCHEMA_NODES_MAX + 1 {
            self.errors.push(
                path,
                FieldErrorReason::TooMany,
                format!("schema has more than {SCHEMA_NODES_MAX} places"),
            );
        }
        Arc::new(Node::any())
    }

    fn node_at(&mut self, source: Source<'a, '_>, around: Surroundings, depth: usize) -> Node {
        self.forbid_unstructural(source);
        let kind = self.kind(source, around, depth);
        let format = source.text("format", &mut self.errors).map(|format| self.texts.share(format));
        let checks = self.checks(source, depth);
        let mut node = Node {
            nullable: source.flag("nullable", &mut self.errors),
            preserve_unknown: self.preserve_unknown(source),
            embedded_resource: source.flag("x-kubernetes-embedded-resource", &mut self.errors),
            description: self.description(source),
            format,
            default: None,
            checks: (!checks.is_empty()).then(|| Box::new(checks)),
            rules: Box::default(),
            has_rules: false,
            kind,
        };
        node.rules = self.rules(source, &node, around);
        node.has_rules = !node.rules.is_empty() || children(&node).any(|child| child.has_rules);
        self.check_embedded(source, &node, around);
        self.check_completeness(source.path, &node);
        node.default = self.default_value(source, &node, around);
        node
    }

    fn kind(&mut self, source: Source<'a, '_>, around: Surroundings, depth: usize) -> NodeKind {
        let name = source.text("type", &mut self.errors);
        if source.flag("x-kubernetes-int-or-string", &mut self.errors) {
            if name.is_some() {
                self.errors
                    .forbidden(source.path.field("type"), "Forbidden: must be empty with x-kubernetes-int-or-string");
            }
            return NodeKind::IntOrString;
        }
        match name {
            Some("object") => NodeKind::Object(self.object(source, around, depth)),
            Some("array") => self.array(source, around, depth),
            Some("string") => NodeKind::String,
            Some("integer") => NodeKind::Integer,
            Some("number") => NodeKind::Number,
            Some("boolean") => NodeKind::Boolean,
            Some(other) => {
                let message = format!(
                    "Unsupported value: {other:?}: supported values: \"array\", \"boolean\", \"integer\", \"number\", \"object\", \"string\""
                );
                self.errors.push(source.path.field("type"), FieldErrorReason::NotSupported, message);
                NodeKind::Any
            }
            None => {
                if source.get("x-kubernetes-preserve-unknown-fields").is_none() {
                    self.errors.required(source.path.field("type"), TYPE_REQUIRED);
                }
                match source.get("properties") {
                    Some(_) => NodeKind::Object(self.object(source, around, depth)),
                    None => NodeKind::Any,
                }
            }
        }
    }

    fn object(&mut self, source: Source<'a, '_>, around: Surroundings, depth: usize) -> ObjectNode {
        let path = source.path;
        let atomic = match source.text("x-kubernetes-map-type", &mut self.errors) {
            None | Some("granular") => false,
            Some("atomic") => true,
            Some(other) => {
                let message = format!("Unsupported value: {other:?}: supported values: \"granular\", \"atomic\"");
                self.errors.push(path.field("x-kubernetes-map-type"), FieldErrorReason::NotSupported, message);
                false
            }
        };
        let properties_path = path.field("properties");
        let is_object = around.place == Place::Root || is_embedded(source);
        let mut properties = BTreeMap::new();
        for (name, schema) in source.map("properties", &mut self.errors).into_iter().flatten() {
            let place = match (is_object, name.as_str(), around.place) {
                (true, "metadata", _) | (_, _, Place::Metadata) => Place::Metadata,
                _ => Place::Ordinary,
            };
            let child_path = properties_path.key(name);
            if is_object && name == "metadata" {
                self.check_metadata(schema, &child_path);
            }
            let child = self.node(schema, &child_path, Surroundings { place, ..around }, depth + 1);
            properties.insert(self.texts.share(name), child);
        }
        let required = source.texts("required", &mut self.errors);
        let required = required.into_iter().map(|name| self.texts.share(name)).collect();
        let additional = self.additional(source, &properties, around, depth);
        ObjectNode { properties, additional, required, atomic }
    }

    fn additional(
        &mut self,
        source: Source<'a, '_>,
        properties: &BTreeMap<Arc<str>, Arc<Node>>,
        around: Surroundings,
        depth: usize,
    ) -> Additional {
        let path = source.path.field("additionalProperties");
        let Some(schema) = source.get("additionalProperties") else { return Additional::Unspecified };
        if !properties.is_empty() {
            self.errors.forbidden(path, "Forbidden: additionalProperties and properties are mutual exclusive");
        }
        match schema {
            Value::Bool(true) => Additional::Any,
            Value::Bool(false) => {
                self.errors.forbidden(path, "Forbidden: additionalProperties: false is not structural; unspecified fields are pruned without it");
                Additional::Unspecified
            }
            _ => {
                let place = if around.place == Place::Root { Place::Ordinary } else { around.place };
                Additional::Of(self.node(schema, &path, Surroundings { place, ..around }, depth + 1))
            }
        }
    }

    fn array(&mut self, source: Source<'a, '_>, around: Surroundings, depth: usize) -> NodeKind {
        let path = source.path.field("items");
        let keys = source.texts("x-kubernetes-list-map-keys", &mut self.errors);
        let keys = keys.into_iter().map(|key| self.texts.share(key)).collect();
        let list_type = self.list_type(source, keys);
        let Some(schema) = source.get("items") else {
            self.errors.required(path, "Required value: must be specified for an array");
            return NodeKind::Array(ArrayNode { items: Arc::new(Node::any()), list_type });
        };
        let correlated = around.correlated && matches!(list_type, ListType::Map(_));
        let items = self.node(schema, &path, Surroundings { correlated, ..around }, depth + 1);
        self.check_list(source.path, &items, &list_type);
        NodeKind::Array(ArrayNode { items, list_type })
    }

    fn list_type(&mut self, source: Source<'a, '_>, keys: Box<[Arc<str>]>) -> ListType {
        let path = source.path;
        let name = source.text("x-kubernetes-list-type", &mut self.errors);
        if name != Some("map") && !keys.is_empty() {
            self.errors.forbidden(
                path.field("x-kubernetes-list-map-keys"),
                "Forbidden: only allowed with x-kubernetes-list-type: map",
            );
        }
        match name {
            None | Some("atomic") => ListType::Atomic,
            Some("set") => ListType::Set,
            Some("map") => {
                if keys.is_empty() {
                    let message = "Required value: must not be empty with x-kubernetes-list-type: map";
                    self.errors.required(path.field("x-kubernetes-list-map-keys"), message);
                }
                ListType::Map(keys)
            }
            Some(other) => {
                let message = format!("Unsupported value: {other:?}: supported values: \"atomic\", \"set\", \"map\"");
                self.errors.push(path.field("x-kubernetes-list-type"), FieldErrorReason::NotSupported, message);
                ListType::Atomic
            }
        }
    }

    fn preserve_unknown(&mut self, source: Source<'a, '_>) -> bool {
        let keyword = "x-kubernetes-preserve-unknown-fields";
        if source.get(keyword) == Some(&Value::Bool(false)) {
            self.errors.invalid(source.path.field(keyword), "Invalid value: false: must be true or undefined");
        }
        source.flag(keyword, &mut self.errors)
    }

    /// The first paragraph, cut: the rest of a description is for the author's
    /// own documentation and would be most of a schema's memory.
    fn description(&mut self, source: Source<'a, '_>) -> Option<Arc<str>> {
        let text = source.text("description", &mut self.errors)?;
        let paragraph = text.split("\n\n").next().unwrap_or_default().trim();
        let cut = paragraph.char_indices().nth(DESCRIPTION_LENGTH_MAX).map_or(paragraph.len(), |(at, _)| at);
        (cut > 0).then(|| self.texts.share(&paragraph[..cut]))
    }

    fn default_value(&mut self, source: Source<'a, '_>, node: &Node, around: Surroundings) -> Option<Arc<Value>> {
        let value = source.keywords.get("default")?;
        let path = source.path.field("default");
        if value.is_null() && !node.nullable {
            return None; // As if it were not there: null is no value of this field.
        }
        if around.place != Place::Ordinary {
            self.errors.forbidden(path, "Forbidden: must not be set at the root or in metadata");
            return None;
        }
        let mut filled = value.clone();
        if let Err(error) = defaulting::fill(node, &mut filled) {
            self.errors.push(path, FieldErrorReason::TooLong, format!("Too long: {error}"));
            return None;
        }
        if super::prune::has_unknown(node, &filled) {
            self.errors.invalid(path, "Invalid value: must not have unknown fields: they would be pruned");
        }
        for error in validate::standalone(node, &filled) {
            self.errors.push(path, error.reason, error.to_string());
        }
        Some(Arc::new(value.clone()))
    }
}

impl Node {
    pub(super) fn any() -> Self {
        Self {
            kind: NodeKind::Any,
            nullable: true,
            preserve_unknown: true,
            embedded_resource: false,
            description: None,
            format: None,
            default: None,
            checks: None,
            rules: Box::default(),
            has_rules: false,
        }
    }
}

fn is_embedded(source: Source) -> bool {
    source.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true))
}

fn children(node: &Node) -> impl Iterator<Item = &Arc<Node>> {
    let (properties, single) = match &node.kind {
        NodeKind::Object(object) => match &object.additional {
            Additional::Of(child) => (Some(&object.properties), Some(child)),
            Additional::Unspecified | Additional::Any => (Some(&object.properties), None),
        },
        NodeKind::Array(array) => (None, Some(&array.items)),
        _ => (None, None),
    };
    properties.into_iter().flat_map(BTreeMap::values).chain(single)
}

/// Whether `metadata` restricts nothing but names is checked on the JSON: its
/// node is ordinary.
pub(super) fn metadata_keywords(schema: &Value) -> impl Iterator<Item = &String> {
    schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys)
}
