//! Queries and mutations: root field by root field, each one call of the API
//! service and one pass of encoding.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_model::kinds::{Kind, Scope};

use super::arguments::{Arguments, Variables};
use super::controllers;
use super::encode::{self, Members, NodePlan, Shown, project, write_optional, write_text, write_version};
use super::explain::explain;
use super::prepare::{Outcome, Prepared, Request};
use super::reply::{Reply, ReplyBuilder, refused, refused_with, validation_error};
use super::selection::{Compiler, RootCall, Selection, What};
use super::types::{Operation, Root, RootField};
use super::{Graphql, State};
use crate::api::error::{ApiError, Code};
use crate::api::kind_ref::KindRef;
use crate::api::{Api, Fence, FinalizersWrite, Item, ListPage, ListQuery, StatusWrite, SyncOutcome};
use crate::identity::Session;
use crate::metrics::{CODE_OK, Metrics};

/// Who asks, and of what.
#[derive(Clone, Copy)]
pub struct Caller<'a> {
    pub api: &'a Api,
    pub session: &'a Session,
    pub metrics: &'a Metrics,
}

/// A validated operation with its variables.
pub enum Checked {
    Query(Ready),
    Subscription(Ready),
    Done(Reply),
}

pub struct Ready {
    pub(super) state: Arc<State>,
    pub(super) prepared: Arc<Prepared>,
    pub(super) variables: Variables,
}

impl Ready {
    pub(super) fn compiler(&self) -> Compiler<'_> {
        Compiler { types: &self.state.types, prepared: &self.prepared, variables: &self.variables }
    }
}

impl Graphql {
    pub async fn check(&self, request: Request) -> Checked {
        let state = self.state.load_full();
        match state.preparer.prepare(&request).await {
            Outcome::Data(prepared) => match Variables::new(&prepared.operation, request.variables) {
                Err(error) => Checked::Done(refused_with(&error)),
                Ok(variables) => {
                    let root = prepared.root();
                    let ready = Ready { state, prepared, variables };
                    if root == Root::Subscription { Checked::Subscription(ready) } else { Checked::Query(ready) }
                }
            },
            Outcome::Answered(response) => Checked::Done(introspected(&response)),
            Outcome::Refused(errors, document) => Checked::Done(match explain(document.as_deref(), &request) {
                Some(error) => refused_with(&error),
                None => refuse_all(&errors),
            }),
        }
    }

    pub async fn execute(&self, ready: &Ready, caller: Caller<'_>) -> Reply {
        let compiler = ready.compiler();
        let root = ready.prepared.root();
        let root_type = if root == Root::Query { "Query" } else { "Mutation" };
        let mut reply = ReplyBuilder::default();
        for call in compiler.root_calls(root_type) {
            let name = call.field.node.name.node.as_str();
            if name == "__typename" {
                reply.field(call.response_key, format!("\"{root_type}\"").as_bytes());
                continue;
            }
            let Some(field) = ready.state.types.root(root, name) else { continue };
            let timer = caller.metrics.start_request(field.operation.as_str());
            let budget = self.limits.answer_bytes_max.saturating_sub(reply.len());
            let result = run(&compiler, &call, field, caller, budget).await.and_then(|value| within(budget, value));
            timer.finish(result.as_ref().map_or_else(|error| error.code.as_str(), |_| CODE_OK));
            match result {
                Ok(value) => reply.field(call.response_key, &value),
                Err(error) => reply.failed_field(call.response_key, !field.result.required, call.field.pos, &error),
            }
        }
        reply.finish()
    }
}

fn introspected(response: &async_graphql::Response) -> Reply {
    let body = serde_json::to_vec(response).expect("a response serializes");
    Reply { body, code: if response.errors.is_empty() { "OK" } else { Code::BadRequest.as_str() }, executed: true }
}

fn refuse_all(errors: &[async_graphql::ServerError]) -> Reply {
    let errors: Vec<_> = errors.iter().map(validation_error).collect();
    let code = errors.first().map_or(Code::BadRequest, |(_, code)| *code);
    refused(errors.into_iter().map(|(error, _)| error).collect(), code)
}

fn within(budget: usize, value: Vec<u8>) -> Result<Vec<u8>, ApiError> {
    if value.len() <= budget { Ok(value) } else { Err(answer_too_large()) }
}

fn answer_too_large() -> ApiError {
    let message =
        "the answer would be larger than the limit: ask for fewer objects with `first`, or select fewer fields";
    ApiError::new(Code::TooLarge, message)
}

/// `budget`: bytes that are left of the answer.
async fn run(
    compiler: &Compiler<'_>,
    call: &RootCall<'_>,
    field: &RootField,
    caller: Caller<'_>,
    budget: usize,
) -> Result<Vec<u8>, ApiError> {
    let arguments = Arguments::of(call.field, compiler.variables);
    let selection = compiler.compile_result(call, &field.result);
    match (field.operation, selection) {
        (Operation::Get, Some(selection)) => get(caller, field, arguments, selection),
        (Operation::List, Some(selection)) => list(caller, field, arguments, selection, budget).await,
        (Operation::UpdateStatus, Some(selection)) => update_status(caller, field, arguments.input()?, selection).await,
        (Operation::UpdateFinalizers, Some(selection)) => {
            update_finalizers(caller, field, arguments.input()?, selection).await
        }
        (Operation::Whoami, Some(selection)) => Ok(project_value(&selection, &whoami(caller.session))),
        (Operation::Kinds, Some(selection)) => Ok(project_value(&selection, &kinds(caller.api))),
        (Operation::CreateToken, Some(selection)) => create_token(caller, arguments.input()?, &selection),
        (Operation::SyncRepository, Some(selection)) => sync_repository(caller, arguments, &selection).await,
        (Operation::RevokeToken, _) => revoke_token(caller, arguments.input()?).await,
        (operation, selection) if controllers::is_one(operation) => {
            controllers::run(caller, operation, arguments, selection.as_ref()).await
        }
        (operation, _) => Err(ApiError::bad_request(format!("`{}` is not a {} field", field.name, operation.as_str()))),
    }
}

/// The kind of a typed field, or the one that the arguments name.
pub(super) fn kind_of(api: &Api, field: &RootField, arguments: &mut Arguments) -> Result<KindRef, ApiError> {
    match &field.target {
        Some(target) => api.kind(&target.api_version, &target.kind),
        None => api.kind(&arguments.required_text("apiVersion")?, &arguments.required_text("kind")?),
    }
}

fn get(
    caller: Caller<'_>,
    field: &RootField,
    mut arguments: Arguments,
    selection: Selection,
) -> Result<Vec<u8>, ApiError> {
    let kind = kind_of(caller.api, field, &mut arguments)?;
    let namespace = arguments.text("namespace")?;
    let name = arguments.required_text("name")?;
    match caller.api.get(caller.session, &kind, namespace.as_deref(), &name)? {
        Some(item) => Ok(show(&kind, &item, selection)),
        None => Ok(b"null".to_vec()),
    }
}

fn show(kind: &KindRef, item: &Item, selection: Selection) -> Vec<u8> {
    let mut out = Vec::with_capacity(item.json.len() + 256);
    NodePlan::new(selection).write(shown(kind, item), &mut out);
    out
}

fn shown<'a>(kind: &'a KindRef, item: &'a Item) -> Shown<'a> {
    Shown { kind, key: &item.key, version: item.version, json: &item.json }
}

async fn list(
    caller: Caller<'_>,
    field: &RootField,
    mut arguments: Arguments,
    selection: Selection,
    budget: usize,
) -> Result<Vec<u8>, ApiError> {
    let kind = kind_of(caller.api, field, &mut arguments)?;
    let query = ListQuery {
        namespace: arguments.text("namespace")?,
        label_selector: arguments.text("labelSelector")?,
        field_selector: arguments.text("fieldSelector")?,
        first: arguments.int("first")?,
        after: arguments.text("after")?,
    };
    let page = caller.api.list(caller.session, &kind, query).await?;
    write_page(&kind, &page, &selection, budget)
}

fn write_page(kind: &KindRef, page: &ListPage, selection: &Selection, budget: usize) -> Result<Vec<u8>, ApiError> {
    let bytes: usize = page.items.iter().map(|item| item.json.len() + 64).sum();
    let mut out = Vec::with_capacity(if selection.sub("nodes").is_some() { bytes } else { 256 });
    let mut members = Members::open(&mut out);
    for selected in &selection.fields {
        let out = members.key(&selected.key);
        match &selected.what {
            What::TypeName => write_text(&selection.type_name, out),
            What::Object(name, sub) if &**name == "nodes" => write_nodes(kind, &page.items, sub.clone(), out, budget)?,
            What::Object(_, sub) => {
                let info = json!({"hasNextPage": page.end_cursor.is_some(), "endCursor": page.end_cursor});
                project(sub, &info.to_string(), out);
            }
            What::Leaf(name) if &**name == "resourceVersion" => write_version(page.version, out),
            What::Leaf(_) => match page.remaining {
                Some(count) => out.extend_from_slice(count.to_string().as_bytes()),
                None => write_optional(None, out),
            },
        }
    }
    members.close();
    Ok(out)
}

fn write_nodes(
    kind: &KindRef,
    items: &[Item],
    selection: Selection,
    out: &mut Vec<u8>,
    budget: usize,
) -> Result<(), ApiError> {
    let plan = NodePlan::new(selection);
    out.push(b'[');
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        plan.write(shown(kind, item), out);
        if out.len() > budget {
            return Err(answer_too_large());
        }
    }
    out.push(b']');
    Ok(())
}

/// What every write of a controller names: one object at one version.
struct WriteTarget {
    kind: KindRef,
    namespace: Option<String>,
    name: String,
    resource_version: Option<String>,
    fence: Option<Fence>,
}

impl WriteTarget {
    fn take(api: &Api, field: &RootField, input: &mut Arguments) -> Result<Self, ApiError> {
        Ok(Self {
            kind: kind_of(api, field, input)?,
            namespace: input.text("namespace")?,
            name: input.required_text("name")?,
            resource_version: input.text("resourceVersion")?,
            fence: controllers::fence(input)?,
        })
    }
}

async fn update_status(
    caller: Caller<'_>,
    field: &RootField,
    mut input: Arguments,
    selection: Selection,
) -> Result<Vec<u8>, ApiError> {
    let WriteTarget { kind, namespace, name, resource_version, fence } =
        WriteTarget::take(caller.api, field, &mut input)?;
    let write = StatusWrite { namespace, name, resource_version, patch: input.json("status").unwrap_or_default() };
    input.finish()?;
    let item = caller.api.update_status_fenced(caller.session, &kind, write, fence.as_ref()).await?;
    Ok(show(&kind, &item, selection))
}

async fn update_finalizers(
    caller: Caller<'_>,
    field: &RootField,
    mut input: Arguments,
    selection: Selection,
) -> Result<Vec<u8>, ApiError> {
    let WriteTarget { kind, namespace, name, resource_version, fence } =
        WriteTarget::take(caller.api, field, &mut input)?;
    let (add, remove) = (input.texts("add")?, input.texts("remove")?);
    let write = FinalizersWrite { namespace, name, resource_version, add, remove };
    input.finish()?;
    let item = caller.api.update_finalizers_fenced(caller.session, &kind, write, fence.as_ref()).await?;
    Ok(item.map_or_else(|| b"null".to_vec(), |item| show(&kind, &item, selection)))
}

fn create_token(caller: Caller<'_>, mut input: Arguments, selection: &Selection) -> Result<Vec<u8>, ApiError> {
    let ttl = input.count("expiresInSeconds")?.map(Duration::from_secs);
    let (namespace, account) = (input.required_text("namespace")?, input.required_text("serviceAccount")?);
    input.finish()?;
    let token = caller.api.create_token(caller.session, &namespace, &account, ttl)?;
    let value = json!({"token": token.secret, "id": token.id, "expiresAt": rfc3339(token.expires_at)});
    Ok(project_value(selection, &value))
}

async fn revoke_token(caller: Caller<'_>, mut input: Arguments) -> Result<Vec<u8>, ApiError> {
    let (namespace, account) = (input.required_text("namespace")?, input.required_text("serviceAccount")?);
    caller.api.revoke_token(caller.session, &namespace, &account, &input.required_text("tokenId")?).await?;
    Ok(b"true".to_vec())
}

async fn sync_repository(
    caller: Caller<'_>,
    mut arguments: Arguments,
    selection: &Selection,
) -> Result<Vec<u8>, ApiError> {
    let (namespace, name) = (arguments.required_text("namespace")?, arguments.required_text("name")?);
    let outcome = caller.api.sync_repository(caller.session, &namespace, &name).await?;
    Ok(project_value(selection, &sync_value(&outcome)))
}

fn sync_value(outcome: &SyncOutcome) -> Value {
    let (reason, message) = (outcome.reason(), outcome.message());
    let mut value = json!({
        "inForce": false, "reason": reason, "message": message, "problems": [],
        "created": 0, "updated": 0, "deleted": 0,
    });
    match outcome {
        SyncOutcome::InForce(synced) => {
            value["inForce"] = true.into();
            value["commit"] = json!(synced.commit);
            value["resourceVersion"] = json!(synced.version.to_string());
            let counts =
                synced.applied.map_or((0, 0, 0), |applied| (applied.created, applied.updated, applied.deleted));
            (value["created"], value["updated"], value["deleted"]) =
                (counts.0.into(), counts.1.into(), counts.2.into());
            (value["objects"], value["files"]) = (json!(synced.objects), json!(synced.files));
        }
        SyncOutcome::Refused { commit, problems } => {
            value["commit"] = json!(commit);
            value["problems"] = json!(problems);
        }
        SyncOutcome::Failed { .. } => {}
    }
    value
}

pub(super) fn rfc3339(at: chrono::DateTime<chrono::Utc>) -> String {
    at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
}

fn whoami(session: &Session) -> Value {
    let identity = session.identity();
    json!({
        "user": &*identity.user,
        "groups": identity.groups.iter().map(|group| &**group).collect::<Vec<_>>(),
        "tokenId": identity.token_id.as_deref(),
        "expiresAt": identity.expires_at.map(rfc3339),
    })
}

fn kinds(api: &Api) -> Value {
    api.kinds().order.iter().flat_map(|kind| kind_versions(kind)).collect()
}

fn kind_versions(kind: &Kind) -> impl Iterator<Item = Value> {
    kind.served_versions().map(|version| {
        let columns = version.columns.iter();
        json!({
            "apiVersion": kind.api_version(version),
            "kind": kind.kind,
            "group": &*kind.resource.group,
            "plural": &*kind.resource.plural,
            "singular": kind.singular,
            "shortNames": kind.short_names,
            "namespaced": kind.scope == Scope::Namespaced,
            "hasStatus": version.has_status,
            "columns": columns.map(|column| json!({"name": column.name, "type": column.column_type, "jsonPath": column.json_path, "priority": column.priority})).collect::<Vec<_>>(),
        })
    })
}

pub(super) fn project_value(selection: &Selection, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    encode::project(selection, &value.to_string(), &mut out);
    out
}
