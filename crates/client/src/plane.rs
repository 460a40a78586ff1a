//! The API over the network as the controllers' plane.

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tidegate_model::{ObjectKey, ResourceVersion};
use tidegate_runtime::{
    ApiError, Fault, Fence, Item, Kind, Lease, LeaseRequest, ListPage, Plane, Precondition, Source, StateChange,
    StateRow, WatchEvent, WatchStream,
};

use crate::{Client, ClientError, End, EventType, Refusal, Socket};

/// Objects of one page: a page ends at 32 MiB by the server's default.
const PAGE_OBJECTS: u64 = 5_000;

const NODE: &str = "{ namespace name resourceVersion object }";

pub struct RemotePlane(Client);

impl RemotePlane {
    pub fn new(client: Client) -> Self {
        Self(client)
    }

    /// The `data` of one operation.
    pub async fn ask<T: DeserializeOwned>(&self, query: &str, variables: Value) -> Result<T, ApiError> {
        self.0.query(query, variables).await.map_err(failed)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Node {
    namespace: Option<String>,
    name: String,
    resource_version: ResourceVersionText,
    object: Box<RawValue>,
}

#[derive(Deserialize)]
#[serde(try_from = "String")]
struct ResourceVersionText(ResourceVersion);

impl TryFrom<String> for ResourceVersionText {
    type Error = tidegate_model::InvalidVersion;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map(Self)
    }
}

impl Node {
    fn item(self, kind: &Kind) -> Item {
        Item {
            key: kind.key(self.namespace.as_deref(), &self.name),
            version: self.resource_version.0,
            json: Bytes::from(self.object.get().to_owned()),
        }
    }
}

#[async_trait]
impl Source for RemotePlane {
    async fn list(&self, kind: &Kind, after: Option<&str>) -> Result<ListPage, ApiError> {
        #[derive(Deserialize)]
        struct Data {
            page: Page,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Page {
            resource_version: ResourceVersionText,
            nodes: Vec<Node>,
            page_info: PageInfo,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct PageInfo {
            has_next_page: bool,
            end_cursor: Option<String>,
        }
        let query = format!(
            "query($apiVersion: String!, $kind: String!, $first: Int, $after: String) {{ \
             page: resources(apiVersion: $apiVersion, kind: $kind, first: $first, after: $after) {{ \
             resourceVersion nodes {NODE} pageInfo {{ hasNextPage endCursor }} }} }}"
        );
        let mut variables = named(kind);
        variables["first"] = PAGE_OBJECTS.into();
        variables["after"] = after.into();
        let Page { resource_version, nodes, page_info } = self.ask::<Data>(&query, variables).await?.page;
        Ok(ListPage {
            version: resource_version.0,
            items: nodes.into_iter().map(|node| node.item(kind)).collect(),
            next: page_info.end_cursor.filter(|_| page_info.has_next_page),
        })
    }

    async fn watch(&self, kind: &Kind, after: ResourceVersion) -> Result<Box<dyn WatchStream>, ApiError> {
        let variables = Map::from_iter([
            ("apiVersion".to_owned(), json!(&*kind.api_version)),
            ("kind".to_owned(), json!(&*kind.kind)),
            ("resourceVersion".to_owned(), json!(after.to_string())),
        ]);
        let opened = Socket::open(&self.0, variables).await.map_err(failed)?;
        Ok(Box::new(Stream { socket: opened.map_err(ended)?, kind: kind.clone() }))
    }
}

struct Stream {
    socket: Socket,
    kind: Kind,
}

#[async_trait]
impl WatchStream for Stream {
    async fn next(&mut self) -> Result<Vec<WatchEvent>, ApiError> {
        let event = self.socket.next().await.map_err(ended)?;
        let nonsense = |what: &str| ApiError::new(Fault::Unavailable, format!("the server sent an event {what}"));
        let version = event.resource_version.parse().map_err(|_| nonsense("without a version"))?;
        if event.event_type == EventType::Bookmark {
            return Ok(vec![WatchEvent::Bookmark(version)]);
        }
        let (Some(name), Some(object)) = (event.name, event.object) else { return Err(nonsense("without an object")) };
        let json = Bytes::from(object.to_string());
        let item = Item { key: self.kind.key(event.namespace.as_deref(), &name), version, json };
        Ok(vec![match event.event_type {
            EventType::Added => WatchEvent::Added(item),
            EventType::Deleted => WatchEvent::Deleted(item),
            EventType::Modified | EventType::Bookmark => WatchEvent::Modified(item),
        }])
    }
}

#[async_trait]
impl Plane for RemotePlane {
    async fn get(&self, kind: &Kind, key: &ObjectKey) -> Result<Option<Item>, ApiError> {
        let query = format!(
            "query($apiVersion: String!, $kind: String!, $namespace: String, $name: String!) {{ \
             node: resource(apiVersion: $apiVersion, kind: $kind, namespace: $namespace, name: $name) {NODE} }}"
        );
        let mut variables = named(kind);
        variables["namespace"] = key.namespace.as_deref().into();
        variables["name"] = json!(&*key.name);
        let found = self.ask::<OneNode>(&query, variables).await?.node;
        Ok(found.map(|node| node.item(kind)))
    }

    async fn patch_status(&self, kind: &Kind, at: &Precondition, patch: Value) -> Result<Item, ApiError> {
        let query = format!(
            "mutation($input: UpdateResourceStatusInput!) {{ node: updateResourceStatus(input: $input) {NODE} }}"
        );
        let mut input = write(kind, at);
        input["status"] = patch;
        let written = self.ask::<OneNode>(&query, json!({"input": input})).await?.node;
        let nothing = || ApiError::new(Fault::Unavailable, "the server answered a status write with nothing");
        Ok(written.ok_or_else(nothing)?.item(kind))
    }

    async fn patch_finalizers(
        &self,
        kind: &Kind,
        at: &Precondition,
        add: &[String],
        remove: &[String],
    ) -> Result<Option<Item>, ApiError> {
        let query = format!(
            "mutation($input: UpdateResourceFinalizersInput!) {{ node: updateResourceFinalizers(input: $input) {NODE} }}"
        );
        let mut input = write(kind, at);
        (input["add"], input["remove"]) = (json!(add), json!(remove));
        let written = self.ask::<OneNode>(&query, json!({"input": input})).await?.node;
        Ok(written.map(|node| node.item(kind)))
    }

    async fn lease(&self, request: &LeaseRequest) -> Result<Lease, ApiError> {
        #[derive(Deserialize)]
        struct Data {
            term: Term,
        }
        #[derive(Deserialize)]
        struct Term {
            holder: String,
            transitions: i64,
        }
        let (field, input_type, input) = match request {
            LeaseRequest::Acquire { namespace, name, holder, duration } => (
                "acquireLease",
                "AcquireLeaseInput",
                json!({"namespace": &**namespace, "name": &**name, "holder": &**holder, "durationSeconds": duration.as_secs()}),
            ),
            LeaseRequest::Renew { fence, duration } => (
                "renewLease",
                "RenewLeaseInput",
                json!({"fence": fence_input(fence), "durationSeconds": duration.as_secs()}),
            ),
            LeaseRequest::Release { fence } => {
                ("releaseLease", "ReleaseLeaseInput", json!({"fence": fence_input(fence)}))
            }
        };
        let query =
            format!("mutation($input: {input_type}!) {{ term: {field}(input: $input) {{ holder transitions }} }}");
        let Term { holder, transitions } = self.ask::<Data>(&query, json!({"input": input})).await?.term;
        Ok(Lease { holder: holder.into(), transitions })
    }

    async fn state_read(&self, controller: &str, prefix: &str, after: Option<&str>) -> Result<Vec<StateRow>, ApiError> {
        let query = "query($controller: String!, $prefix: String!, $after: String) { \
            rows: controllerState(controller: $controller, prefix: $prefix, after: $after) { name value } }";
        let variables = json!({"controller": controller, "prefix": prefix, "after": after});
        self.ask::<Rows>(query, variables).await?.decode()
    }

    async fn state_get(&self, controller: &str, names: &[String]) -> Result<Vec<StateRow>, ApiError> {
        let query = "query($controller: String!, $names: [String!]!) { \
            rows: controllerStateRows(controller: $controller, names: $names) { name value } }";
        self.ask::<Rows>(query, json!({"controller": controller, "names": names})).await?.decode()
    }

    async fn state_write(
        &self,
        controller: &str,
        fence: Option<&Fence>,
        changes: Vec<StateChange>,
    ) -> Result<(), ApiError> {
        let changes: Vec<Value> = changes
            .into_iter()
            .map(|change| json!({"name": change.name, "value": change.value.map(|value| BASE64.encode(value))}))
            .collect();
        let query = "mutation($input: UpdateControllerStateInput!) { updateControllerState(input: $input) }";
        let input = json!({"controller": controller, "fence": fence.map(fence_input), "changes": changes});
        self.ask::<Value>(query, json!({"input": input})).await.map(drop)
    }
}

#[derive(Deserialize)]
struct Rows {
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    name: String,
    value: String,
}

impl Rows {
    fn decode(self) -> Result<Vec<StateRow>, ApiError> {
        let decode = |row: Row| {
            let nonsense = |_| ApiError::new(Fault::Unavailable, "the server sent a row that is not base64");
            Ok(StateRow { name: row.name, value: BASE64.decode(row.value).map_err(nonsense)?.into() })
        };
        self.rows.into_iter().map(decode).collect()
    }
}

#[derive(Deserialize)]
struct OneNode {
    node: Option<Node>,
}

fn named(kind: &Kind) -> Value {
    json!({"apiVersion": &*kind.api_version, "kind": &*kind.kind})
}

fn write(kind: &Kind, at: &Precondition) -> Value {
    let Precondition { key, version, fence } = at;
    let mut input = named(kind);
    input["namespace"] = key.namespace.as_deref().into();
    input["name"] = json!(&*key.name);
    input["resourceVersion"] = version.to_string().into();
    input["fence"] = json!(fence.as_ref().map(fence_input));
    input
}

fn fence_input(fence: &Fence) -> Value {
    json!({"namespace": &*fence.namespace, "name": &*fence.name, "holder": &*fence.holder, "transitions": fence.transitions})
}

fn failed(error: ClientError) -> ApiError {
    let fault = match &error {
        ClientError::Refused(refusal) => return refused(refusal),
        ClientError::Token(_) => Fault::Unauthenticated,
        _ => Fault::Unavailable,
    };
    let more = match &error {
        ClientError::Unreachable { remedy, .. } => format!("; {remedy}"),
        error => std::error::Error::source(error).map(|source| format!(": {source}")).unwrap_or_default(),
    };
    ApiError::new(fault, format!("{error}{more}"))
}

fn ended(end: End) -> ApiError {
    match end {
        End::Lost(reason) => ApiError::new(Fault::Unavailable, reason),
        End::Refused(refusal) => refused(&refusal),
    }
}

fn refused(refusal: &Refusal) -> ApiError {
    let fault = match refusal.code_text() {
        "CONFLICT" => Fault::Conflict,
        "NOT_FOUND" => Fault::NotFound,
        "KIND_NOT_FOUND" => Fault::KindNotFound,
        "FORBIDDEN" => Fault::Forbidden,
        "UNAUTHENTICATED" => Fault::Unauthenticated,
        "LEASE_LOST" => Fault::LeaseLost,
        "WATCH_EXPIRED" | "LIST_EXPIRED" | "FUTURE_RESOURCE_VERSION" => Fault::Expired,
        "TOO_LARGE" => Fault::TooLarge,
        "BAD_REQUEST" | "INVALID" | "PRECONDITION_REQUIRED" | "SPEC_IS_GIT_OWNED" | "INVALID_RESOURCE_VERSION" => {
            Fault::Invalid
        }
        _ => Fault::Unavailable,
    };
    ApiError::new(fault, refusal.message.clone())
}
