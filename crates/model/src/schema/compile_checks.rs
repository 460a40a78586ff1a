//! The value validations of a node, and the branches of its junctors.

use serde_json::Value;

use super::checks::{Bound, Branch, Checks, Junctors, Pattern, ScalarType};
use super::compile::Compiler;
use super::formats::Format;
use super::path::Path;
use super::source::Source;
use super::{SCHEMA_DEPTH_MAX, SCHEMA_NODES_MAX};
use crate::FieldErrorReason;

/// Keywords that may not stand in a branch: a branch checks values, it does
/// not specify fields.
const FORBIDDEN_IN_BRANCH: &[&str] = &[
    "additionalProperties",
    "default",
    "description",
    "nullable",
    "title",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
];

impl<'a> Compiler<'a> {
    pub(super) fn checks(&mut self, source: Source<'a, '_>, depth: usize) -> Checks {
        let junctors = self.junctors(source, depth);
        let errors = &mut self.errors;
        Checks {
            enumeration: source.get("enum").map(|_| source.list("enum", errors).into()),
            minimum: bound(source, "minimum", "exclusiveMinimum", errors),
            maximum: bound(source, "maximum", "exclusiveMaximum", errors),
            multiple_of: source.number("multipleOf", errors).and_then(|n| n.as_f64()).filter(|n| *n > 0.0),
            length_min: source.count("minLength", errors),
            length_max: source.count("maxLength", errors),
            items_min: source.count("minItems", errors),
            items_max: source.count("maxItems", errors),
            properties_min: source.count("minProperties", errors),
            properties_max: source.count("maxProperties", errors),
            format: source.text("format", errors).and_then(Format::parse),
            pattern: self.pattern(source),
            junctors,
        }
    }

    fn pattern(&mut self, source: Source<'a, '_>) -> Option<Pattern> {
        let text = source.text("pattern", &mut self.errors)?;
        let compiled = self.patterns.compile(text);
        let message = |reason| format!("Invalid value: {text:?}: must be a valid regular expression: {reason}");
        compiled.map_err(|reason| self.errors.invalid(source.path.field("pattern"), message(reason))).ok()
    }

    fn junctors(&mut self, source: Source<'a, '_>, depth: usize) -> Option<Box<Junctors>> {
        let said = ["allOf", "anyOf", "oneOf", "not"].iter().any(|keyword| source.get(keyword).is_some());
        if !said || is_plain_int_or_string(source) {
            return None;
        }
        let not_path = source.path.field("not");
        Some(Box::new(Junctors {
            all_of: self.branches(source, "allOf", depth),
            any_of: self.branches(source, "anyOf", depth),
            one_of: self.branches(source, "oneOf", depth),
            not: source.get("not").map(|schema| Box::new(self.branch(schema, &not_path, depth + 1))),
        }))
    }

    fn branches(&mut self, source: Source<'a, '_>, keyword: &str, depth: usize) -> Box<[Branch]> {
        let list_path = source.path.field(keyword);
        let schemas = source.list(keyword, &mut self.errors);
        schemas.iter().enumerate().map(|(at, schema)| self.branch(schema, &list_path.index(at), depth + 1)).collect()
    }

    fn branch(&mut self, schema: &'a Value, path: &Path, depth: usize) -> Branch {
        self.nodes += 1;
        if depth > SCHEMA_DEPTH_MAX || self.nodes > SCHEMA_NODES_MAX {
            let message =
                format!("schema is nested deeper than {SCHEMA_DEPTH_MAX} or has more than {SCHEMA_NODES_MAX} places");
            self.errors.push(path, FieldErrorReason::TooMany, message);
            return Branch::default();
        }
        let Some(source) = Source::new(schema, path, &mut self.errors) else { return Branch::default() };
        self.forbid_unstructural_branch(source);
        let scalar = self.branch_type(source);
        let properties_path = path.field("properties");
        let mut branch = Branch { scalar, checks: self.checks(source, depth), ..Branch::default() };
        let required = source.texts("required", &mut self.errors);
        branch.required = required.into_iter().map(|name| self.texts.share(name)).collect();
        for (name, schema) in source.map("properties", &mut self.errors).into_iter().flatten() {
            let inner = self.branch(schema, &properties_path.key(name), depth + 1);
            branch.properties.insert(self.texts.share(name), inner);
        }
        let items_path = path.field("items");
        branch.items = source.get("items").map(|schema| Box::new(self.branch(schema, &items_path, depth + 1)));
        branch
    }

    fn forbid_unstructural_branch(&mut self, source: Source<'a, '_>) {
        for keyword in FORBIDDEN_IN_BRANCH {
            if source.get(keyword).is_some() {
                self.errors.forbidden(source.path.field(keyword), "Forbidden: must be empty to be structural");
            }
        }
    }

    /// A type in a branch is half of the int-or-string idiom, or an error.
    fn branch_type(&mut self, source: Source<'a, '_>) -> Option<ScalarType> {
        match source.text("type", &mut self.errors)? {
            "integer" => Some(ScalarType::Integer),
            "string" => Some(ScalarType::String),
            _ => {
                self.errors.forbidden(source.path.field("type"), "Forbidden: must be empty to be structural");
                None
            }
        }
    }
}

fn bound(source: Source, keyword: &str, exclusive: &str, errors: &mut super::path::Errors) -> Option<Bound> {
    let exclusive = source.flag(exclusive, errors);
    source.number(keyword, errors).map(|limit| Bound { limit: limit.clone(), exclusive })
}

/// `anyOf: [{type: integer}, {type: string}]` beside the int-or-string marker
/// says nothing that the node's kind does not.
fn is_plain_int_or_string(source: Source) -> bool {
    let marked = source.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true));
    let alone = ["allOf", "oneOf", "not"].iter().all(|keyword| source.get(keyword).is_none());
    let idiom = serde_json::json!([{"type": "integer"}, {"type": "string"}]);
    marked && alone && source.get("anyOf") == Some(&idiom)
}
