//! `x-kubernetes-validations`: rules in CEL.

mod kube;

use serde_json::Value;

use super::compile::{Compiler, Surroundings};
use super::node::Node;
use super::path::{Errors, Path};
use super::source::Source;

pub(super) use kube::parse_check;

#[derive(Debug)]
pub(super) struct Rule;

impl<'a> Compiler<'a> {
    pub(super) fn rules(&mut self, source: Source<'a, '_>, _node: &Node, _around: Surroundings) -> Box<[Rule]> {
        let _ = source.list("x-kubernetes-validations", &mut self.errors);
        Box::default()
    }
}

pub(super) fn rules(_: &Node, _: &Value, _: Option<&Value>, _: &Path, _: &mut Errors) {}
pub(super) fn rules_at(_: &Node, _: &Value, _: Option<&Value>, _: &Path, _: &mut Errors) {}
