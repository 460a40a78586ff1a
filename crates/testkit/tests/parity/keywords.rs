//! Each keyword and format at its edges, on a definition that has them all.

use serde_json::{Value, json};

use crate::plane::{Case, plane};
use crate::samples::FORMATS;

fn object(spec: Value) -> Value {
    json!({
        "apiVersion": "parity.tidegate.dev/v1", "kind": "Keyword",
        "metadata": {"name": "word", "namespace": "default"}, "spec": spec,
    })
}

fn check(specs: &[Value]) {
    let case = |spec: &Value| Case { old: None, new: object(spec.clone()), about: "keywords".into() };
    plane().compare(&specs.iter().map(case).collect::<Vec<_>>()).check();
}

/// Each value for each field.
fn check_fields(fields: &[&str], values: &[Value]) {
    let specs = fields.iter().flat_map(|field| values.iter().map(move |value| json!({*field: value})));
    check(&specs.collect::<Vec<_>>());
}

#[test]
fn formats() {
    let specs =
        FORMATS.iter().flat_map(|(name, samples)| samples.iter().map(move |text| json!({"formats": {*name: text}})));
    check(&specs.collect::<Vec<_>>());
}

#[test]
fn numbers() {
    let edges = [
        json!(0),
        json!(1),
        json!(2),
        json!(10),
        json!(11),
        json!(-0.0),
        json!(0.1),
        json!(0.3),
        json!(0.5),
        json!(0.7),
        json!(1.0),
        json!(2.5),
        json!(1e2),
        json!(1e15),
        json!(1e16),
        json!(9007199254740992.0),
        json!(-9007199254740991.0),
        json!(1e10),
        json!(i32::MAX),
        json!(i64::from(i32::MAX) + 1),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(1e19),
        json!(1e21),
        json!(1e300),
        json!(1e39),
        json!(9007199254740993_i64),
        json!("1"),
        json!(null),
        json!(true),
    ];
    check_fields(
        &[
            "int32",
            "int64",
            "number",
            "double",
            "float",
            "bounded",
            "open",
            "even",
            "enumOfNumbers",
            "intOrString",
            "boundedIntOrString",
            "intOrStringIdiom",
            "free",
        ],
        &edges,
    );
}

#[test]
fn multiples() {
    let values = [0.1, 0.3, 0.7, 0.25, 0.05, 1.1, 1e19, -0.2, 123456.7, 0.1000001];
    check_fields(&["tenth"], &values.map(|value| json!(value)));
}

#[test]
fn texts() {
    let edges = [
        json!(""),
        json!("a"),
        json!("aa"),
        json!("ää"),
        json!("äöüß"),
        json!("äöüßx"),
        json!("abcd"),
        json!("abcde"),
        json!("one"),
        json!("ONE"),
        json!("never"),
        json!("a-1"),
        json!("a-"),
        json!("bc"),
        json!("xbcx"),
        json!("äöü"),
        json!("5%"),
        json!("a\n"),
        json!("a\nb"),
        json!(null),
        json!(1),
        json!(false),
        json!({}),
        json!([]),
        json!("👩‍👩"),
        json!("\u{0}"),
    ];
    check_fields(
        &[
            "word",
            "pattern",
            "loosePattern",
            "enum",
            "nullableEnum",
            "nullable",
            "nullableDefault",
            "withDefault",
            "allOf",
            "not",
            "intOrString",
            "boundedIntOrString",
            "intOrStringIdiom",
            "flag",
            "free",
        ],
        &edges,
    );
}

#[test]
fn lists() {
    check_fields(
        &["atomicItems"],
        &[
            json!([]),
            json!(["a", "a"]),
            json!(["123456"]),
            json!([null]),
            json!(null),
            json!([1]),
            json!({}),
            json!(vec!["a"; 9]),
        ],
    );
    check_fields(&["setItems"], &[json!([1, 2]), json!([1, 1]), json!([1, 1.0]), json!([null]), json!([null, null])]);
    check_fields(
        &["setOfAtomics"],
        &[
            json!([{"a": 1}, {"a": 2}]),
            json!([{"a": 1}, {"a": 1.0}]),
            json!([{}, {"b": "x"}]),
            json!([{"a": 1, "z": 1}, {"a": 1}]),
            json!([null]),
            json!([{}]),
        ],
    );
    check_fields(
        &["immutableItems"],
        &[
            json!([{"name": "a"}, {"name": "b"}]),
            json!([{"name": "a"}, {"name": "a"}]),
            json!([{"name": "a"}, {"name": "a", "port": 80}]),
            json!([{"name": "a"}, {"name": "a", "port": 81}]),
            json!([{"name": "a", "port": null}, {"name": "a"}]),
            json!([{"port": 1}]),
            json!([{"name": null}]),
            json!([{}, {}]),
            json!(["a"]),
            json!([null]),
        ],
    );
    check_fields(
        &["matrix"],
        &[json!([]), json!([[]]), json!([[1], [1]]), json!([[1], null]), json!([["x"]]), json!([[1], [2], [3], [4]])],
    );
}

#[test]
fn objects() {
    let any = [
        json!({}),
        json!(null),
        json!({"a": "x"}),
        json!({"a": null}),
        json!({"b": "yes"}),
        json!({"b": "no"}),
        json!({"a": "x", "b": "y"}),
        json!({"a": 1}),
        json!({"c": {"d": [1, null]}}),
        json!({"": ""}),
        json!({"a": "1", "b": "2", "c": "3"}),
        json!([]),
        json!("x"),
        json!({"x": {}}),
        json!({"x": null}),
        json!({"x": {"x": null}}),
        json!({"known": {"a": "x", "z": 1}, "z": {"y": 1}}),
        json!({"known": null, "pruned": {}}),
        json!({"leaf": null}),
        json!({"inner": null}),
        json!({"inner": {"list": [{}, null]}}),
        json!({"inner": {"list": null, "z": 1}}),
    ];
    check_fields(
        &["deepDefault", "maybeDeep", "defaultsInMap", "free", "freeObject", "map", "emptyObject", "oneOf", "anyOf"],
        &any,
    );
}

#[test]
fn embedded_resources() {
    let with =
        |metadata: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}});
    let values = [
        json!({}),
        json!(null),
        json!({"apiVersion": "v1"}),
        json!({"apiVersion": "v1", "kind": "ConfigMap"}),
        with(json!({})),
        with(json!({"name": "a"})),
        with(json!({"name": "A_B"})),
        with(json!({"name": 1})),
        with(json!({"labels": {"a": "b c"}})),
        with(json!({"labels": {"a": 1}})),
        with(json!({"unknown": 1, "name": "a"})),
        with(json!(null)),
        with(json!([])),
        json!({"apiVersion": "", "kind": "", "metadata": {}}),
        json!({"apiVersion": "a/b/c", "kind": "X"}),
        json!({"apiVersion": 1, "kind": "X"}),
        json!({"apiVersion": "v1", "kind": "lower case", "metadata": {"name": "a"}}),
        with(json!({"creationTimestamp": null, "name": "a"})),
        with(json!({"namespace": "A"})),
        with(json!({"annotations": {"A b": "x"}})),
        with(json!({"finalizers": ["a b"]})),
        with(json!({"ownerReferences": [{}]})),
        with(json!({"generateName": "A"})),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "spec": {"z": 1}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "spec": {}, "z": 1}),
    ];
    check_fields(&["embedded", "strictEmbedded"], &values);
}

#[test]
fn rules() {
    let good = json!({"names": ["a"], "force": false, "wait": "1m", "amount": "2", "namespace": "y", "dash-ed": 1});
    let mut specs = vec![json!({"low": 1, "high": 2}), json!({"low": 3, "high": 2}), json!({"ruled": good})];
    for (field, values) in [
        ("names", json!([["b"], [], ["a", "a", "a"], ["aaaaaaaaaaa"]])),
        ("wait", json!(["1h", "59m", "x", "1d"])),
        ("amount", json!(["1", "1.5", "2Ki", "x", "100m", "1001m", "1e3"])),
        ("namespace", json!(["x", ""])),
        ("dash-ed", json!([0, -1])),
        ("force", json!([true])),
    ] {
        for value in values.as_array().unwrap() {
            let mut changed = good.clone();
            changed[field] = value.clone();
            specs.push(json!({"ruled": changed}));
        }
    }
    check(&specs);
}

#[test]
fn transitions() {
    let pairs = [
        (json!({"fixed": "a"}), json!({"fixed": "a"})),
        (json!({"fixed": "a"}), json!({"fixed": "b"})),
        (json!({"fixed": "a"}), json!({})),
        (json!({}), json!({"fixed": "a"})),
        (json!({"grows": 1}), json!({"grows": 2})),
        (json!({"grows": 2}), json!({"grows": 1})),
        (json!({"grows": 2}), json!({})),
        (
            json!({"immutableItems": [{"name": "a", "value": "x"}]}),
            json!({"immutableItems": [{"name": "b", "value": "y"}, {"name": "a", "value": "x"}]}),
        ),
        (
            json!({"immutableItems": [{"name": "a", "value": "x"}]}),
            json!({"immutableItems": [{"name": "a", "value": "y"}]}),
        ),
        (
            json!({"immutableItems": [{"name": "a", "value": "x"}]}),
            json!({"immutableItems": [{"name": "a", "port": 80, "value": "y"}]}),
        ),
        (
            json!({"immutableItems": [{"name": "a", "value": "x"}]}),
            json!({"immutableItems": [{"name": "a", "port": 81, "value": "y"}]}),
        ),
        (json!({"immutableItems": [{"name": "a", "value": "x"}]}), json!({"immutableItems": [{"name": "a"}]})),
        (json!({}), json!({"low": 3, "high": 2})),
        (json!({"low": 1}), json!({"low": "x"})),
    ];
    let case = |(old, new): &(Value, Value)| Case {
        old: Some(object(old.clone())),
        new: object(new.clone()),
        about: "transition".into(),
    };
    let tally = plane().compare(&pairs.iter().map(case).collect::<Vec<_>>());
    tally.check();
    assert!(tally.admitted > 4 && tally.refused > 4, "{tally:?}");
}
