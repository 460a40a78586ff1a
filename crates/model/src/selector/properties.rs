//! What holds for every selector.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// A requirement as its author spells it, beside what it should mean.
#[derive(Clone, Debug)]
struct Spelled {
    key: String,
    operator: &'static str,
    values: Vec<String>,
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![Just("in".to_string()), "[a-c]", "[a-zA-Z0-9]([-_.a-z0-9]{0,6}[0-9])?"]
}

fn spelled() -> impl Strategy<Value = Spelled> {
    let operator = prop::sample::select(vec!["=", "==", "!=", "in", "notin", "exists", "absent"]);
    let value = prop_oneof![1 => Just(String::new()), 4 => word()];
    (word(), operator, prop::collection::vec(value, 1..4)).prop_map(|(key, operator, values)| Spelled {
        key,
        operator,
        values,
    })
}

impl Spelled {
    fn text(&self) -> String {
        let Self { key, operator, values } = self;
        match *operator {
            // `()` is refused: the empty value alone is spelled twice.
            "in" | "notin" if values == &[""] => format!("{key} {operator} (,)"),
            "in" | "notin" => format!("{key} {operator} ({})", values.join(", ")),
            "exists" => key.clone(),
            "absent" => format!("!{key}"),
            _ => format!("{key}{operator}{}", values[0]),
        }
    }

    /// The definition, without sorting, sharing or searching.
    fn holds(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        match self.operator {
            "=" | "==" => value == Some(&self.values[0]),
            "!=" => value != Some(&self.values[0]),
            "in" => value.is_some_and(|value| self.values.contains(value)),
            "notin" => !value.is_some_and(|value| self.values.contains(value)),
            "exists" => value.is_some(),
            _ => value.is_none(),
        }
    }
}

fn text_of(requirements: &[Spelled]) -> String {
    requirements.iter().map(Spelled::text).collect::<Vec<_>>().join(",")
}

proptest! {
    #[test]
    fn text_is_canonical(requirements in prop::collection::vec(spelled(), 0..6)) {
        let selector: LabelSelector = text_of(&requirements).parse().unwrap();
        let again: LabelSelector = selector.to_string().parse().unwrap();
        prop_assert_eq!(&again, &selector);
        prop_assert_eq!(again.to_string(), selector.to_string());

        let mut reversed = requirements.clone();
        reversed.reverse();
        prop_assert_eq!(text_of(&reversed).parse::<LabelSelector>().unwrap(), selector);
    }

    #[test]
    fn matches_as_defined(
        requirements in prop::collection::vec(spelled(), 0..3),
        pairs in prop::collection::btree_map(word(), prop_oneof![Just(String::new()), word()], 0..5),
    ) {
        let selector: LabelSelector = text_of(&requirements).parse().unwrap();
        let labels: Labels = pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let expected = requirements.iter().all(|requirement| requirement.holds(&pairs));
        prop_assert_eq!(selector.matches(&labels), expected);
        if let Some((key, value)) = selector.equality() {
            prop_assert!(!expected || pairs.get(key).map(String::as_str) == Some(value));
        }
    }

    #[test]
    fn object_form_means_the_same(requirements in prop::collection::vec(spelled(), 0..5)) {
        let expressions: Vec<_> = requirements.iter().map(|Spelled { key, operator, values }| match *operator {
            "=" | "==" => json!({"key": key, "operator": "In", "values": [values[0]]}),
            "!=" => json!({"key": key, "operator": "NotIn", "values": [values[0]]}),
            "in" => json!({"key": key, "operator": "In", "values": values}),
            "notin" => json!({"key": key, "operator": "NotIn", "values": values}),
            "exists" => json!({"key": key, "operator": "Exists"}),
            _ => json!({"key": key, "operator": "DoesNotExist"}),
        }).collect();
        let object = json!({"matchExpressions": expressions});
        let selector = LabelSelector::from_object_form("selector", &object).unwrap();
        prop_assert_eq!(selector, text_of(&requirements).parse::<LabelSelector>().unwrap());
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[ab,=!() <>in\u{e4}]{0,24}") {
        if let Ok(selector) = text.parse::<LabelSelector>() {
            prop_assert_eq!(selector.to_string().parse::<LabelSelector>(), Ok(selector));
        }
        let _ = text.parse::<FieldSelector>();
    }
}
