//! One rule of `x-kubernetes-validations`, compiled with its schema.

use serde_json::Value;

use super::super::compile::{Compiler, Place, Surroundings};
use super::super::node::Node;
use super::super::path::Path;
use super::super::source::Source;
use super::expr::Expr;
use super::kube;
use super::translate::Scope;
use super::types::Type;
use crate::FieldErrorReason;

/// Expressions of one schema, together. HTTPRoute has 8 KiB; parsing takes
/// ~2 µs a byte, so the rules of a schema take half a second at most.
const EXPRESSIONS_BYTES_MAX: usize = 256 << 10;
/// Kubernetes' limit for a rule's message.
const MESSAGE_LENGTH_MAX: usize = 2_048;

#[derive(Debug)]
pub(in super::super) struct Rule {
    pub(super) text: Box<str>,
    pub(super) program: Expr,
    pub(super) message: Option<Box<str>>,
    pub(super) message_program: Option<Expr>,
    pub(super) reason: FieldErrorReason,
    /// Appended to the path: `.spec.name`.
    pub(super) field_path: Option<Box<str>>,
    pub(super) old_self: OldSelf,
}

/// What a rule does with the state before an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OldSelf {
    Unused,
    /// A transition rule: it is not run where there is no old value.
    Needed,
    /// `optionalOldSelf`: `oldSelf` is an optional.
    Optional,
}

impl<'a> Compiler<'a> {
    pub(in super::super) fn rules(&mut self, source: Source<'a, '_>, node: &Node, around: Surroundings) -> Box<[Rule]> {
        let keyword = "x-kubernetes-validations";
        let path = source.path.field(keyword);
        let entries = source.list(keyword, &mut self.errors);
        if !entries.is_empty() && around.place == Place::Metadata {
            self.errors.forbidden(path, "Forbidden: must not be set in metadata");
            return Box::default();
        }
        entries.iter().enumerate().filter_map(|(at, entry)| self.rule(entry, &path.index(at), node, around)).collect()
    }

    fn rule(&mut self, entry: &'a Value, path: &Path, node: &Node, around: Surroundings) -> Option<Rule> {
        let source = Source::new(entry, path, &mut self.errors)?;
        let text = source.text("rule", &mut self.errors).unwrap_or_default();
        let optional = source.flag("optionalOldSelf", &mut self.errors);
        let of = if around.place == Place::Root { Type::Object(node) } else { Type::Node(node) };
        let types = (of, if optional { Type::Unknown } else { of });
        let program = self.expression(text, &path.field("rule"), types)?;
        let message_expression = source.text("messageExpression", &mut self.errors);
        let message_program = match message_expression {
            Some(text) => Some(self.expression(text, &path.field("messageExpression"), types)?.0),
            None => None,
        };
        let old_self = match (program.1, optional) {
            (_, true) => OldSelf::Optional,
            (true, false) => OldSelf::Needed,
            (false, false) => OldSelf::Unused,
        };
        if old_self != OldSelf::Unused && !around.correlated {
            let message = "Invalid value: oldSelf cannot be used on the uncorrelatable portion of the schema: the items of a list that is not x-kubernetes-list-type: map";
            self.errors.invalid(path.field("rule"), message);
        }
        Some(Rule {
            text: text.into(),
            program: program.0,
            message: self.message(source),
            message_program,
            reason: self.reason(source),
            field_path: self.field_path(source, node),
            old_self,
        })
    }

    /// The expression, and whether it uses `oldSelf`.
    fn expression(&mut self, text: &str, path: &Path, types: (Type, Type)) -> Option<(Expr, bool)> {
        self.expression_bytes += text.len();
        if self.expression_bytes > EXPRESSIONS_BYTES_MAX {
            let message =
                format!("Too many: the rules of a schema must have at most {EXPRESSIONS_BYTES_MAX} bytes together");
            self.errors.push(path, FieldErrorReason::TooMany, message);
            return None;
        }
        let translated = kube::parse(text).and_then(|ast| {
            let variables = vec![("self".to_owned(), types.0), ("oldSelf".to_owned(), types.1)];
            let mut scope = Scope { variables, patterns: &mut self.patterns, depth: 0, uses_old: false };
            scope.translate(&ast).map(|(expr, _)| (expr, scope.uses_old))
        });
        translated.map_err(|reason| self.errors.invalid(path, format!("Invalid value: {text:?}: {reason}"))).ok()
    }

    fn message(&mut self, source: Source<'a, '_>) -> Option<Box<str>> {
        let text = source.text("message", &mut self.errors)?;
        if text.trim().is_empty() || text.contains('\n') || text.chars().count() > MESSAGE_LENGTH_MAX {
            let message = format!("Invalid value: must be one line that is not empty, of at most {MESSAGE_LENGTH_MAX}");
            self.errors.invalid(source.path.field("message"), message);
        }
        Some(text.trim().into())
    }

    fn reason(&mut self, source: Source<'a, '_>) -> FieldErrorReason {
        match source.text("reason", &mut self.errors) {
            None | Some("FieldValueInvalid") => FieldErrorReason::Invalid,
            Some("FieldValueForbidden") => FieldErrorReason::Forbidden,
            Some("FieldValueRequired") => FieldErrorReason::Required,
            Some("FieldValueDuplicate") => FieldErrorReason::Duplicate,
            Some(other) => {
                let message = format!(
                    "Unsupported value: {other:?}: supported values: \"FieldValueRequired\", \"FieldValueInvalid\", \"FieldValueForbidden\", \"FieldValueDuplicate\""
                );
                self.errors.push(source.path.field("reason"), FieldErrorReason::NotSupported, message);
                FieldErrorReason::Invalid
            }
        }
    }

    /// A JSON path below the node: `.foo.bar` or `.foo['bar']`.
    fn field_path(&mut self, source: Source<'a, '_>, node: &Node) -> Option<Box<str>> {
        let text = source.text("fieldPath", &mut self.errors)?;
        let mut at = Some(node);
        let names = text.split(['.', '[', ']', '\'']).filter(|name| !name.is_empty());
        for name in names {
            at = at.and_then(|node| node.field(name)).map(AsRef::as_ref);
        }
        if !text.starts_with(['.', '[']) || at.is_none() {
            let message =
                format!("Invalid value: {text:?}: must be a valid path to a field of the schema, such as .spec.name");
            self.errors.invalid(source.path.field("fieldPath"), message);
        }
        Some(text.into())
    }
}
