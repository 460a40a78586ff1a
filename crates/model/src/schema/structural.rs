//! The rules that make a schema structural and are about more than one
//! keyword: what may not be said at all, what must be said twice, which keys a
//! list may have.

use super::checks::Branch;
use super::compile::{Compiler, Place, Surroundings, metadata_keywords};
use super::node::{ListType, Node, NodeKind};
use super::path::Path;
use super::source::Source;
use serde_json::Value;

/// Keywords of JSON schema that a structural schema may not use, and why.
const UNSTRUCTURAL: &[(&str, &str)] = &[
    ("$ref", "write the referenced schema out"),
    ("definitions", "write each schema where it is used"),
    ("dependencies", "use x-kubernetes-validations"),
    ("patternProperties", "use additionalProperties"),
    ("additionalItems", "use items"),
    ("id", "remove it"),
];

impl<'a> Compiler<'a> {
    pub(super) fn forbid_unstructural(&mut self, source: Source<'a, '_>) {
        for (keyword, remedy) in UNSTRUCTURAL {
            if source.get(keyword).is_some() {
                self.errors
                    .forbidden(source.path.field(keyword), format!("Forbidden: {keyword} is not supported: {remedy}"));
            }
        }
        if source.flag("uniqueItems", &mut self.errors) {
            let message = "Forbidden: uniqueItems cannot be set to true: use x-kubernetes-list-type: set or map";
            self.errors.forbidden(source.path.field("uniqueItems"), message);
        }
        let is_array = source.get("type").is_some_and(|name| name == "array");
        for keyword in ["x-kubernetes-list-type", "x-kubernetes-list-map-keys", "items"] {
            if source.get(keyword).is_some() && !is_array {
                self.errors.forbidden(source.path.field(keyword), format!("Forbidden: {keyword} needs type: array"));
            }
        }
    }

    /// `metadata` is specified by the platform; a schema may only narrow names.
    pub(super) fn check_metadata(&mut self, schema: &Value, path: &Path) {
        if schema.get("type").is_some_and(|name| name != "object") {
            self.errors.invalid(path.field("type"), "Invalid value: must be object for metadata");
        }
        if metadata_keywords(schema).any(|name| name != "name" && name != "generateName") {
            let message = "Forbidden: must not specify anything other than name and generateName; metadata is implicitly specified";
            self.errors.forbidden(path, message);
        }
    }

    pub(super) fn check_embedded(&mut self, source: Source<'a, '_>, node: &Node, around: Surroundings) {
        if !node.embedded_resource {
            return;
        }
        let path = source.path.field("x-kubernetes-embedded-resource");
        if around.place == Place::Root {
            self.errors.forbidden(path, "Forbidden: must not be set at the root");
        }
        match &node.kind {
            NodeKind::Object(object) if object.properties.is_empty() && !node.preserve_unknown => {
                let message = "Required value: properties or x-kubernetes-preserve-unknown-fields: true must be set for an embedded resource";
                self.errors.required(source.path.field("properties"), message);
            }
            NodeKind::Object(_) => {}
            _ => self.errors.invalid(path, "Invalid value: true: needs type: object"),
        }
    }

    /// Keys of a list map must be there to compare, items of a set comparable.
    pub(super) fn check_list(&mut self, path: &Path, items: &Node, list_type: &ListType) {
        let keys_path = path.field("x-kubernetes-list-map-keys");
        match list_type {
            ListType::Atomic => {}
            ListType::Set => {
                let atomic = match &items.kind {
                    NodeKind::Object(object) => object.atomic,
                    NodeKind::Array(array) => array.list_type == ListType::Atomic,
                    _ => true,
                };
                if !atomic || items.nullable {
                    let message = "Forbidden: items of a set must be scalar or atomic, and not nullable";
                    self.errors.forbidden(path.field("items"), message);
                }
            }
            ListType::Map(keys) => {
                let NodeKind::Object(object) = &items.kind else {
                    return self
                        .errors
                        .invalid(path.field("items"), "Invalid value: items of a list map need type: object");
                };
                for key in keys {
                    match object.properties.get(key) {
                        None => self
                            .errors
                            .invalid(keys_path, format!("Invalid value: {key:?}: must be a property of items")),
                        Some(node) if !node.is_scalar() => {
                            self.errors.invalid(
                                keys_path,
                                format!("Invalid value: {key:?}: must be a scalar property of items"),
                            );
                        }
                        Some(node) if node.default.is_none() && !object.required.contains(key) => {
                            let message = format!("Required value: {key:?} must be required or have a default");
                            self.errors.required(keys_path, message);
                        }
                        Some(_) => {}
                    }
                }
            }
        }
    }

    /// What a branch of a junctor looks into must be specified outside it.
    pub(super) fn check_completeness(&mut self, path: &Path, node: &Node) {
        let Some(junctors) = node.checks.as_deref().and_then(|checks| checks.junctors.as_deref()) else { return };
        let branches =
            junctors.all_of.iter().chain(&junctors.any_of).chain(&junctors.one_of).chain(junctors.not.as_deref());
        for branch in branches {
            self.check_branch(path, node, branch);
        }
    }

    fn check_branch(&mut self, path: &Path, node: &Node, branch: &Branch) {
        for (name, inner) in &branch.properties {
            let properties = path.field("properties");
            let path = properties.key(name);
            match node.field(name) {
                Some(child) => self.check_branch(&path, child, inner),
                None => {
                    self.errors.required(path, "Required value: must be specified outside allOf, anyOf, oneOf and not")
                }
            }
        }
        if let Some(inner) = &branch.items {
            let path = path.field("items");
            match &node.kind {
                NodeKind::Array(array) => self.check_branch(&path, &array.items, inner),
                _ => {
                    self.errors.required(path, "Required value: must be specified outside allOf, anyOf, oneOf and not")
                }
            }
        }
        let nested = branch.checks.junctors.as_deref();
        let branches =
            nested.into_iter().flat_map(|j| j.all_of.iter().chain(&j.any_of).chain(&j.one_of).chain(j.not.as_deref()));
        for inner in branches {
            self.check_branch(path, node, inner);
        }
    }
}
