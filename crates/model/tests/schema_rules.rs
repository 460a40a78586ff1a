//! Structural schemas: what compiles, what is pruned, defaulted, refused.

use serde_json::{Value, json};
use tidegate_model::schema::{ERRORS_MAX, SCHEMA_DEPTH_MAX, Schema};
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
            json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "n", "own": 1}, "spec": {"a": "x"}}),
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
        spec(node).default(&mut object);
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
fn rules_that_cannot_work_are_refused() {
    let rule = |rule: &str| {
        format!(
            "{{type: object, properties: {{spec: {{type: object, properties: {{a: {{type: string}}}}, x-kubernetes-validations: [{{rule: '{rule}'}}]}}}}}}"
        )
    };
    let at = "properties[spec].x-kubernetes-validations[0].rule: Invalid value";
    refuse(&rule("self.b == 1"), &[&format!("{at}: \"self.b == 1\": undefined field 'b'")]);
    refuse(&rule("other.a == 1"), &[&format!("{at}: \"other.a == 1\": undeclared reference to 'other'")]);
    refuse(&rule("self.a.shout()"), &[&format!("{at}: \"self.a.shout()\": undeclared reference to 'shout'")]);
    refuse(
        &rule("self.a.matches(\"(\")"),
        &[&format!(
            "{at}: \"self.a.matches(\\\"(\\\")\": \"(\" is not a pattern: regex parse error:\n    (\n    ^\nerror: unclosed group"
        )],
    );
    refuse(&rule(""), &[&format!("{at}: \"\": must not be empty")]);
    refuse(
        &rule("Foo{a: 1} == self"),
        &[&format!("{at}: \"Foo{{a: 1}} == self\": builds a message type: only lists and maps can be built")],
    );
    let deep = format!("{}self.a == self.a{}", "(".repeat(200), ")".repeat(200));
    assert!(Schema::compile(&parse(&rule(&deep))).is_err());
    let long = format!("true{}", " && true".repeat(5_000));
    assert!(Schema::compile(&parse(&rule(&long))).is_err());
    refuse(
        "{type: object, properties: {l: {type: array, items: {type: string, x-kubernetes-validations: [{rule: self == oldSelf}]}}}}",
        &[
            "properties[l].items.x-kubernetes-validations[0].rule: Invalid value: oldSelf cannot be used on the uncorrelatable portion of the schema: the items of a list that is not x-kubernetes-list-type: map",
        ],
    );
}

#[test]
fn transitions() {
    let immutable = "{type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: is immutable}]}";
    check_update(immutable, None, json!("a"), &[]);
    check_update(immutable, Some(json!("a")), json!("a"), &[]);
    check_update(immutable, Some(json!("a")), json!("b"), &["spec: Invalid value: \"b\": is immutable"]);
    let once = "{type: string, x-kubernetes-validations: [{rule: 'oldSelf.hasValue() || self == \"new\"', optionalOldSelf: true, message: starts as new}]}";
    check_update(once, None, json!("new"), &[]);
    check_update(once, None, json!("old"), &["spec: Invalid value: \"old\": starts as new"]);
    check_update(once, Some(json!("new")), json!("old"), &[]);
    let grows = "{type: integer, x-kubernetes-validations: [{rule: 'oldSelf.optMap(o, self >= o).orValue(true)', optionalOldSelf: true}]}";
    check_update(grows, None, json!(1), &[]);
    check_update(
        grows,
        Some(json!(2)),
        json!(1),
        &["spec: Invalid value: 1: failed rule: oldSelf.optMap(o, self >= o).orValue(true)"],
    );
    let keyed = "{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, required: [k], properties: {k: {type: string}, v: {type: integer, x-kubernetes-validations: [{rule: self == oldSelf, message: stays}]}}}}";
    check_update(
        keyed,
        Some(json!([{"k": "a", "v": 1}, {"k": "b", "v": 2}])),
        json!([{"k": "b", "v": 2}, {"k": "a", "v": 1}, {"k": "c", "v": 9}]),
        &[],
    );
    check_update(
        keyed,
        Some(json!([{"k": "a", "v": 1}])),
        json!([{"k": "a", "v": 2}]),
        &["spec[0].v: Invalid value: 2: stays"],
    );
    let set = "{type: array, x-kubernetes-list-type: set, items: {type: string}, x-kubernetes-validations: [{rule: self == oldSelf, message: is immutable}]}";
    check_update(set, Some(json!(["a", "b"])), json!(["b", "a"]), &[]);
}

#[test]
fn expressions() {
    let object = json!({
        "a": "x", "i": 3, "d": 2, "l": ["p", "q"], "m": {"k-1": 1, "z": 2}, "namespace": "ns", "my-field": "f",
        "t": "2026-01-02T00:00:00Z", "s": "1h30m", "b": "aGk=", "q": "1500m", "ip": "10.0.0.1",
    });
    let node = |rule: &str| {
        format!(
            "{{type: object, x-kubernetes-validations: [{{rule: '{}'}}], properties: {{a: {{type: string}}, i: {{type: integer}}, d: {{type: number}}, l: {{type: array, items: {{type: string}}}}, m: {{type: object, additionalProperties: {{type: integer}}}}, namespace: {{type: string}}, my-field: {{type: string}}, t: {{type: string, format: date-time}}, s: {{type: string, format: duration}}, b: {{type: string, format: byte}}, q: {{type: string}}, ip: {{type: string}}, none: {{type: string}}}}}}",
            rule.replace('\'', "''")
        )
    };
    for rule in [
        "self.i + 1 == 4 && self.i * 2 - 1 == 5 && self.i / 2 == 1 && self.i % 2 == 1 && -self.i == -3",
        "self.d / 4.0 == 0.5 && self.d == 2.0",
        "size(self.l) == 2 && self.l.size() == 2 && 'p' in self.l && !('r' in self.l) && self.l[1] == 'q'",
        "'k-1' in self.m && self.m['k-1'] == 1 && self.m.z == 2 && self.m.all(k, k.size() > 0) && self.m.exists(k, self.m[k] == 2)",
        "self.__namespace__ == 'ns' && self.my__dash__field == 'f'",
        "!has(self.none) && has(self.a) && (has(self.none) ? false : true)",
        "self.none == 'x' || self.a == 'x'",
        "!(self.none == 'x' && self.a == 'y')",
        "self.t > timestamp('2026-01-01T00:00:00Z') && self.t.getFullYear() == 2026",
        "self.s == duration('90m') && self.t + self.s > self.t && self.s.getMinutes() == 90",
        "size(self.b) == 2",
        "self.l.map(x, x + '!') == ['p!', 'q!'] && self.l.filter(x, x == 'p') == ['p'] && self.l.map(x, x == 'p', x + x) == ['pp']",
        "self.l.exists_one(x, x == 'p') && [1, 2, 2].exists_one(x, x == 1) && ![1, 2, 2].exists_one(x, x == 2)",
        "quantity(self.q).isGreaterThan(quantity('1')) && isQuantity(self.q) && ip(self.ip).family() == 4 && !isIP('x')",
        "self.a.matches('^[xy]$') && self.a.upperAscii() == 'X' && 'a,b'.split(',') == ['a', 'b']",
        "['b', 'a'].isSorted() == false && [3, 1, 2].max() == 3 && sets.contains([1, 2], [1])",
        "self.?none.orValue('d') == 'd' && self.?a.hasValue() && self.l[?9].orValue('e') == 'e' && optional.none().hasValue() == false",
        "cel.bind(x, self.i, x * x == 9) && self.m.all(k, v, v > 0) && self.l.exists(i, v, i == 1 && v == 'q')",
        "string(self.i) == '3' && int('4') == 4 && dyn(self.i) == 3.0",
        "{'a': 1}.a == 1 && {'a': 1} == {'a': 1} && [1, 'a'] != [1, 'b']",
        "'%s-%d'.format([self.a, self.i]) == 'x-3' && !format.dns1123Label().validate('ok').hasValue()",
    ] {
        check(&node(rule), object.clone(), &[]);
    }
    for (rule, reason) in [
        ("self.none == 'x'", "no such key: none"),
        ("self.l[7] == 'x'", "index out of bounds or no such key"),
        ("self.i / 0 == 1", "integer overflow or division by zero"),
        ("self.i + 9223372036854775807 == 1", "integer overflow or division by zero"),
        ("self.i + self.a == 'x'", "no such overload: Add of int and string"),
        ("self.a", "no such overload: a condition is of type string"),
    ] {
        check(
            &node(rule),
            object.clone(),
            &[&format!("spec: Invalid value: \"object\": {reason} evaluating rule: {rule}")],
        );
    }
}

#[test]
fn messages_and_reasons() {
    let node = |rest: &str| {
        format!(
            "{{type: object, properties: {{a: {{type: string}}}}, x-kubernetes-validations: [{{rule: 'self.a == \"x\"', {rest}}}]}}"
        )
    };
    let value = || json!({"a": "y"});
    check(&node("message: be x"), value(), &["spec: Invalid value: \"object\": be x"]);
    check(&node("message: be x, fieldPath: .a"), value(), &["spec.a: Invalid value: \"object\": be x"]);
    check(&node("message: be x, reason: FieldValueForbidden"), value(), &["spec: Forbidden: be x"]);
    check(&node("messageExpression: '\"not \" + self.a'"), value(), &["spec: Invalid value: \"object\": not y"]);
    check(
        &node("message: be x, messageExpression: 'self.a + \"\\n\"'"),
        value(),
        &["spec: Invalid value: \"object\": y"],
    );
    check(&node("message: be x, messageExpression: '\"a\\nb\"'"), value(), &["spec: Invalid value: \"object\": be x"]);
}

#[test]
fn hostile_rules_and_objects_end() {
    let cubic = "{type: array, items: {type: integer}, x-kubernetes-validations: [{rule: 'self.all(a, self.all(b, self.all(c, a + b + c > 0)))'}]}";
    check(cubic, json!(vec![1; 20]), &[]);
    let budget = "spec: validation failed due to running out of cost budget, no further validation rules will be run: shorten the lists and texts of the object, or simplify the rules of its kind";
    check(cubic, json!(vec![1; 2_000]), &[budget]);
    for rule in [
        "lists.range(1000000000).size() > 0",
        "self.map(x, self.map(y, self.map(z, \"aaaaaaaaaaaaaaaaaaaaaaaaaaa\"))).size() > 0",
        "self.all(x, self.map(y, string(y)).join(\",\").replace(\"1\", \"aaaaaaaaaaaaaaaaaaa\").size() > 0)",
        "self.all(x, string(x).matches(\"^\" + string(x)))",
        "cel.bind(a, \"xxxxxxxxxxxxxxxx\", self.all(x, cel.bind(b, a+a+a+a+a+a+a+a, cel.bind(c, b+b+b+b+b+b+b+b, cel.bind(d, c+c+c+c+c+c+c+c, d.size() > 0)))))",
    ] {
        let node = format!("{{type: array, items: {{type: integer}}, x-kubernetes-validations: [{{rule: '{rule}'}}]}}");
        check(&node, json!(vec![1; 20_000]), &[budget]);
    }
}

#[test]
fn errors_and_schemas_are_bounded() {
    let wrong: Vec<Value> = (0..10_000).map(|n| json!(n)).collect();
    let errors = spec("{type: array, items: {type: string}}").validate(&json!({"spec": wrong}), None);
    assert_eq!(errors.len(), ERRORS_MAX);
    let deep =
        |depth: usize| (0..depth).fold(json!({"type": "string"}), |inner, _| json!({"type": "array", "items": inner}));
    let compile = |node: Value| Schema::compile(&json!({"type": "object", "properties": {"a": node}}));
    assert!(compile(deep(SCHEMA_DEPTH_MAX - 1)).is_ok());
    let errors = compile(deep(SCHEMA_DEPTH_MAX + 1)).unwrap_err();
    assert!(errors[0].message.contains("nested deeper than 64"), "{errors:?}");
}

#[test]
fn status_alone() {
    let schema = Schema::compile(&parse(
        "{type: object, properties: {spec: {type: object, properties: {i: {type: integer}}}, status: {type: object, properties: {i: {type: integer, x-kubernetes-validations: [{rule: self < 9, message: below nine}]}}}}, x-kubernetes-validations: [{rule: '!has(self.status) || self.status.i <= self.spec.i', message: not ahead}]}",
    ))
    .expect("a schema");
    let check =
        |object: Value, wrong: &[&str]| assert_eq!(lines(schema.validate_status(&object, None)), wrong, "{object}");
    check(json!({"spec": {"i": 5}, "status": {"i": 4}}), &[]);
    check(json!({"spec": {"i": "wrong, but not of status", "x": 1}}), &[]);
    check(
        json!({"spec": {"i": 5}, "status": {"i": "x"}}),
        &[
            "status.i: Invalid value: \"x\": must be of type integer: \"string\"",
            "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
        ],
    );
    check(json!({"spec": {"i": 50}, "status": {"i": 9}}), &["status.i: Invalid value: 9: below nine"]);
    check(json!({"spec": {"i": 1}, "status": {"i": 2}}), &["Invalid value: \"object\": not ahead"]);
}
