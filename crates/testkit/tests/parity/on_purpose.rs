//! Where we differ from kube-apiserver on purpose. The same list is in
//! `docs/kinds.md`, with the reasons.

use serde_json::{Value, json};

use crate::plane::{Case, Verdict, plane};

/// A spec, or metadata where it says so; what we store, and what they store.
struct Difference {
    about: &'static str,
    object: Value,
    ours: Option<Value>,
    theirs: Option<Value>,
}

fn check(pointer: &str, difference: Difference) {
    let mut new = json!({
        "apiVersion": "parity.tidegate.dev/v1", "kind": "Keyword",
        "metadata": {"name": "word", "namespace": "default"}, "spec": {},
    });
    let place = new.pointer_mut(pointer).unwrap().as_object_mut().unwrap();
    place.extend(difference.object.as_object().unwrap().clone());
    let field = difference.object.as_object().unwrap().keys().next().unwrap().clone();
    let (ours, theirs) = plane().verdicts(&Case { old: None, new, about: String::new() });
    for (side, verdict, expected) in [("ours", ours, difference.ours), ("theirs", theirs, difference.theirs)] {
        let found = match &verdict {
            Verdict::Admitted(object) => Some(object.pointer(pointer).unwrap()[&field].clone()),
            Verdict::Refused(_) => None,
        };
        assert_eq!(found, expected, "{}: {side}: {verdict:?}", difference.about);
    }
}

#[test]
fn specs() {
    for difference in [
        Difference {
            about: "a whole number with a fraction of zero is that number, for rules too",
            object: json!({"bounded": 3.0, "low": 1.0, "high": 2}),
            ours: Some(json!(3)),
            theirs: None,
        },
        Difference {
            about: "a whole number may be a multiple of a fraction",
            object: json!({"tenth": 2}),
            ours: Some(json!(2)),
            theirs: None,
        },
        Difference {
            about: "`additionalProperties: true` keeps what is inside",
            object: json!({"mapOfAnything": {"c": {"d": [1, null]}}}),
            ours: Some(json!({"c": {"d": [1, null]}})),
            theirs: Some(json!({"c": {}})),
        },
        Difference {
            about: "an empty list is no text of `format: byte`",
            object: json!({"formats": {"byte": []}}),
            ours: None,
            theirs: Some(json!({"byte": []})),
        },
    ] {
        check("/spec", difference);
    }
}

#[test]
fn metadata() {
    for (field, about) in [("labels", "a label"), ("annotations", "an annotation")] {
        let object = json!({field: {"a": null}});
        check("/metadata", Difference { about, object, ours: None, theirs: Some(json!({"a": ""})) });
    }
}
