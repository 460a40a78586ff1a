//! A schema, a value and its old state, from arbitrary bytes: compiled or
//! refused, validated or refused, never a panic and never without end.
//!
//! The three are JSON, one a line; a schema that is not an object's is wrapped,
//! so that most inputs reach the rules.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use tidegate_model::schema::Schema;

fuzz_target!(|bytes: &[u8]| {
    let mut lines = bytes.splitn(3, |byte| *byte == b'\n').map(|line| serde_json::from_slice::<Value>(line).ok());
    let Some(source) = lines.next().flatten() else { return };
    let value = lines.next().flatten().unwrap_or_default();
    let old = lines.next().flatten();
    for source in [json!({"type": "object", "properties": {"spec": source}}), source] {
        if let Ok(schema) = Schema::compile(&source) {
            check(&schema, json!({"apiVersion": "v1", "kind": "K", "spec": value}), old.as_ref());
            check(&schema, value.clone(), old.as_ref());
        }
    }
});

fn check(schema: &Schema, mut object: Value, old: Option<&Value>) {
    schema.prune(&mut object);
    if schema.default(&mut object).is_err() {
        return;
    }
    let once = object.clone();
    schema.prune(&mut object);
    schema.default(&mut object).expect("nothing is left to fill in");
    assert_eq!(once, object, "pruning and defaulting are idempotent");
    let old = old.map(|old| json!({"spec": old}));
    assert_eq!(schema.validate(&object, old.as_ref()), schema.validate(&object, old.as_ref()));
    schema.validate_status(&object, old.as_ref());
}
