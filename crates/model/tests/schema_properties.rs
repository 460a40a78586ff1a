//! What holds for every structural schema and every JSON value.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tidegate_model::Object;
use tidegate_model::kinds::Kind;
use tidegate_model::schema::{Additional, Node, NodeKind, Schema};

/// Few names, so that values often meet what schemas specify.
fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "metadata", "namespace", "x-y"]).prop_map(String::from)
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..9).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[abé0-9 ]{0,4}".prop_map(Value::from),
        prop::sample::select(vec!["1h", "2026-01-01T00:00:00Z", "10.0.0.1", "YQ==", "a@b.c"]).prop_map(Value::from),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 48, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            btree_map(name(), inner, 0..5).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn rules() -> impl Strategy<Value = Value> {
    let rule = prop::sample::select(vec![
        "self == self",
        "self == oldSelf",
        "size(self) < 3",
        "self.all(x, x == x)",
        "self.exists(x, self.all(y, x == y))",
        "has(self.a) ? self.a == self.a : true",
        "self.map(x, x).size() >= 0",
        "self.?a.hasValue() || true",
        "string(self).size() > 1",
    ]);
    vec(rule.prop_map(|rule| json!({"rule": rule})), 0..2).prop_map(Value::from)
}

/// A keyword that may or may not be there.
fn maybe(
    keyword: &'static str,
    value: impl Strategy<Value = Value> + 'static,
) -> BoxedStrategy<Option<(String, Value)>> {
    prop::option::weighted(0.2, value.prop_map(move |value| (keyword.to_owned(), value))).boxed()
}

fn with(base: Value, keywords: Vec<Option<(String, Value)>>) -> Value {
    let mut schema: Map<String, Value> = base.as_object().cloned().unwrap_or_default();
    schema.extend(keywords.into_iter().flatten());
    Value::Object(schema)
}

fn common() -> Vec<BoxedStrategy<Option<(String, Value)>>> {
    vec![
        maybe("nullable", any::<bool>().prop_map(Value::from)),
        maybe("default", scalar()),
        maybe("enum", vec(scalar(), 1..3).prop_map(Value::from)),
        maybe("x-kubernetes-validations", rules()),
        maybe("anyOf", vec(branch(), 1..3).prop_map(Value::from)),
        maybe("not", branch()),
    ]
}

fn branch() -> impl Strategy<Value = Value> {
    prop_oneof![
        (0_u64..4).prop_map(|n| json!({"minLength": n})),
        (0_i64..4).prop_map(|n| json!({"maximum": n})),
        Just(json!({"pattern": "^a"})),
        vec(name(), 0..2).prop_map(|names| json!({"required": names})),
    ]
}

fn leaf() -> impl Strategy<Value = Value> {
    let base = prop_oneof![
        Just(json!({"type": "string"})),
        prop::sample::select(vec!["date-time", "duration", "byte", "ipv4", "email", "cel-expression", "own"])
            .prop_map(|format| json!({"type": "string", "format": format})),
        (0_u64..4).prop_map(|n| json!({"type": "string", "minLength": n, "maxLength": n + 2, "pattern": "^[a-c]*$"})),
        (-2_i64..4).prop_map(|n| json!({"type": "integer", "minimum": n, "format": "int32"})),
        Just(json!({"type": "number", "multipleOf": 0.5})),
        Just(json!({"type": "boolean"})),
        Just(json!({"x-kubernetes-int-or-string": true})),
        Just(json!({"x-kubernetes-preserve-unknown-fields": true})),
    ];
    (base, common()).prop_map(|(base, keywords)| with(base, keywords))
}

fn schema() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(4, 32, 4, |inner| {
        let properties = btree_map(name(), inner.clone(), 0..4);
        let object = prop_oneof![
            (properties, vec(name(), 0..2), any::<bool>()).prop_map(|(properties, required, preserve)| {
                let mut schema = json!({"type": "object", "properties": properties, "required": required});
                if preserve {
                    schema["x-kubernetes-preserve-unknown-fields"] = json!(true);
                }
                schema
            }),
            inner.clone().prop_map(|inner| json!({"type": "object", "additionalProperties": inner})),
            inner.clone().prop_map(|inner| json!({"type": "array", "items": inner})),
            inner.prop_map(|inner| json!({"type": "array", "items": inner, "x-kubernetes-list-type": "set"})),
        ];
        (object, common()).prop_map(|(base, keywords)| with(base, keywords))
    })
}

/// A kind whose `spec` is `schema`; `None` if that is not structural.
fn kind(schema: &Value) -> Option<Kind> {
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Cluster", "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema}}},
            }],
        },
    });
    Kind::from_crd(&Object::from_value(crd)?).ok()
}

fn object(spec: Value) -> Object {
    let value = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "one"}, "spec": spec});
    Object::from_value(value).expect("an object")
}

/// Every field of `before` that `node` specifies is still in `after`.
fn keeps_specified(node: &Node, before: &Value, after: &Value) -> bool {
    match (&node.kind, before, after) {
        (NodeKind::Object(object), Value::Object(before), Value::Object(after)) => {
            before.iter().all(|(name, value)| {
                let additional = match &object.additional {
                    Additional::Of(child) => Some(child),
                    _ => None,
                };
                match object.properties.get(name.as_str()).or(additional) {
                    Some(child) => after.get(name).is_some_and(|after| keeps_specified(child, value, after)),
                    None => true,
                }
            })
        }
        (NodeKind::Array(array), Value::Array(before), Value::Array(after)) => {
            before.len() == after.len() && before.iter().zip(after).all(|(b, a)| keeps_specified(&array.items, b, a))
        }
        _ => before == after,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn pruning_is_idempotent_and_keeps_what_is_specified(schema in schema(), value in value()) {
        if let Some(kind) = kind(&schema) {
            let schema = &kind.storage_version().schema;
            let before = json!({"apiVersion": "v1", "kind": "K", "metadata": {"own": value.clone()}, "spec": value});
            let mut once = before.clone();
            schema.prune(&mut once);
            prop_assert!(keeps_specified(schema.root(), &before, &once));
            prop_assert_eq!(&once["metadata"], &before["metadata"]);
            let mut twice = once.clone();
            schema.prune(&mut twice);
            prop_assert_eq!(once, twice);
        }
    }

    #[test]
    fn defaulting_is_idempotent(schema in schema(), value in value()) {
        if let Some(kind) = kind(&schema) {
            let mut once = json!({"spec": value});
            kind.storage_version().schema.default(&mut once).unwrap();
            let mut twice = once.clone();
            kind.storage_version().schema.default(&mut twice).unwrap();
            prop_assert_eq!(once, twice);
        }
    }

    #[test]
    fn admitting_twice_changes_nothing(schema in schema(), value in value(), old in prop::option::of(value())) {
        if let Some(kind) = kind(&schema) {
            let version = kind.storage_version();
            let old = old.map(object);
            let mut once = object(value);
            let first = kind.admit(version, &mut once, old.as_ref());
            let mut twice = once.clone();
            let second = kind.admit(version, &mut twice, old.as_ref());
            prop_assert_eq!(&once, &twice);
            prop_assert_eq!(first, second);
        }
    }

    #[test]
    fn no_schema_and_no_value_panics(schema in schema(), junk in value(), value in value()) {
        for candidate in [schema, junk] {
            let source = json!({"type": "object", "properties": {"spec": candidate}});
            if let Ok(schema) = Schema::compile(&source) {
                schema.validate(&json!({"spec": value}), Some(&json!({"spec": value})));
                schema.validate(&value, None);
                schema.validate_status(&value, None);
            }
        }
    }
}
