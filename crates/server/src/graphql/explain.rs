//! Refusals that deserve more than «unknown field».
//!
//! Somebody who sends a spec, or forgets the precondition, fails validation;
//! what they need to hear is how writing works here.

use async_graphql::parser::types::{
    DocumentOperations, ExecutableDocument, Field, OperationDefinition, OperationType, Selection,
};
use serde_json::{Map, Value};

use super::prepare::Request;
use crate::api::error::{ApiError, Code};
use crate::api::missing_precondition;

/// Parts of an object that only Git may write.
pub const GIT_OWNED: [&str; 5] = ["spec", "metadata", "labels", "annotations", "object"];
const WRITES: [&str; 6] = ["create", "update", "patch", "apply", "delete", "replace"];

pub fn explain(document: Option<&ExecutableDocument>, request: &Request) -> Option<ApiError> {
    let operation = operation(document?, request.operation_name.as_deref())?;
    if operation.ty != OperationType::Mutation {
        return None;
    }
    let fields = operation.selection_set.node.items.iter().filter_map(|item| match &item.node {
        Selection::Field(field) => Some(&field.node),
        _ => None,
    });
    fields.into_iter().find_map(|field| explain_field(field, &request.variables))
}

fn operation<'a>(document: &'a ExecutableDocument, name: Option<&str>) -> Option<&'a OperationDefinition> {
    match &document.operations {
        DocumentOperations::Single(operation) => Some(&operation.node),
        DocumentOperations::Multiple(operations) => match name {
            Some(name) => operations.get(name).map(|operation| &operation.node),
            None => operations.values().next().map(|operation| &operation.node),
        },
    }
}

fn explain_field(field: &Field, variables: &Map<String, Value>) -> Option<ApiError> {
    let name = field.name.node.as_str();
    let is_known = name.starts_with("update") && (name.ends_with("Status") || name.ends_with("Finalizers"));
    if is_known {
        let input = input_members(field, variables)?;
        return match GIT_OWNED.iter().find(|part| input.iter().any(|key| key == *part)) {
            Some(part) => Some(git_owned(part)),
            None if !input.iter().any(|key| key == "resourceVersion") => Some(missing_precondition()),
            None => None,
        };
    }
    let is_token = matches!(name, "createToken" | "revokeToken");
    (!is_token && WRITES.iter().any(|verb| name.starts_with(verb))).then(|| git_owned("spec"))
}

/// The names of the members of `input`, written out or in a variable.
fn input_members(field: &Field, variables: &Map<String, Value>) -> Option<Vec<String>> {
    match &field.get_argument("input")?.node {
        async_graphql_value::Value::Object(members) => Some(members.keys().map(ToString::to_string).collect()),
        async_graphql_value::Value::Variable(name) => {
            Some(variables.get(name.as_str())?.as_object()?.keys().cloned().collect())
        }
        _ => None,
    }
}

pub fn git_owned(part: &str) -> ApiError {
    let message = format!(
        "`{part}` is owned by Git: change the object's file and push it; this API writes `status` and finalizers only"
    );
    ApiError::new(Code::SpecIsGitOwned, message)
}
