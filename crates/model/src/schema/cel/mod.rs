//! `x-kubernetes-validations`: rules in CEL.
//!
//! Expressions are parsed by `kube-cel`, checked and run by ourselves, over
//! the JSON where it lies.

mod expr;
mod kube;
mod library;
mod machine;
mod macros;
mod operators;
mod rule;
mod translate;
mod types;
mod value;

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use serde_json::Value;

use super::judge::shown;
use super::node::{Additional, ArrayNode, ListType, Node, NodeKind};
use super::path::{Errors, Path};
use crate::FieldErrorReason;
use machine::{Budget, Fail, Machine};
use rule::OldSelf;
pub(super) use rule::Rule;
use value::Val;

/// Steps that all rules of one object may take: Kubernetes' own budget, about
/// half a second at worst.
const RULES_STEPS_MAX: u64 = 10_000_000;
/// A message that a rule makes up is cut here, as Kubernetes does.
const MESSAGE_LENGTH_MAX: usize = 5_120;

/// Whether `text` is an expression; the names in it are somebody else's.
pub(super) fn parse_check(text: &str) -> Result<(), String> {
    kube::parse(text).map(|_| ()).map_err(|reason| format!("must be a CEL expression: {reason}"))
}

/// All rules at `node` and below it.
pub(super) fn rules(node: &Node, value: &Value, old: Option<&Value>, path: &Path, errors: &mut Errors) {
    Walk { budget: Budget::new(RULES_STEPS_MAX), errors }.walk(node, value, old, path);
}

/// The rules at `node` alone.
pub(super) fn rules_at(node: &Node, value: &Value, old: Option<&Value>, path: &Path, errors: &mut Errors) {
    Walk { budget: Budget::new(RULES_STEPS_MAX), errors }.rules_here(node, value, old, path);
}

struct Walk<'e> {
    budget: Budget,
    errors: &'e mut Errors,
}

impl Walk<'_> {
    fn walk(&mut self, node: &Node, value: &Value, old: Option<&Value>, path: &Path) {
        if !node.has_rules || value.is_null() || self.errors.is_full() || self.budget.left() == 0 {
            return;
        }
        self.rules_here(node, value, old, path);
        match (&node.kind, value) {
            (NodeKind::Object(object), Value::Object(fields)) => {
                for (name, value) in fields {
                    let old = old.and_then(|old| old.get(name));
                    if let Some(child) = object.properties.get(name.as_str()) {
                        self.walk(child, value, old, &path.field(name));
                    } else if let Additional::Of(child) = &object.additional {
                        self.walk(child, value, old, &path.key(name));
                    }
                }
            }
            (NodeKind::Array(array), Value::Array(items)) => self.walk_items(array, items, old, path),
            _ => {}
        }
    }

    fn walk_items(&mut self, array: &ArrayNode, items: &[Value], old: Option<&Value>, path: &Path) {
        let old_items = old.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let before = Before::of(&array.list_type, old_items);
        for (at, item) in items.iter().enumerate() {
            self.walk(&array.items, item, before.find(item), &path.index(at));
        }
    }

    fn rules_here(&mut self, node: &Node, value: &Value, old: Option<&Value>, path: &Path) {
        let old = old.filter(|old| !old.is_null());
        for rule in &node.rules {
            if rule.old_self == OldSelf::Needed && old.is_none() {
                continue;
            }
            let this = Val::of(value, Some(node));
            let before = old.map(|old| Val::of(old, Some(node)));
            let before = match rule.old_self {
                OldSelf::Optional => Val::Optional(before.map(Rc::new)),
                OldSelf::Unused | OldSelf::Needed => before.unwrap_or(Val::Null),
            };
            let mut machine = Machine { slots: vec![this, before], budget: &mut self.budget };
            match machine.flag(&rule.program) {
                Ok(true) => {}
                Ok(false) => {
                    let message = message(rule, &mut machine);
                    self.refuse(rule, value, path, &message);
                }
                Err(Fail::Budget) => return self.stop(path),
                Err(Fail::Error(reason)) => {
                    let rule = rule.message.as_deref().unwrap_or(&rule.text);
                    self.errors
                        .invalid(path, format!("Invalid value: {}: {reason} evaluating rule: {rule}", shown(value)));
                }
            }
        }
    }

    fn refuse(&mut self, rule: &Rule, value: &Value, path: &Path, message: &str) {
        let prefix = match rule.reason {
            FieldErrorReason::Required => "Required value".to_owned(),
            FieldErrorReason::Forbidden => "Forbidden".to_owned(),
            FieldErrorReason::Duplicate => format!("Duplicate value: {}", shown(value)),
            _ => format!("Invalid value: {}", shown(value)),
        };
        let place = format!("{path}{}", rule.field_path.as_deref().unwrap_or_default());
        self.errors.push(place.trim_start_matches('.'), rule.reason, format!("{prefix}: {message}"));
    }

    fn stop(&mut self, path: &Path) {
        let message = "validation failed due to running out of cost budget, no further validation rules will be run: shorten the lists and texts of the object, or simplify the rules of its kind";
        self.errors.forbidden(path, message);
    }
}

/// The old items of a list, found by the keys of the new ones.
enum Before<'a> {
    /// Nothing tells which old item became which new one.
    Uncorrelated,
    ByKey(&'a [Arc<str>], HashMap<Vec<Option<&'a Value>>, &'a Value>),
}

impl<'a> Before<'a> {
    fn of(list_type: &'a ListType, items: &'a [Value]) -> Self {
        let ListType::Map(keys) = list_type else { return Self::Uncorrelated };
        let keyed = items.iter().map(|item| (keys.iter().map(|key| item.get(&**key)).collect(), item));
        Self::ByKey(keys, keyed.collect())
    }

    fn find(&self, item: &Value) -> Option<&'a Value> {
        let Self::ByKey(keys, items) = self else { return None };
        let key: Vec<Option<&Value>> = keys.iter().map(|key| item.get(&**key)).collect();
        items.get(&key).copied()
    }
}

/// The rule's own words: computed, written, or its text.
fn message<'a>(rule: &'a Rule, machine: &mut Machine<'a, '_>) -> String {
    let computed = rule.message_program.as_ref().and_then(|program| machine.run(program).ok());
    let computed = computed.as_ref().and_then(Val::as_text).map(str::trim);
    let usable = |text: &&str| !text.is_empty() && !text.contains('\n') && text.len() <= MESSAGE_LENGTH_MAX;
    match (computed.filter(usable), &rule.message) {
        (Some(text), _) => text.to_owned(),
        (None, Some(text)) => text.to_string(),
        (None, None) => format!("failed rule: {}", rule.text),
    }
}
