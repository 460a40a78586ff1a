//! The introspectable schema: the plain types, told to async-graphql.
//!
//! async-graphql parses, validates, limits and introspects. It never resolves
//! a data field: answers are encoded by compiled selections (`selection.rs`),
//! because one resolver future a field is what makes lists and fan-out slow.

use async_graphql::Value;
use async_graphql::dynamic::{
    Enum, Field, FieldFuture, FieldValue, InputObject, InputValue, Object, ResolverContext, Scalar, Schema,
    SchemaError, Subscription, SubscriptionField, SubscriptionFieldFuture, TypeRef,
};
use futures_util::stream;

use super::limits::Limits;
use super::prepare::Intercept;
use super::types::{FieldDef, FieldType, Operation, Root, RootField, TypeDef, Types};

pub fn build(types: &Types, limits: &Limits) -> Result<Schema, SchemaError> {
    let mut schema = Schema::build("Query", Some("Mutation"), Some("Subscription"))
        .limit_depth(limits.depth_max)
        .limit_complexity(limits.complexity_max)
        .limit_recursive_depth(limits.recursion_max)
        .limit_directives(limits.directives_max)
        .extension(Intercept)
        .register(json_scalar())
        .register(Scalar::new("Int64").description("A whole number of up to 64 bits."))
        .register(Enum::new("WatchEventType").item("ADDED").item("MODIFIED").item("DELETED").item("BOOKMARK"));
    for input in inputs() {
        schema = schema.register(input);
    }
    for def in types.objects.values() {
        schema = schema.register(object(def));
    }
    schema
        .register(root_object(types, Root::Query, "Query"))
        .register(root_object(types, Root::Mutation, "Mutation"))
        .register(subscription(types))
        .finish()
}

fn json_scalar() -> Scalar {
    Scalar::new("JSON").description("Any JSON value.")
}

fn object(def: &TypeDef) -> Object {
    let mut object = Object::new(&*def.name);
    if let Some(text) = &def.description {
        object = object.description(&**text);
    }
    for (name, field) in &def.fields {
        let mut added = Field::new(name, type_ref(field), unresolved);
        if let Some(text) = &field.description {
            added = added.description(&**text);
        }
        object = object.field(added);
    }
    object
}

fn type_ref(field: &FieldDef) -> TypeRef {
    let name = match &field.ty {
        FieldType::Scalar(name) | FieldType::Enum(name) => TypeRef::named(*name),
        FieldType::Object(name) => TypeRef::named(name.to_string()),
    };
    // The elements of a required list are required; elsewhere stored data decides.
    let mut ty = if field.required { TypeRef::NonNull(Box::new(name)) } else { name };
    for _ in 0..field.lists {
        ty = TypeRef::List(Box::new(ty));
        if field.required {
            ty = TypeRef::NonNull(Box::new(ty));
        }
    }
    ty
}

/// Reached only by an operation that mixes introspection with data.
fn unresolved<'a>(_: ResolverContext<'a>) -> FieldFuture<'a> {
    FieldFuture::new(async {
        Err::<Option<FieldValue<'_>>, _>(async_graphql::Error::new(
            "introspection and data cannot be asked for in one operation: send two requests",
        ))
    })
}

fn sorted(types: &Types, root: Root) -> Vec<&RootField> {
    let mut fields: Vec<_> = types.roots.values().filter(|field| field.operation.root() == root).collect();
    fields.sort_by(|a, b| a.name.cmp(&b.name));
    fields
}

fn root_object(types: &Types, root: Root, name: &str) -> Object {
    sorted(types, root).into_iter().fold(Object::new(name), |object, root_field| {
        let field =
            Field::new(&root_field.name, type_ref(&root_field.result), unresolved).description(&root_field.description);
        object.field(arguments(root_field).into_iter().fold(field, Field::argument))
    })
}

fn subscription(types: &Types) -> Subscription {
    sorted(types, Root::Subscription).into_iter().fold(Subscription::new("Subscription"), |object, root_field| {
        let field = SubscriptionField::new(&root_field.name, type_ref(&root_field.result), |_| {
            SubscriptionFieldFuture::new(async { Ok(stream::empty::<async_graphql::Result<FieldValue<'_>>>()) })
        })
        .description(&root_field.description);
        object.field(arguments(root_field).into_iter().fold(field, SubscriptionField::argument))
    })
}

pub(super) fn optional(name: &str, ty: &str) -> InputValue {
    InputValue::new(name, TypeRef::named(ty))
}

pub(super) fn required(name: &str, ty: &str) -> InputValue {
    InputValue::new(name, TypeRef::named_nn(ty))
}

fn arguments(field: &RootField) -> Vec<InputValue> {
    let mut arguments = Vec::new();
    let is_read = matches!(field.operation, Operation::Get | Operation::List | Operation::Watch);
    if is_read && field.target.is_none() {
        arguments.extend([required("apiVersion", "String"), required("kind", "String")]);
    }
    if is_read && field.target.as_ref().is_none_or(|target| target.namespaced) {
        arguments.push(optional("namespace", "String"));
    }
    match field.operation {
        Operation::Get => arguments.push(required("name", "String")),
        Operation::List => arguments.extend(selectors().chain([
            optional("first", "Int").description("At most this many objects on a page."),
            optional("after", "String").description("`pageInfo.endCursor` of the page before."),
        ])),
        Operation::Watch => arguments.extend(
            selectors().chain([
                optional("resourceVersion", "String").description("Exactly the events after this version."),
                optional("sendInitialEvents", "Boolean")
                    .description("First the current objects as ADDED, then a BOOKMARK with initialEventsEnd."),
                optional("allowBookmarks", "Boolean").default_value(Value::Boolean(true)),
            ]),
        ),
        Operation::UpdateStatus => arguments.push(required(
            "input",
            if field.target.is_some() { "UpdateStatusInput" } else { "UpdateResourceStatusInput" },
        )),
        Operation::UpdateFinalizers => arguments.push(required(
            "input",
            if field.target.is_some() { "UpdateFinalizersInput" } else { "UpdateResourceFinalizersInput" },
        )),
        Operation::CreateToken => arguments.push(required("input", "CreateTokenInput")),
        Operation::RevokeToken => arguments.push(required("input", "RevokeTokenInput")),
        Operation::SyncRepository => arguments.extend([required("namespace", "String"), required("name", "String")]),
        operation => arguments.extend(super::controllers::arguments(operation)),
    }
    arguments
}

fn selectors() -> impl Iterator<Item = InputValue> {
    [
        optional("labelSelector", "String").description("As kubectl takes it: `season=winter,tier in (a, b),!draft`."),
        optional("fieldSelector", "String").description("`metadata.name=…`, `metadata.namespace=…`."),
    ]
    .into_iter()
}

fn inputs() -> Vec<InputObject> {
    let kind = || [required("apiVersion", "String"), required("kind", "String")];
    let key = || {
        [
            optional("namespace", "String").description("Needed for namespaced kinds."),
            required("name", "String"),
            required("resourceVersion", "String").description("The precondition: the version that you read."),
            optional("fence", "FenceInput").description("Refused if this lease is not in force when it commits."),
        ]
    };
    let status = || [required("status", "JSON").description("A JSON merge patch of `status`.")];
    let finalizers = || {
        [
            InputValue::new("add", TypeRef::named_nn_list("String")),
            InputValue::new("remove", TypeRef::named_nn_list("String")),
        ]
    };
    let input =
        |name: &str, fields: Vec<InputValue>| fields.into_iter().fold(InputObject::new(name), InputObject::field);
    let mut inputs = vec![
        input("UpdateStatusInput", key().into_iter().chain(status()).collect()),
        input("UpdateResourceStatusInput", kind().into_iter().chain(key()).chain(status()).collect()),
        input("UpdateFinalizersInput", key().into_iter().chain(finalizers()).collect()),
        input("UpdateResourceFinalizersInput", kind().into_iter().chain(key()).chain(finalizers()).collect()),
        input(
            "CreateTokenInput",
            vec![
                required("namespace", "String"),
                required("serviceAccount", "String"),
                optional("expiresInSeconds", "Int64").description("Default: one day."),
            ],
        ),
        input(
            "RevokeTokenInput",
            vec![required("namespace", "String"), required("serviceAccount", "String"), required("tokenId", "String")],
        ),
    ];
    inputs.extend(super::controllers::inputs().into_iter().map(|(name, fields)| input(name, fields)));
    inputs
}
