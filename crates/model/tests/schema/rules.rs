//! `x-kubernetes-validations`.

use serde_json::{Value, json};
use tidegate_model::schema::Schema;

use crate::{check, check_update, lines, parse, refuse, spec};

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
    check_update(immutable, Some(json!(null)), json!("a"), &[]);
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
        "type(self.i) == int && type(self.l) == list && type(self.a) != int && type(null) == null_type",
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

/// Expressions come from whoever may define a kind, and by `cel-expression`
/// from whoever may write an object: none may exhaust the stack.
#[test]
fn hostile_expressions_are_refused() {
    let node = spec("{type: string, format: cel-expression}");
    let units = [
        "1+", "a.", "!", "-", "a[0]", "a()", "(", "[", "{1:", "a?", "a?a:", "a&&", "a||b&&", "a==", "a in ",
        "a.all(x,", "f(", "a{", "\"", "r\"\"\"", "\\",
    ];
    for unit in units {
        let huge = format!("{}a", unit.repeat((16 << 10) / unit.len() - 1));
        let wrong = lines(node.validate(&json!({"spec": huge}), None));
        assert!(wrong[0].contains("must not have more than"), "{unit}: {wrong:?}");
        let symbols = unit.bytes().filter(u8::is_ascii_punctuation).count().max(1);
        // Whatever the verdict, there is one.
        node.validate(&json!({"spec": format!("{}a", unit.repeat(1_000 / symbols))}), None);
        node.validate(&json!({"spec": format!("{}a", unit.repeat(64 / symbols))}), None);
    }
}

/// Library functions with arguments that their authors may not have thought
/// of: a reason, and no panic.
#[test]
fn hostile_calls_have_an_answer() {
    let table = [
        ("[9223372036854775807, 1].sum() == 1", "integer overflow or division by zero"),
        ("quantity('1e999999999').isGreaterThan(quantity('1'))", "the exponent of a quantity must be within ±27"),
        ("isQuantity('1e-28')", "the exponent of a quantity must be within ±27"),
        ("'%.999999f'.format([1.0]) == ''", "format() with more than 99 digits of precision"),
        ("'abc'.substring(2, 1) == ''", "Error executing function 'substring': end index 1 out of range"),
        (
            "[1, 2].slice(-1, 9) == []",
            "Error executing function 'slice': slice(-1, 9) out of range for list of length 2",
        ),
        ("int(1e300) == 1", "Error executing function 'int': integer overflow"),
        ("self[-1] == 1", "index out of bounds or no such key"),
        ("self[9223372036854775807] == 1", "index out of bounds or no such key"),
        ("-9223372036854775808 / -1 == 1", "integer overflow or division by zero"),
        ("-9223372036854775808 % -1 == 1", "integer overflow or division by zero"),
        ("optional.none().value() == 1", "optional.none() has no value"),
    ];
    for (call, reason) in table {
        let node = format!("{{type: array, items: {{type: integer}}, x-kubernetes-validations: [{{rule: {call:?}}}]}}");
        check(&node, json!([1, 2]), &[&format!("spec: Invalid value: \"array\": {reason} evaluating rule: {call}")]);
    }
    let sums = "[1, 2].sum() == 3 && [1.5, 2.0].sum() == 3.5 && [].sum() == 0 && quantity('1e3').asInteger() == 1000";
    check(
        &format!("{{type: array, items: {{type: integer}}, x-kubernetes-validations: [{{rule: {sums:?}}}]}}"),
        json!([]),
        &[],
    );
}

#[test]
fn the_rules_of_a_schema_are_bounded() {
    let rules = |count: usize| vec![json!({"rule": format!("{}true", " ".repeat(1_020))}); count];
    let compile = |count: usize| Schema::compile(&json!({"type": "object", "x-kubernetes-validations": rules(count)}));
    assert!(compile(256).is_ok());
    let errors = lines(compile(257).expect_err("too many"));
    assert_eq!(
        errors,
        ["x-kubernetes-validations[256].rule: Too many: the rules of a schema must have at most 262144 bytes together"]
    );
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
