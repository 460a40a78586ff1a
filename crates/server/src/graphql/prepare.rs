//! From request text to a validated operation, once per distinct text.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_graphql::dynamic::Schema;
use async_graphql::extensions::{Extension, ExtensionContext, ExtensionFactory, NextExecute, NextParseQuery};
use async_graphql::parser::types::{
    DocumentOperations, ExecutableDocument, FragmentDefinition, OperationDefinition, OperationType, Selection,
    SelectionSet,
};
use async_graphql::{Name, Positioned, Response, ServerError, ServerResult, Variables};
use serde_json::{Map, Value};

use super::bounds::Bounds;
use super::limits::Limits;
use super::types::Root;

/// Longer texts are validated each time: a cache of them could be made large.
const CACHED_QUERY_BYTES_MAX: usize = 8 << 10;

/// One operation of a document that passed validation.
pub struct Prepared {
    pub operation: OperationDefinition,
    pub fragments: HashMap<Name, Positioned<FragmentDefinition>>,
}

impl Prepared {
    pub fn root(&self) -> Root {
        match self.operation.ty {
            OperationType::Query => Root::Query,
            OperationType::Mutation => Root::Mutation,
            OperationType::Subscription => Root::Subscription,
        }
    }
}

pub enum Outcome {
    /// Ours to execute.
    Data(Arc<Prepared>),
    /// Introspection: answered by async-graphql.
    Answered(Response),
    /// It does not parse, does not validate or exceeds a limit. The document
    /// is there if at least it parsed, for a better explanation.
    Refused(Vec<ServerError>, Option<Box<ExecutableDocument>>),
}

pub struct Request {
    pub query: String,
    pub operation_name: Option<String>,
    pub variables: Map<String, Value>,
}

/// Query text and operation name.
type CacheKey = (String, Option<String>);

/// The operations validated against one schema.
pub struct Preparer {
    schema: Schema,
    cache: Mutex<HashMap<CacheKey, Arc<Prepared>>>,
    cached_max: usize,
    bounds: Bounds,
}

impl Preparer {
    pub fn new(schema: Schema, limits: &Limits) -> Self {
        Self { schema, cache: Mutex::default(), cached_max: limits.prepared_max, bounds: Bounds::new(limits) }
    }

    pub fn sdl(&self) -> String {
        self.schema.sdl()
    }

    pub async fn prepare(&self, request: &Request) -> Outcome {
        let key = (request.query.clone(), request.operation_name.clone());
        if let Some(found) = self.cache.lock().expect("no panic under this lock").get(&key) {
            return Outcome::Data(found.clone());
        }
        let outcome = self.validate(request).await;
        if let Outcome::Data(prepared) = &outcome
            && key.0.len() <= CACHED_QUERY_BYTES_MAX
        {
            self.remember(key, prepared.clone());
        }
        outcome
    }

    fn remember(&self, key: CacheKey, prepared: Arc<Prepared>) {
        let mut cache = self.cache.lock().expect("no panic under this lock");
        // Clients use few texts with many variables; one that does not may
        // cost everybody a second validation, never memory.
        if cache.len() >= self.cached_max {
            cache.clear();
        }
        cache.insert(key, prepared);
    }

    async fn validate(&self, request: &Request) -> Outcome {
        let document = match self.bounds.parse(&request.query) {
            Ok(document) => document,
            Err(error) => return Outcome::Refused(vec![error], None),
        };
        let slot = Slot::default();
        let mut inner = async_graphql::Request::new(&request.query)
            .variables(Variables::from_json(Value::Object(request.variables.clone())))
            .data(slot.clone());
        if let Some(name) = &request.operation_name {
            inner = inner.operation_name(name);
        }
        inner.set_parsed_query(document);
        let response = self.schema.execute(inner).await;
        let slot = std::mem::take(&mut *slot.0.lock().expect("no panic under this lock"));
        match slot {
            Seen::Valid(prepared) => Outcome::Data(Arc::new(*prepared)),
            Seen::Introspection => Outcome::Answered(response),
            Seen::Parsed(document) => Outcome::Refused(response.errors, Some(document)),
            Seen::Nothing => Outcome::Refused(response.errors, None),
        }
    }
}

/// How far a request came.
#[derive(Default)]
enum Seen {
    #[default]
    Nothing,
    Parsed(Box<ExecutableDocument>),
    Valid(Box<Prepared>),
    Introspection,
}

#[derive(Clone, Default)]
struct Slot(Arc<Mutex<Seen>>);

/// Takes the document out of async-graphql after validation, before execution.
pub struct Intercept;

impl ExtensionFactory for Intercept {
    fn create(&self) -> Arc<dyn Extension> {
        Arc::new(Intercept)
    }
}

#[async_graphql::async_trait::async_trait]
impl Extension for Intercept {
    async fn parse_query(
        &self,
        ctx: &ExtensionContext<'_>,
        query: &str,
        variables: &Variables,
        next: NextParseQuery<'_>,
    ) -> ServerResult<ExecutableDocument> {
        let document = next.run(ctx, query, variables).await?;
        let slot = ctx.data_unchecked::<Slot>();
        *slot.0.lock().expect("no panic under this lock") = Seen::Parsed(Box::new(document.clone()));
        Ok(document)
    }

    async fn execute(
        &self,
        ctx: &ExtensionContext<'_>,
        operation_name: Option<&str>,
        next: NextExecute<'_>,
    ) -> Response {
        let slot = ctx.data_unchecked::<Slot>();
        let seen = std::mem::take(&mut *slot.0.lock().expect("no panic under this lock"));
        let prepared = match seen {
            Seen::Parsed(document) => pick(*document, operation_name),
            _ => None,
        };
        let Some(prepared) = prepared else { return next.run(ctx, operation_name).await };
        if introspects(&prepared.operation.selection_set.node, &prepared.fragments) {
            *slot.0.lock().expect("no panic under this lock") = Seen::Introspection;
            return next.run(ctx, operation_name).await;
        }
        *slot.0.lock().expect("no panic under this lock") = Seen::Valid(Box::new(prepared));
        Response::default()
    }
}

fn pick(document: ExecutableDocument, name: Option<&str>) -> Option<Prepared> {
    let operation = match document.operations {
        DocumentOperations::Single(operation) => operation,
        DocumentOperations::Multiple(mut operations) => match name {
            Some(name) => operations.remove(name)?,
            None => operations.into_values().next()?,
        },
    };
    Some(Prepared { operation: operation.node, fragments: document.fragments })
}

fn introspects(set: &SelectionSet, fragments: &HashMap<Name, Positioned<FragmentDefinition>>) -> bool {
    set.items.iter().any(|item| match &item.node {
        Selection::Field(field) => matches!(field.node.name.node.as_str(), "__schema" | "__type"),
        Selection::InlineFragment(fragment) => introspects(&fragment.node.selection_set.node, fragments),
        // Validation has refused cycles of fragments.
        Selection::FragmentSpread(spread) => fragments
            .get(&spread.node.fragment_name.node)
            .is_some_and(|fragment| introspects(&fragment.node.selection_set.node, fragments)),
    })
}
