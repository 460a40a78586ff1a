//! Everything but rules.

use serde_json::{Value, json};
use tidegate_model::schema::{DefaultsTooLarge, ERRORS_MAX, SCHEMA_DEPTH_MAX, Schema};

use crate::{check, refuse, spec};

#[test]
fn unstructural_schemas_are_refused() {
    refuse("{type: string}", &["type: Invalid value: must be object at the root"]);
    refuse(
        "{type: object, properties: {a: {}}}",
        &[
            "properties[a].type: Required value: must not be empty for specified fields; say x-kubernetes-preserve-unknown-fields: true for any value",
        ],
    );
    refuse(
        "{type: object, properties: {a: {type: array}}}",
        &["properties[a].items: Required value: must be specified for an array"],
    );
    refuse(
        "{type: object, properties: {a: {type: object, additionalProperties: {type: string}, properties: {b: {type: string}}}}}",
        &["properties[a].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"],
    );
    refuse(
        "{type: object, properties: {a: {type: array, uniqueItems: true, items: {type: string}}}}",
        &[
            "properties[a].uniqueItems: Forbidden: uniqueItems cannot be set to true: use x-kubernetes-list-type: set or map",
        ],
    );
    refuse(
        "{type: object, properties: {a: {$ref: '#/b', type: string}}}",
        &["properties[a].$ref: Forbidden: $ref is not supported: write the referenced schema out"],
    );
    refuse(
        "{type: object, properties: {a: {type: string, pattern: '('}}}",
        &[
            "properties[a].pattern: Invalid value: \"(\": must be a valid regular expression: regex parse error:\n    (\n    ^\nerror: unclosed group",
        ],
    );
    refuse(
        "{type: object, properties: {metadata: {type: object, properties: {labels: {type: object}}}}}",
        &[
            "properties[metadata]: Forbidden: must not specify anything other than name and generateName; metadata is implicitly specified",
        ],
    );
    refuse(
        "{type: object, properties: {a: {type: string, nullable: 'true'}}}",
        &["properties[a].nullable: must be a boolean"],
    );
    refuse(
        "{type: object, properties: {a: {type: text}}}",
        &[
            "properties[a].type: Unsupported value: \"text\": supported values: \"array\", \"boolean\", \"integer\", \"number\", \"object\", \"string\"",
        ],
    );
}

#[test]
fn junctors_check_values_and_specify_nothing() {
    refuse(
        "{type: object, properties: {a: {type: object, properties: {b: {type: string}}}}, anyOf: [{properties: {a: {properties: {c: {minLength: 1}}}}}]}",
        &["properties[a].properties[c]: Required value: must be specified outside allOf, anyOf, oneOf and not"],
    );
    refuse(
        "{type: object, anyOf: [{type: object}, {description: x}]}",
        &[
            "anyOf[0].type: Forbidden: must be empty to be structural",
            "anyOf[1].description: Forbidden: must be empty to be structural",
        ],
    );
    let either =
        "{type: object, properties: {a: {type: string}, b: {type: string}}, oneOf: [{required: [a]}, {required: [b]}]}";
    check(either, json!({"a": "x"}), &[]);
    check(
        either,
        json!({"a": "x", "b": "y"}),
        &["spec: Invalid value: \"object\": must validate one and only one schema (oneOf)"],
    );
    check(either, json!({}), &["spec: Invalid value: \"object\": must validate one and only one schema (oneOf)"]);
    check(
        "{type: string, not: {pattern: '^a'}}",
        json!("abc"),
        &["spec: Invalid value: \"abc\": must not validate the schema (not)"],
    );
    check(
        "{type: string, allOf: [{minLength: 2}, {maxLength: 3}]}",
        json!("abcd"),
        &["spec: Too long: may not be longer than 3"],
    );
    check(
        "{type: string, anyOf: [{pattern: ^a}, {pattern: ^b}]}",
        json!("c"),
        &["spec: Invalid value: \"c\": must validate at least one schema (anyOf)"],
    );
}

#[test]
fn lists() {
    refuse(
        "{type: object, properties: {a: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, properties: {k: {type: string}}}}}}",
        &["properties[a].x-kubernetes-list-map-keys: Required value: \"k\" must be required or have a default"],
    );
    refuse(
        "{type: object, properties: {a: {type: array, x-kubernetes-list-type: set, items: {type: object}}}}",
        &["properties[a].items: Forbidden: items of a set must be scalar or atomic, and not nullable"],
    );
    check(
        "{type: array, x-kubernetes-list-type: set, items: {type: string}}",
        json!(["a", "b", "a"]),
        &["spec[2]: Duplicate value: \"a\""],
    );
    let map = "{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [port, protocol], items: {type: object, required: [port], properties: {port: {type: integer}, protocol: {type: string, default: TCP}}}}";
    check(map, json!([{"port": 1, "protocol": "TCP"}, {"port": 1, "protocol": "UDP"}]), &[]);
    check(
        map,
        json!([{"port": 1, "protocol": "TCP"}, {"port": 1, "protocol": "TCP"}]),
        &["spec[1]: Duplicate value: {\"port\":1,\"protocol\":\"TCP\"}"],
    );
}

#[test]
fn scalars() {
    check(
        "{type: integer, minimum: 1, maximum: 5}",
        json!(6),
        &["spec: Invalid value: 6: should be less than or equal to 5"],
    );
    check(
        "{type: number, minimum: 0, exclusiveMinimum: true}",
        json!(0),
        &["spec: Invalid value: 0: should be greater than 0"],
    );
    check("{type: number, multipleOf: 0.5}", json!(1.25), &["spec: Invalid value: 1.25: should be a multiple of 0.5"]);
    check("{type: integer, multipleOf: 3}", json!(9), &[]);
    check("{type: integer}", json!(1.0), &[]);
    check("{type: integer}", json!(1.5), &["spec: Invalid value: 1.5: must be of type integer: \"number\""]);
    check("{type: string, maxLength: 2}", json!("äöü"), &["spec: Too long: may not be longer than 2"]);
    check("{type: string, maxLength: 3}", json!("äöü"), &[]);
    check("{type: string, nullable: true}", json!(null), &[]);
    check("{type: string}", json!(null), &["spec: Invalid value: null: must be of type string: \"null\""]);
    check("{type: integer, enum: [1, 2]}", json!(1.0), &[]);
    check("{x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}", json!("80%"), &[]);
    check("{x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}", json!(80), &[]);
    check(
        "{x-kubernetes-int-or-string: true}",
        json!(true),
        &["spec: Invalid value: true: must be of type integer or string: \"boolean\""],
    );
    check(
        "{x-kubernetes-int-or-string: true, allOf: [{anyOf: [{type: integer}, {type: string}]}, {pattern: '^[0-9]+%$'}]}",
        json!("x"),
        &["spec: Invalid value: \"x\": should match '^[0-9]+%$'"],
    );
    check(
        "{type: object, minProperties: 1, additionalProperties: {type: integer}}",
        json!({"a": "x"}),
        &["spec[a]: Invalid value: \"x\": must be of type integer: \"string\""],
    );
}

#[test]
fn pruning() {
    let table = [
        ("{type: object, properties: {a: {type: string}}}", json!({"a": "x", "b": 1}), json!({"a": "x"})),
        (
            "{type: object, additionalProperties: {type: object, properties: {a: {type: string}}}}",
            json!({"k": {"a": "x", "b": 1}}),
            json!({"k": {"a": "x"}}),
        ),
        (
            "{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: object}}}",
            json!({"a": {"b": 1}, "c": {"d": 1}}),
            json!({"a": {}, "c": {"d": 1}}),
        ),
        ("{type: array, items: {type: object, properties: {a: {type: string}}}}", json!([{"b": 1}]), json!([{}])),
        ("{x-kubernetes-preserve-unknown-fields: true}", json!({"a": [{"b": 1}]}), json!({"a": [{"b": 1}]})),
        (
            "{type: object, x-kubernetes-embedded-resource: true, properties: {spec: {type: object, properties: {a: {type: string}}}}}",
            json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "n", "own": 1}, "spec": {"a": "x", "b": 1}, "z": 1}),
            json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}, "spec": {"a": "x"}}),
        ),
    ];
    for (node, value, pruned) in table {
        let mut object = json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "x"}, "spec": value, "other": 1});
        spec(node).prune(&mut object);
        assert_eq!(
            object,
            json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "x"}, "spec": pruned}),
            "{node}"
        );
    }
}

#[test]
fn defaults() {
    let table = [
        ("{type: object, properties: {a: {type: string, default: x}}}", json!({}), json!({"a": "x"})),
        ("{type: object, properties: {a: {type: string, default: x}}}", json!({"a": null}), json!({"a": "x"})),
        (
            "{type: object, properties: {a: {type: string, default: x, nullable: true}}}",
            json!({"a": null}),
            json!({"a": null}),
        ),
        ("{type: object, properties: {a: {type: string}}}", json!({"a": null}), json!({})),
        (
            "{type: object, properties: {a: {type: object, default: {}, properties: {b: {type: integer, default: 1}}}}}",
            json!({}),
            json!({"a": {"b": 1}}),
        ),
        (
            "{type: array, items: {type: object, properties: {b: {type: integer, default: 1}}}}",
            json!([{}, {"b": 2}]),
            json!([{"b": 1}, {"b": 2}]),
        ),
        (
            "{type: object, additionalProperties: {type: object, properties: {b: {type: integer, default: 1}}}}",
            json!({"k": {}}),
            json!({"k": {"b": 1}}),
        ),
    ];
    for (node, value, filled) in table {
        let mut object = json!({"spec": value});
        spec(node).default(&mut object).unwrap();
        assert_eq!(object["spec"], filled, "{node}");
    }
    refuse(
        "{type: object, properties: {a: {type: string, default: 1}}}",
        &["properties[a].default: Invalid value: 1: must be of type string: \"integer\""],
    );
    refuse(
        "{type: object, properties: {a: {type: object, default: {b: 1}}}}",
        &["properties[a].default: Invalid value: must not have unknown fields: they would be pruned"],
    );
    refuse(
        "{type: object, properties: {a: {type: integer, default: 1, x-kubernetes-validations: [{rule: self > 1}]}}}",
        &["properties[a].default: Invalid value: 1: failed rule: self > 1"],
    );
    refuse(
        "{type: object, default: {a: 1}, properties: {a: {type: integer}}}",
        &["default: Forbidden: must not be set at the root or in metadata"],
    );
}

#[test]
fn defaults_are_bounded() {
    let items = |default: usize| {
        let text = "x".repeat(default);
        format!("{{type: array, items: {{type: object, properties: {{a: {{type: string, default: {text}}}}}}}}}")
    };
    for (default, count, fits) in [
        (100_000, 31, true),
        (100_000, 32, false),
        // 10 GB, if they were made.
        (100_000, 100_000, false),
        (1, 100_000, true),
    ] {
        let mut object = json!({"spec": vec![json!({}); count]});
        let filled = spec(&items(default)).default(&mut object);
        assert_eq!(filled.is_ok(), fits, "{default} bytes, {count} times");
    }
    let default = vec!["{}"; 100].join(", ");
    let node = items(100_000).replacen("{", &format!("{{default: [{default}], "), 1);
    let error = format!("properties[a].default: Too long: {DefaultsTooLarge}");
    refuse(&format!("{{type: object, properties: {{a: {node}}}}}"), &[&error]);
}

#[test]
fn embedded_resources_say_what_they_are() {
    let node = "{type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}";
    check(node, json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}}), &[]);
    check(
        node,
        json!({"kind": ""}),
        &["spec.apiVersion: Required value: must not be empty", "spec.kind: Required value: must not be empty"],
    );
}

#[test]
fn errors_and_schemas_are_bounded() {
    let wrong: Vec<Value> = (0..10_000).map(|n| json!(n)).collect();
    let errors = spec("{type: array, items: {type: string}}").validate(&json!({"spec": wrong}), None);
    assert_eq!(errors.len(), ERRORS_MAX + 1);
    assert_eq!(errors[ERRORS_MAX].to_string(), "there may be more errors: fix these first");
    let deep =
        |depth: usize| (0..depth).fold(json!({"type": "string"}), |inner, _| json!({"type": "array", "items": inner}));
    let compile = |node: Value| Schema::compile(&json!({"type": "object", "properties": {"a": node}}));
    assert!(compile(deep(SCHEMA_DEPTH_MAX - 1)).is_ok());
    let errors = compile(deep(SCHEMA_DEPTH_MAX + 1)).unwrap_err();
    assert!(errors[0].message.contains("nested deeper than 64"), "{errors:?}");
}
