//! Conditions through `merge_status`, the door that writers use.

use chrono::{DateTime, TimeDelta, Utc};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::timestamp::format_time;
use crate::{Merged, StatusMerge, merge_status};

const GENERATION: i64 = 3;

/// `second` counts from 1970.
fn at(second: i64) -> StatusMerge {
    StatusMerge { now: DateTime::<Utc>::UNIX_EPOCH + TimeDelta::seconds(second), generation: GENERATION }
}

fn time(second: i64) -> String {
    format_time(at(second).now)
}

fn merge(current: &Value, patch: &Value, second: i64) -> Result<Merged, String> {
    merge_status(Some(current), patch, &at(second))
        .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

fn ready(status: &str, second: i64) -> Value {
    json!({"type": "Ready", "status": status, "reason": "Said", "message": "", "lastTransitionTime": time(second)})
}

fn check(current: Value, patch: Value, expected: Value) {
    let merged = merge(&json!({"conditions": current}), &json!({"conditions": patch}), 9).unwrap();
    assert_eq!(merged.status["conditions"], expected, "{patch}");
    assert_eq!(merged.changed, current != expected, "{patch}");
}

fn check_refused(patch: Value, expected: &str) {
    let current = json!({"conditions": [ready("True", 5)]});
    assert_eq!(merge(&current, &json!({"conditions": patch}), 9), Err(expected.into()), "{patch}");
}

#[test]
fn a_new_condition_is_completed_and_others_stay() {
    let synced = json!({"type": "Synced", "status": "False", "reason": "Waiting"});
    let mut complete = synced.clone();
    complete["message"] = json!("");
    complete["lastTransitionTime"] = json!(time(9));
    check(json!([ready("True", 5)]), json!([synced]), json!([ready("True", 5), complete]));
}

#[test]
fn transition_time_moves_with_the_status_alone() {
    let patch = |status: &str| json!({"type": "Ready", "status": status, "reason": "Said"});
    check(json!([ready("True", 5)]), json!([patch("True")]), json!([ready("True", 5)]));
    check(json!([ready("True", 5)]), json!([patch("False")]), json!([ready("False", 9)]));
    // The writer's time counts only with a change, and never from the future.
    check(json!([ready("True", 5)]), json!([ready("True", 7)]), json!([ready("True", 5)]));
    check(json!([ready("True", 5)]), json!([ready("False", 7)]), json!([ready("False", 7)]));
    check(json!([ready("True", 5)]), json!([ready("False", 10)]), json!([ready("False", 9)]));
    // What was read and sent back is not when it changed.
    check(json!([ready("True", 5)]), json!([ready("False", 5)]), json!([ready("False", 9)]));
    check(json!([ready("True", 5)]), json!([ready("False", 4)]), json!([ready("False", 9)]));
}

#[test]
fn an_entry_merges_field_by_field() {
    let mut expected = ready("True", 5);
    expected["message"] = json!("more");
    expected["observedGeneration"] = json!(2);
    let patch = json!({"type": "Ready", "message": "more", "observedGeneration": 2});
    check(json!([ready("True", 5)]), json!([patch]), json!([expected]));
}

#[test]
fn one_condition_is_removed_by_name() {
    check(json!([ready("True", 5)]), json!([{"type": "Ready", "$patch": "delete"}]), json!([]));
    check(json!([ready("True", 5)]), json!([{"type": "Other", "$patch": "delete"}]), json!([ready("True", 5)]));
    check_refused(
        json!([{"type": "Ready", "$patch": "replace"}]),
        "status.conditions[0].$patch: only \"delete\" is supported",
    );
}

#[test]
fn the_list_is_never_replaced() {
    let refusal = "status.conditions: the conditions of others may not be replaced: send a list; \
                   remove one condition with {\"type\": …, \"$patch\": \"delete\"}";
    check_refused(json!(null), refusal);
    check_refused(json!({"Ready": "True"}), refusal);
}

#[test]
fn incomplete_and_malformed_conditions_are_refused() {
    check_refused(json!([1]), "status.conditions[0]: expected an object");
    check_refused(json!([{"status": "True"}]), "status.conditions[0].type: is required: conditions merge by type");
    check_refused(
        json!([{"type": "Not ready"}]),
        "status.conditions[0].type: expected a name like Ready or example.com/Ready, 316 bytes at most",
    );
    check_refused(
        json!([{"type": "New"}]),
        "status.conditions[0].status: is required: True, False or Unknown\n\
         status.conditions[0].reason: is required: one word in CamelCase",
    );
    check_refused(
        json!([{"type": "Ready", "status": true}]),
        "status.conditions[0].status: expected \"True\", \"False\" or \"Unknown\"",
    );
    for reason in ["", "two words", "1st", "Ends:", &"R".repeat(1025)] {
        check_refused(
            json!([{"type": "Ready", "reason": reason}]),
            "status.conditions[0].reason: expected a letter, then letters, digits, '_', ',' or ':', \
             not ending in ',' or ':', 1024 at most",
        );
    }
    check_refused(
        json!([{"type": "Ready", "message": "m".repeat(32 * 1024 + 1)}]),
        "status.conditions[0].message: longer than 32768 bytes",
    );
    check_refused(
        json!([{"type": "Ready", "observedGeneration": 4}]),
        "status.conditions[0].observedGeneration: 4 is not a generation of this object: the latest is 3",
    );
    check_refused(
        json!([{"type": "Ready", "lastTransitionTime": "yesterday"}]),
        "status.conditions[0].lastTransitionTime: expected an RFC 3339 time like 2026-11-15T21:59:29Z, \
         or nothing: the server sets it",
    );
    check_refused(
        json!([ready("True", 5), {"type": "Ready", "$patch": "delete"}]),
        "status.conditions[1].type: `Ready` is in this patch twice",
    );
}

#[test]
fn there_is_a_limit() {
    let patch: Vec<_> =
        (0..=128).map(|n| json!({"type": format!("T{n}"), "status": "True", "reason": "Said"})).collect();
    assert_eq!(
        merge(&json!({}), &json!({"conditions": patch}), 9),
        Err("status.conditions: 129 conditions are more than the 128 allowed".into())
    );
}

/// Before any of them is looked at: so many would take minutes.
#[test]
fn a_patch_has_a_limit() {
    let set = |n: usize| json!({"type": format!("T{n}"), "status": "True", "reason": "Said"});
    let delete = |n: usize| json!({"type": format!("Old{n}"), "$patch": "delete"});
    let all: Vec<_> = (0..128).map(set).chain((0..128).map(delete)).collect();
    let merged = merge(&json!({}), &json!({"conditions": all}), 9).unwrap();
    assert_eq!(merged.status["conditions"].as_array().map(Vec::len), Some(128));
    let many: Vec<_> = (0..100_000).map(set).collect();
    check_refused(json!(many), "status.conditions: 100000 conditions in one patch are more than the 256 allowed");
}

/// A patch of conditions whose types start with `prefix`, and of one field.
fn patch(prefix: &'static str) -> impl Strategy<Value = Value> {
    let entry = (0..3, prop::sample::select(vec!["True", "False", "Unknown"]), "[A-C]", any::<bool>());
    (prop::collection::vec(entry, 0..4), prop::option::of(0..3)).prop_map(move |(entries, field)| {
        let mut conditions = std::collections::BTreeMap::new();
        for (n, status, reason, keep) in entries {
            let kind = format!("{}{n}", if n == 1 { prefix.to_lowercase() } else { prefix.into() });
            let entry = if keep {
                json!({"type": kind, "status": status, "reason": reason})
            } else {
                json!({"type": kind, "$patch": "delete"})
            };
            conditions.insert(kind, entry);
        }
        json!({"conditions": conditions.into_values().collect::<Vec<_>>(), prefix: field})
    })
}

proptest! {
    #[test]
    fn writing_twice_is_writing_once(history in prop::collection::vec(patch("A"), 0..3), last in patch("A")) {
        let mut current = json!({});
        for (second, patch) in history.iter().enumerate() {
            current = merge(&current, patch, second as i64).unwrap().status;
        }
        let once = merge(&current, &last, 50).unwrap();
        prop_assert_eq!(once.changed, once.status != current);
        let twice = merge(&once.status, &last, 60).unwrap();
        prop_assert!(!twice.changed);
        prop_assert_eq!(twice.status, once.status);
    }

    #[test]
    fn two_controllers_commute(start in patch("A"), other in patch("B"), a in patch("A"), b in patch("B")) {
        let start = merge(&merge(&json!({}), &start, 1).unwrap().status, &other, 2).unwrap().status;
        let apply = |first: &Value, second: &Value| {
            merge(&merge(&start, first, 9).unwrap().status, second, 9).unwrap().status
        };
        prop_assert_eq!(apply(&a, &b), apply(&b, &a));
    }
}
