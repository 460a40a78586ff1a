//! How a status write changes a status: a JSON merge patch (RFC 7386), but for
//! `conditions`, which merge by `type`.
//!
//! Invariant: a write never erases what it does not name. Patches that name
//! different fields and condition types give one result in either order.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use crate::conditions::merge_conditions;
use crate::{FieldError, FieldErrorReason};

/// What the server knows at the moment of a status write.
#[derive(Clone, Copy, Debug)]
pub struct StatusMerge {
    pub now: DateTime<Utc>,
    /// `metadata.generation` of the object: nobody can have observed a later one.
    pub generation: i64,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Merged {
    pub status: Value,
    /// `false` if the write has no effect: it then neither writes nor emits.
    pub changed: bool,
}

/// `patch` applied to `current`. All errors of the patch are reported at once,
/// with paths from the object's root.
pub fn merge_status(current: Option<&Value>, patch: &Value, context: &StatusMerge) -> Result<Merged, Vec<FieldError>> {
    let Value::Object(patch) = patch else {
        let message = "expected an object: a status write is a merge patch of the status";
        return Err(vec![FieldError::new("status", FieldErrorReason::TypeInvalid, message)]);
    };
    let before = current.and_then(Value::as_object).cloned().unwrap_or_default();
    let mut after = before.clone();
    let mut errors = Vec::new();
    for (field, value) in patch {
        match field.as_str() {
            "conditions" => merge_conditions(&mut after, value, context, &mut errors),
            "observedGeneration" => {
                errors.extend(check_observed_generation("status.observedGeneration", value, context));
                merge_field(&mut after, field, value);
            }
            _ => merge_field(&mut after, field, value),
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let changed = after != before;
    Ok(Merged { status: Value::Object(after), changed })
}

/// RFC 7386: `null` removes, objects merge, anything else replaces.
pub fn merge_patch(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    if let Value::Object(target) = target {
        for (field, value) in fields {
            merge_field(target, field, value);
        }
    }
}

fn merge_field(target: &mut Map<String, Value>, field: &str, patch: &Value) {
    if patch.is_null() {
        target.remove(field);
    } else {
        merge_patch(target.entry(field).or_insert(Value::Null), patch);
    }
}

/// Absence is fine: not every controller reports what it has seen.
pub(crate) fn check_observed_generation(path: &str, value: &Value, context: &StatusMerge) -> Option<FieldError> {
    let generation = context.generation;
    match (value, value.as_i64()) {
        (Value::Null, _) => None,
        (_, Some(observed)) if (0..=generation).contains(&observed) => None,
        (_, Some(observed)) => {
            let message = format!("{observed} is not a generation of this object: the latest is {generation}");
            Some(FieldError::invalid(path, message))
        }
        _ => Some(FieldError::new(path, FieldErrorReason::TypeInvalid, "expected an integer")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    /// The test cases of RFC 7386, appendix A.
    #[test]
    fn rfc_7386() {
        for (target, patch, expected) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
            (json!({"a": "b"}), json!(["c"]), json!(["c"])),
            (json!({"a": "foo"}), json!(null), json!(null)),
            (json!({"a": "foo"}), json!("bar"), json!("bar")),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ] {
            let mut merged = target.clone();
            merge_patch(&mut merged, &patch);
            assert_eq!(merged, expected, "{target} + {patch}");
        }
    }

    fn check(current: Option<Value>, patch: Value, expected: Result<(Value, bool), &str>) {
        let context = StatusMerge { now: DateTime::UNIX_EPOCH, generation: 3 };
        let shown = merge_status(current.as_ref(), &patch, &context)
            .map(|merged| (merged.status, merged.changed))
            .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"));
        assert_eq!(shown, expected.map_err(Into::into), "{patch}");
    }

    #[test]
    fn no_op_is_not_a_change() {
        check(None, json!({}), Ok((json!({}), false)));
        check(None, json!({"a": null}), Ok((json!({}), false)));
        check(None, json!({"conditions": []}), Ok((json!({}), false)));
        check(Some(json!({"a": {"b": 1}})), json!({"a": {"b": 1}}), Ok((json!({"a": {"b": 1}}), false)));
        check(Some(json!({"a": 1})), json!({"a": null}), Ok((json!({}), true)));
    }

    #[test]
    fn observed_generation_is_bounded() {
        check(None, json!({"observedGeneration": 3}), Ok((json!({"observedGeneration": 3}), true)));
        check(
            None,
            json!({"observedGeneration": 4}),
            Err("status.observedGeneration: 4 is not a generation of this object: the latest is 3"),
        );
        check(
            None,
            json!({"observedGeneration": -1}),
            Err("status.observedGeneration: -1 is not a generation of this object: the latest is 3"),
        );
        check(None, json!({"observedGeneration": "3"}), Err("status.observedGeneration: expected an integer"));
    }

    #[test]
    fn a_status_is_an_object() {
        for patch in [json!(null), json!([]), json!("x")] {
            check(
                Some(json!({"a": 1})),
                patch,
                Err("status: expected an object: a status write is a merge patch of the status"),
            );
        }
    }

    fn tree() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), (0..3).prop_map(Value::from)];
        leaf.prop_recursive(3, 16, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a-c]", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn merge_patch_laws(target in tree(), patch in tree()) {
            let mut once = target.clone();
            merge_patch(&mut once, &patch);
            let mut twice = once.clone();
            merge_patch(&mut twice, &patch);
            prop_assert_eq!(&twice, &once, "applying twice is applying once");

            if let (Value::Object(before), Value::Object(after), Value::Object(named)) = (&target, &once, &patch) {
                for (field, value) in before.iter().filter(|(field, _)| !named.contains_key(*field)) {
                    prop_assert_eq!(after.get(field), Some(value), "what the patch does not name stays");
                }
                for (field, _) in named.iter().filter(|(_, value)| value.is_null()) {
                    prop_assert!(!after.contains_key(field), "null removes");
                }
            }
        }
    }
}
