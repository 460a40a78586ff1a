//! The object form of a label selector: `{matchLabels, matchExpressions}`.

use serde_json::{Map, Value};

use super::{LabelSelector, Operator, Requirement, SELECTOR_REQUIREMENTS_MAX, SELECTOR_VALUES_MAX, value_set};
use crate::syntax::{check_label_key, check_label_value};
use crate::{FieldError, FieldErrorReason};

impl LabelSelector {
    /// Reads `value`, which stands at `path` in its object. The empty selector
    /// selects everything; what an absent one means is its owner's to say.
    pub fn from_object_form(path: &str, value: &Value) -> Result<Self, Vec<FieldError>> {
        let mut reader = Reader::default();
        match value {
            Value::Object(fields) => reader.selector(path, fields),
            other => reader.wrong_type(path, "an object with matchLabels and matchExpressions", other),
        }
        if reader.requirements.len() > SELECTOR_REQUIREMENTS_MAX {
            let message = format!("more than {SELECTOR_REQUIREMENTS_MAX} requirements");
            reader.errors.push(FieldError::new(path, FieldErrorReason::TooMany, message));
        }
        if reader.errors.is_empty() { Ok(Self::new(reader.requirements)) } else { Err(reader.errors) }
    }
}

#[derive(Default)]
struct Reader {
    requirements: Vec<Requirement>,
    errors: Vec<FieldError>,
}

impl Reader {
    fn selector(&mut self, path: &str, fields: &Map<String, Value>) {
        for (field, value) in fields {
            let path = format!("{path}.{field}");
            match (field.as_str(), value) {
                ("matchLabels" | "matchExpressions", Value::Null) => {}
                ("matchLabels", Value::Object(pairs)) => self.match_labels(&path, pairs),
                ("matchLabels", other) => self.wrong_type(&path, "an object of label values", other),
                ("matchExpressions", Value::Array(items)) => self.match_expressions(&path, items),
                ("matchExpressions", other) => self.wrong_type(&path, "a list", other),
                _ => self.errors.push(unknown_field(&path, "matchLabels and matchExpressions")),
            }
        }
    }

    fn match_labels(&mut self, path: &str, pairs: &Map<String, Value>) {
        for (key, value) in pairs {
            let path = format!("{path}[{key}]");
            self.key(&path, key);
            if let Some(value) = self.value(&path, value) {
                self.requirements.push(Requirement::new(key, Operator::In([value].into())));
            }
        }
    }

    fn match_expressions(&mut self, path: &str, items: &[Value]) {
        for (at, item) in items.iter().enumerate() {
            let path = format!("{path}[{at}]");
            match item {
                Value::Object(fields) => self.expression(&path, fields),
                other => self.wrong_type(&path, "an object with key, operator and values", other),
            }
        }
    }

    fn expression(&mut self, path: &str, fields: &Map<String, Value>) {
        for field in fields.keys().filter(|field| !["key", "operator", "values"].contains(&field.as_str())) {
            self.errors.push(unknown_field(&format!("{path}.{field}"), "key, operator and values"));
        }
        let key = self.text(&format!("{path}.key"), fields.get("key"));
        let name = self.text(&format!("{path}.operator"), fields.get("operator"));
        let values = self.values(&format!("{path}.values"), fields.get("values"));
        let (Some(key), Some(name), Some(values)) = (key, name, values) else { return };
        self.key(&format!("{path}.key"), key);
        if let Some(operator) = self.operator(path, name, values) {
            self.requirements.push(Requirement::new(key, operator));
        }
    }

    fn operator(&mut self, path: &str, name: &str, values: Vec<Box<str>>) -> Option<Operator> {
        let values_path = format!("{path}.values");
        match (name, values.is_empty()) {
            ("In", false) => return Some(Operator::In(value_set(values))),
            ("NotIn", false) => return Some(Operator::NotIn(value_set(values))),
            ("Exists", true) => return Some(Operator::Exists),
            ("DoesNotExist", true) => return Some(Operator::Absent),
            ("In" | "NotIn", true) => {
                let message = format!("operator {name} needs at least one value");
                self.errors.push(FieldError::required(values_path, message));
            }
            ("Exists" | "DoesNotExist", false) => {
                let message = format!("operator {name} takes no values: remove them");
                self.errors.push(FieldError::new(values_path, FieldErrorReason::Forbidden, message));
            }
            _ => {
                let message = format!("unknown operator `{name}`: use In, NotIn, Exists or DoesNotExist");
                self.errors.push(FieldError::new(format!("{path}.operator"), FieldErrorReason::NotSupported, message));
            }
        }
        None
    }

    fn values(&mut self, path: &str, value: Option<&Value>) -> Option<Vec<Box<str>>> {
        match value {
            None | Some(Value::Null) => Some(Vec::new()),
            Some(Value::Array(items)) if items.len() > SELECTOR_VALUES_MAX => {
                let message = format!("{} values are more than the {SELECTOR_VALUES_MAX} allowed", items.len());
                self.errors.push(FieldError::new(path, FieldErrorReason::TooMany, message));
                None
            }
            Some(Value::Array(items)) => {
                let read = |(at, item)| self.value(&format!("{path}[{at}]"), item);
                items.iter().enumerate().map(read).collect()
            }
            Some(other) => {
                self.wrong_type(path, "a list of label values", other);
                None
            }
        }
    }

    fn key(&mut self, path: &str, key: &str) {
        if let Err(expected) = check_label_key(key) {
            self.errors.push(FieldError::invalid(path, format!("`{key}` is not a label key: expected {expected}")));
        }
    }

    fn value(&mut self, path: &str, value: &Value) -> Option<Box<str>> {
        let text = self.text(path, Some(value))?;
        match check_label_value(text) {
            Ok(()) => Some(text.into()),
            Err(expected) => {
                let message = format!("`{text}` is not a label value: expected {expected}");
                self.errors.push(FieldError::invalid(path, message));
                None
            }
        }
    }

    fn text<'v>(&mut self, path: &str, value: Option<&'v Value>) -> Option<&'v str> {
        match value {
            Some(Value::String(text)) => return Some(text),
            Some(other) => self.wrong_type(path, "a string", other),
            None => self.errors.push(FieldError::required(path, "is required")),
        }
        None
    }

    fn wrong_type(&mut self, path: &str, expected: &str, found: &Value) {
        let found = match found {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        let message = format!("expected {expected}, found {found}");
        self.errors.push(FieldError::new(path, FieldErrorReason::TypeInvalid, message));
    }
}

fn unknown_field(path: &str, known: &str) -> FieldError {
    FieldError::new(path, FieldErrorReason::NotSupported, format!("unknown field: a selector has {known}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(value: Value, expected: &str) {
        let shown = match LabelSelector::from_object_form("spec.selector", &value) {
            Ok(selector) => selector.to_string(),
            Err(errors) => errors.iter().map(|error| format!("! {error}")).collect::<Vec<_>>().join("\n"),
        };
        assert_eq!(shown, expected, "{value}");
    }

    #[test]
    fn reads_labels_and_expressions() {
        check(json!({}), "");
        check(json!({"matchLabels": null, "matchExpressions": []}), "");
        check(
            json!({"matchLabels": {"b": "1", "a": ""}, "matchExpressions": [
                {"key": "c", "operator": "In", "values": ["y", "x"]},
                {"key": "d", "operator": "NotIn", "values": ["z"]},
                {"key": "e", "operator": "Exists"},
                {"key": "f", "operator": "DoesNotExist", "values": []},
            ]}),
            "a=,b=1,c in (x,y),d!=z,e,!f",
        );
    }

    #[test]
    fn errors_name_the_field() {
        check(
            json!("a=b"),
            "! spec.selector: expected an object with matchLabels and matchExpressions, found a string",
        );
        check(json!({"a": "b"}), "! spec.selector.a: unknown field: a selector has matchLabels and matchExpressions");
        check(json!({"matchLabels": {"a": 1}}), "! spec.selector.matchLabels[a]: expected a string, found a number");
        check(
            json!({"matchExpressions": [{"operator": "In"}]}),
            "! spec.selector.matchExpressions[0].key: is required",
        );
        check(
            json!({"matchExpressions": [{"key": "a", "operator": "In"}, {"key": "a", "operator": "Exists", "values": ["x"]}]}),
            "! spec.selector.matchExpressions[0].values: operator In needs at least one value\n\
             ! spec.selector.matchExpressions[1].values: operator Exists takes no values: remove them",
        );
        check(
            json!({"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}),
            "! spec.selector.matchExpressions[0].operator: unknown operator `Gt`: use In, NotIn, Exists or DoesNotExist",
        );
    }

    #[test]
    fn limits() {
        let values = vec![json!("x"); SELECTOR_VALUES_MAX + 1];
        check(
            json!({"matchExpressions": [{"key": "a", "operator": "In", "values": values}]}),
            "! spec.selector.matchExpressions[0].values: 257 values are more than the 256 allowed",
        );
        let labels: Map<_, _> = (0..=SELECTOR_REQUIREMENTS_MAX).map(|n| (format!("k{n}"), json!("x"))).collect();
        check(json!({"matchLabels": labels}), "! spec.selector: more than 64 requirements");
    }
}
