//! Arguments: literals and variables, read as the types that the API needs.
//!
//! Validation has checked literals. A variable's value is checked here, where
//! it is used, because operations are validated once and run many times.

use async_graphql::Positioned;
use async_graphql::Value as AstValue;
use async_graphql::parser::types::{Field, OperationDefinition};
use serde_json::{Map, Value};

use super::explain::{GIT_OWNED, git_owned};
use crate::api::error::ApiError;

/// A GraphQL `Int` has 32 bits.
const COUNT_MAX: u64 = i32::MAX as u64;

/// The variables of one request, defaults filled in.
pub struct Variables(Map<String, Value>);

impl Variables {
    pub fn new(operation: &OperationDefinition, mut given: Map<String, Value>) -> Result<Self, ApiError> {
        let mut values = Map::new();
        for definition in &operation.variable_definitions {
            let name = definition.node.name.node.as_str();
            let required = !definition.node.var_type.node.nullable;
            match (given.remove(name), definition.node.default_value()) {
                (Some(Value::Null), _) | (None, None) if required => {
                    return Err(ApiError::bad_request(format!(
                        "the variable `${name}` needs a value: it is declared as `{}`",
                        definition.node.var_type.node
                    )));
                }
                (Some(value), _) => _ = values.insert(name.to_owned(), value),
                (None, Some(default)) if definition.node.default_value.is_some() => {
                    values.insert(name.to_owned(), default.clone().into_json().unwrap_or_default());
                }
                (None, _) => {}
            }
        }
        Ok(Self(values))
    }

    /// A literal with its variables replaced; an absent variable is null.
    pub fn resolve(&self, value: &AstValueNode) -> Value {
        self.lookup(value).unwrap_or_default()
    }

    /// `None` for a variable that has no value: as if the argument were absent.
    fn lookup(&self, value: &AstValueNode) -> Option<Value> {
        match value {
            AstValueNode::Variable(name) => self.0.get(name.as_str()).cloned(),
            AstValueNode::List(items) => Some(items.iter().map(|item| self.resolve(item)).collect()),
            AstValueNode::Object(members) => {
                let present = members.iter().filter_map(|(key, member)| Some((key.to_string(), self.lookup(member)?)));
                Some(Value::Object(present.collect()))
            }
            other => other.clone().into_const().map(constant),
        }
    }
}

type AstValueNode = async_graphql_value::Value;

fn constant(value: AstValue) -> Value {
    value.into_json().unwrap_or_default()
}

/// The arguments of one field, or the members of one input object.
pub struct Arguments(Map<String, Value>);

impl Arguments {
    pub fn of(field: &Positioned<Field>, variables: &Variables) -> Self {
        let given = field.node.arguments.iter();
        Self(given.filter_map(|(name, value)| Some((name.node.to_string(), variables.lookup(&value.node)?))).collect())
    }

    pub fn input(mut self) -> Result<Self, ApiError> {
        match self.0.remove("input") {
            Some(Value::Object(members)) => Ok(Self(members)),
            _ => Err(ApiError::bad_request("`input` must be an object")),
        }
    }

    pub fn text(&mut self, name: &str) -> Result<Option<String>, ApiError> {
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(mistyped(name, "a string", &other)),
        }
    }

    pub fn required_text(&mut self, name: &str) -> Result<String, ApiError> {
        self.text(name)?.ok_or_else(|| ApiError::bad_request(format!("`{name}` is required")))
    }

    pub fn flag(&mut self, name: &str, default: bool) -> Result<bool, ApiError> {
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(default),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(other) => Err(mistyped(name, "true or false", &other)),
        }
    }

    pub fn count(&mut self, name: &str) -> Result<Option<u64>, ApiError> {
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                value.as_u64().map(Some).ok_or_else(|| mistyped(name, "a whole number, zero or more", &value))
            }
        }
    }

    /// A count that GraphQL calls `Int`.
    pub fn int(&mut self, name: &str) -> Result<Option<u64>, ApiError> {
        match self.count(name)? {
            Some(count) if count > COUNT_MAX => {
                Err(ApiError::bad_request(format!("`{name}` must be at most {COUNT_MAX}")))
            }
            count => Ok(count),
        }
    }

    pub fn texts(&mut self, name: &str) -> Result<Vec<String>, ApiError> {
        let items = match self.0.remove(name) {
            None | Some(Value::Null) => return Ok(Vec::new()),
            Some(Value::Array(items)) => items,
            Some(single) => vec![single],
        };
        let text =
            |item: Value| item.as_str().map(str::to_owned).ok_or_else(|| mistyped(name, "a list of strings", &item));
        items.into_iter().map(text).collect()
    }

    /// The members of an object within.
    pub fn object(&mut self, name: &str) -> Result<Option<Self>, ApiError> {
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(members)) => Ok(Some(Self(members))),
            Some(other) => Err(mistyped(name, "an object", &other)),
        }
    }

    pub fn objects(&mut self, name: &str) -> Result<Vec<Self>, ApiError> {
        let items = match self.0.remove(name) {
            None | Some(Value::Null) => return Ok(Vec::new()),
            Some(Value::Array(items)) => items,
            Some(single) => vec![single],
        };
        let members = |item| match item {
            Value::Object(members) => Ok(Self(members)),
            other => Err(mistyped(name, "a list of objects", &other)),
        };
        items.into_iter().map(members).collect()
    }

    pub fn json(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name)
    }

    /// What nobody has asked for is a mistake, also where a variable brought
    /// it past validation.
    pub fn finish(self) -> Result<(), ApiError> {
        match self.0.keys().find(|key| GIT_OWNED.contains(&key.as_str())).or(self.0.keys().next()) {
            None => Ok(()),
            Some(key) if GIT_OWNED.contains(&key.as_str()) => Err(git_owned(key)),
            Some(key) => Err(ApiError::bad_request(format!("`input` has no member `{key}`"))),
        }
    }
}

fn mistyped(name: &str, expected: &str, found: &Value) -> ApiError {
    let found = match found {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    ApiError::bad_request(format!("`{name}` must be {expected}, not {found}"))
}
