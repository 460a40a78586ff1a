//! Structural schemas: what compiles, what is pruned, defaulted, refused.

mod rules;
mod structure;

use serde_json::{Value, json};
use tidegate_model::schema::Schema;
use tidegate_model::yaml;

fn parse(text: &str) -> Value {
    yaml::parse(text).expect("a test schema is YAML")
}

/// A schema whose `spec` is `node`.
fn spec(node: &str) -> Schema {
    let source = parse(&format!("{{type: object, properties: {{spec: {node}}}}}"));
    Schema::compile(&source).unwrap_or_else(|errors| panic!("{node}: {errors:?}"))
}

fn lines(errors: Vec<tidegate_model::FieldError>) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

/// What is wrong with a value of `spec`.
fn check(node: &str, value: Value, wrong: &[&str]) {
    assert_eq!(lines(spec(node).validate(&json!({"spec": value}), None)), wrong, "{node} on {value}");
}

fn check_update(node: &str, old: Option<Value>, value: Value, wrong: &[&str]) {
    let old = old.map(|old| json!({"spec": old}));
    assert_eq!(lines(spec(node).validate(&json!({"spec": value}), old.as_ref())), wrong, "{node} on {value}");
}

/// What is wrong with a schema.
fn refuse(schema: &str, wrong: &[&str]) {
    let errors = Schema::compile(&parse(schema)).expect_err(schema);
    assert_eq!(lines(errors), wrong, "{schema}");
}
