//! Our admission and kube-apiserver's say the same.
//!
//! Every object goes to both: the verdict must be equal, and for what is
//! admitted also what is stored, after pruning and defaulting. The definitions
//! are those of public projects (`TIDEGATE_CRD_CORPUS`, or `../shared/crds`
//! beside the workspace), our own, and one that has every keyword and format.
#![allow(clippy::unwrap_used)]

mod chance;
mod corpus;
mod definitions;
mod keywords;
mod make;
mod metadata;
mod mutants;
mod on_purpose;
mod plane;
mod random;
mod samples;

use plane::{Case, plane};
use serde_json::Value;
use tidegate_model::yaml;

fn parse(text: &str) -> Value {
    yaml::parse(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The door of the model's own corpus: here both sides are asked.
fn check(object: &str, wrong: &[&str]) {
    check_update(None, object, wrong);
}

fn check_update(old: Option<&str>, object: &str, wrong: &[&str]) {
    let case = Case { old: old.map(parse), new: parse(object), about: String::new() };
    let tally = plane().compare(&[case]);
    tally.check();
    assert_eq!(tally.admitted == 1, wrong.is_empty(), "{object}: expected {wrong:?}");
}

/// What is stored is compared as a whole.
fn check_stored(object: &str, _: &str, _: Value) {
    check(object, &[]);
}
