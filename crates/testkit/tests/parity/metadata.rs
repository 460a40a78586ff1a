//! Names, labels and annotations, which every kind has.

use serde_json::{Value, json};

use crate::plane::{Case, plane};

fn check(metadata: &[Value]) {
    let case = |metadata: &Value| {
        let mut new = json!({
            "apiVersion": "parity.tidegate.dev/v1", "kind": "Keyword",
            "metadata": {"name": "word", "namespace": "default"}, "spec": {},
        });
        for (field, value) in metadata.as_object().unwrap() {
            new["metadata"][field] = value.clone();
        }
        Case { old: None, new, about: "metadata".into() }
    };
    plane().compare(&metadata.iter().map(case).collect::<Vec<_>>()).check();
}

#[test]
fn names() {
    let long = "a".repeat(253);
    let longer = "a".repeat(254);
    let dots = "a.".repeat(126) + "a";
    let names =
        ["a", "A", "a.b", "a..b", "a_b", "-a", "a-", "1", "a b", "ä", "a/b", "a%b", ".", &long, &longer, &dots, "0.0"];
    check(&names.map(|name| json!({"name": name})));
}

#[test]
fn labels() {
    let (long, longer) = ("a".repeat(63), "a".repeat(64));
    let prefix = "a".repeat(253);
    let values = ["", "a", "A.b_c-1", "-a", "a-", "a b", "ä", "a/b", &long, &longer];
    check(&values.map(|value| json!({"labels": {"key": value}})));
    let prefixed = [format!("{prefix}/a"), format!("{prefix}a/a"), format!("a/{longer}"), "a".repeat(64)];
    let keys = ["", "a", "A", "a/b", "A/b", "a/b/c", "/a", "a/", "-a", "a_b.c-d", "ä", "a b", "a.b.c/D_e"];
    for key in keys.into_iter().chain(prefixed.iter().map(String::as_str)) {
        check(&[json!({"labels": {key: "x"}}), json!({"annotations": {key: "x y\n"}}), json!({"finalizers": [key]})]);
    }
    check(&[
        json!({"labels": {"a": 1}}),
        json!({"labels": []}),
        json!({"labels": null}),
        json!({"labels": {}}),
        json!({"annotations": {"a": true}}),
        json!({"annotations": "x"}),
        json!({"annotations": {"a": "x".repeat(262_143)}}),
        json!({"annotations": {"a": "x".repeat(262_144)}}),
        json!({"finalizers": "x"}),
        json!({"finalizers": [1]}),
        json!({"finalizers": []}),
        json!({"finalizers": ["kubernetes"]}),
        json!({"finalizers": ["orphan"]}),
        json!({"finalizers": ["foregroundDeletion"]}),
        json!({"unknown": 1}),
        json!({"generateName": 1}),
        json!({"generation": "x"}),
        json!({"uid": 1}),
        json!({"creationTimestamp": "x"}),
        json!({"ownerReferences": [{}]}),
        json!({"ownerReferences": "x"}),
        json!({"ownerReferences": [{"apiVersion": "v1", "kind": "A", "name": "a", "uid": ""}]}),
        json!({"ownerReferences": [{"apiVersion": "v1", "kind": "A", "name": "a", "uid": "u", "controller": "x"}]}),
        json!({"ownerReferences": [{"apiVersion": "v1", "kind": "A", "name": "a", "uid": "u", "controller": true}, {"apiVersion": "v1", "kind": "B", "name": "b", "uid": "v", "controller": true}]}),
        json!({"ownerReferences": [{"apiVersion": "a/b/c", "kind": "A", "name": "a", "uid": "u"}]}),
        json!({"ownerReferences": [{"apiVersion": "v1", "kind": "Event", "name": "a", "uid": "u"}]}),
        json!({"managedFields": {}}),
        json!({"deletionGracePeriodSeconds": -1}),
    ]);
}
