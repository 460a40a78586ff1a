//! What a client selected, as a tree that is compiled once and applied to
//! thousands of objects.

use std::sync::Arc;

use async_graphql::Positioned;
use async_graphql::parser::types::{Directive, Field, Selection as AstSelection, SelectionSet};
use serde_json::Value;

use super::arguments::Variables;
use super::prepare::Prepared;
use super::types::{FieldDef, FieldType, Types};

/// The selected fields of one object type, in the order of the answer.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Selection {
    pub type_name: Arc<str>,
    pub fields: Vec<Selected>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Selected {
    /// `"key":`, ready to be written.
    pub key: Box<str>,
    pub what: What,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum What {
    TypeName,
    /// A scalar, or any JSON: written as it is stored.
    Leaf(Arc<str>),
    Object(Arc<str>, Selection),
}

impl Selection {
    pub fn sub(&self, field: &str) -> Option<&Selection> {
        self.fields.iter().find_map(|selected| match &selected.what {
            What::Object(name, sub) if &**name == field => Some(sub),
            _ => None,
        })
    }
}

/// One root field as it was asked for, with the selections of all its
/// appearances under one response key.
pub struct RootCall<'a> {
    pub response_key: &'a str,
    pub field: &'a Positioned<Field>,
    sets: Vec<&'a SelectionSet>,
}

pub struct Compiler<'a> {
    pub types: &'a Types,
    pub prepared: &'a Prepared,
    pub variables: &'a Variables,
}

impl<'a> Compiler<'a> {
    pub fn root_calls(&self, root_type: &str) -> Vec<RootCall<'a>> {
        self.collect(root_type, &[&self.prepared.operation.selection_set.node])
    }

    /// `None` for a leaf.
    pub fn compile_result(&self, call: &RootCall<'a>, result: &FieldDef) -> Option<Selection> {
        match &result.ty {
            FieldType::Object(name) => Some(self.compile(name, &call.sets)),
            FieldType::Scalar(_) | FieldType::Enum(_) => None,
        }
    }

    fn compile(&self, type_name: &Arc<str>, sets: &[&'a SelectionSet]) -> Selection {
        let calls = self.collect(type_name, sets);
        let fields = calls.iter().filter_map(|call| self.selected(type_name, call)).collect();
        Selection { type_name: type_name.clone(), fields }
    }

    fn selected(&self, type_name: &Arc<str>, call: &RootCall<'a>) -> Option<Selected> {
        let name = call.field.node.name.node.as_str();
        let key = format!("\"{}\":", call.response_key).into();
        if name == "__typename" {
            return Some(Selected { key, what: What::TypeName });
        }
        // Validation has refused fields that the type does not have.
        let field = self.types.objects.get(type_name)?.fields.get(name)?;
        let what = match self.compile_result(call, field) {
            Some(sub) => What::Object(field.json_key.clone(), sub),
            None => What::Leaf(field.json_key.clone()),
        };
        Some(Selected { key, what })
    }

    /// Fields of fragments merged in, `@skip` and `@include` decided, equal
    /// response keys joined.
    fn collect(&self, type_name: &str, sets: &[&'a SelectionSet]) -> Vec<RootCall<'a>> {
        let mut calls = Vec::new();
        for set in sets {
            self.collect_set(type_name, set, &mut calls);
        }
        calls
    }

    fn collect_set(&self, type_name: &str, set: &'a SelectionSet, calls: &mut Vec<RootCall<'a>>) {
        for item in set.items.iter().filter(|item| self.included(item.node.directives())) {
            match &item.node {
                AstSelection::Field(field) => join(calls, field),
                AstSelection::InlineFragment(fragment) => {
                    let on = fragment.node.type_condition.as_ref().map(|condition| condition.node.on.node.as_str());
                    if on.is_none_or(|on| on == type_name) {
                        self.collect_set(type_name, &fragment.node.selection_set.node, calls);
                    }
                }
                AstSelection::FragmentSpread(spread) => {
                    let fragment = self.prepared.fragments.get(&spread.node.fragment_name.node);
                    if let Some(fragment) = fragment.filter(|f| f.node.type_condition.node.on.node == type_name) {
                        self.collect_set(type_name, &fragment.node.selection_set.node, calls);
                    }
                }
            }
        }
    }

    fn included(&self, directives: &[Positioned<Directive>]) -> bool {
        directives.iter().all(|directive| {
            let condition = directive.node.get_argument("if").map(|value| self.variables.resolve(&value.node));
            match directive.node.name.node.as_str() {
                "skip" => condition != Some(Value::Bool(true)),
                "include" => condition != Some(Value::Bool(false)),
                _ => true,
            }
        })
    }
}

fn join<'a>(calls: &mut Vec<RootCall<'a>>, field: &'a Positioned<Field>) {
    let response_key = field.node.response_key().node.as_str();
    let set = &field.node.selection_set.node;
    match calls.iter_mut().find(|call| call.response_key == response_key) {
        Some(call) => call.sets.push(set),
        None => calls.push(RootCall { response_key, field, sets: vec![set] }),
    }
}
