//! Controllers over GraphQL: what they need (leases, fences, state), and what
//! their operators see and do.

use std::time::Duration;

use async_graphql::dynamic::{InputValue, TypeRef};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use chrono::DateTime;
use serde_json::{Value, json};

use super::arguments::Arguments;
use super::execute::{Caller, project_value, rfc3339};
use super::fixed::{object, scalar, text};
use super::schema::{optional, required};
use super::selection::Selection;
use super::types::{FieldDef, Operation, RootField, TypeDef, Types};
use crate::api::error::ApiError;
use crate::api::{Failed, Fence, LeaseState, LeaseWrite, QuarantinedKey, SeenController, StateEntry};

/// A term that is not renewed ends after this time.
const LEASE_SECONDS: u64 = 15;

pub fn is_one(operation: Operation) -> bool {
    ROOTS.iter().any(|(_, known, _)| *known == operation)
}

pub async fn run(
    caller: Caller<'_>,
    operation: Operation,
    mut arguments: Arguments,
    selection: Option<&Selection>,
) -> Result<Vec<u8>, ApiError> {
    let Caller { api, session, .. } = caller;
    let value = match operation {
        Operation::Controllers => api.controllers(session)?.iter().map(controller).collect(),
        Operation::Quarantine => {
            let which = failed(&mut arguments)?;
            let held = api.quarantine(session, arguments.text("controller")?.as_deref(), which)?;
            held.iter().map(quarantined).collect()
        }
        Operation::ControllerState => {
            let (controller, prefix) = (arguments.required_text("controller")?, arguments.required_text("prefix")?);
            let rows = api.controller_state(session, &controller, &prefix, arguments.text("after")?.as_deref())?;
            rows.iter().map(row).collect()
        }
        Operation::ControllerStateRows => {
            let (controller, names) = (arguments.required_text("controller")?, arguments.texts("names")?);
            api.controller_rows(session, &controller, names)?.iter().map(row).collect()
        }
        Operation::AcquireLease | Operation::RenewLease | Operation::ReleaseLease => {
            lease(&api.lease(session, lease_write(operation, arguments.input()?)?).await?)
        }
        Operation::UpdateControllerState => {
            let mut input = arguments.input()?;
            let (controller, fence) = (input.required_text("controller")?, fence(&mut input)?);
            let changes = input.objects("changes")?.into_iter().map(change).collect::<Result<_, _>>()?;
            input.finish()?;
            api.update_controller_state(session, &controller, fence.as_ref(), changes).await?;
            return Ok(b"true".to_vec());
        }
        _ => {
            let mut input = arguments.input()?;
            let (controller, namespace) = (input.required_text("controller")?, input.text("namespace")?);
            let (name, which) = (input.text("name")?, failed(&mut input)?);
            input.finish()?;
            let key = name.as_deref().map(|name| (namespace.as_deref(), name));
            return Ok(api.release_quarantine(session, &controller, key, which).await?.to_string().into_bytes());
        }
    };
    Ok(selection.map_or_else(|| b"null".to_vec(), |selection| project_value(selection, &value)))
}

fn failed(input: &mut Arguments) -> Result<Failed, ApiError> {
    Ok(if input.flag("retrying", false)? { Failed::OrRetrying } else { Failed::Quarantined })
}

/// The `fence` of an input, if it has one.
pub fn fence(input: &mut Arguments) -> Result<Option<Fence>, ApiError> {
    let Some(mut fence) = input.object("fence")? else { return Ok(None) };
    let read = Fence {
        namespace: fence.required_text("namespace")?,
        name: fence.required_text("name")?,
        holder: fence.required_text("holder")?,
        transitions: fence.count("transitions")?.and_then(|count| i64::try_from(count).ok()).unwrap_or(0),
    };
    fence.finish()?;
    Ok(Some(read))
}

fn lease_write(operation: Operation, mut input: Arguments) -> Result<LeaseWrite, ApiError> {
    let write = match operation {
        Operation::AcquireLease => LeaseWrite::Acquire {
            namespace: input.required_text("namespace")?,
            name: input.required_text("name")?,
            holder: input.required_text("holder")?,
            duration: duration(&mut input)?,
        },
        Operation::RenewLease => LeaseWrite::Renew { fence: held(&mut input)?, duration: duration(&mut input)? },
        _ => LeaseWrite::Release { fence: held(&mut input)? },
    };
    input.finish()?;
    Ok(write)
}

fn duration(input: &mut Arguments) -> Result<Duration, ApiError> {
    Ok(Duration::from_secs(input.count("durationSeconds")?.unwrap_or(LEASE_SECONDS)))
}

fn held(input: &mut Arguments) -> Result<Fence, ApiError> {
    fence(input)?.ok_or_else(|| ApiError::bad_request("`fence` is required"))
}

fn change(mut change: Arguments) -> Result<(String, Option<Bytes>), ApiError> {
    let name = change.required_text("name")?;
    let value = change.text("value")?.map(|text| BASE64.decode(text)).transpose();
    let value = value.map_err(|error| ApiError::bad_request(format!("`value` of `{name}` is not base64: {error}")))?;
    change.finish()?;
    Ok((name, value.map(Bytes::from)))
}

fn controller(seen: &SeenController) -> Value {
    let SeenController { report, behind_versions, behind_since_ms, leads, stopped_message } = seen;
    json!({
        "name": report.controller,
        "apiVersion": report.api_version,
        "kind": report.kind,
        "leader": report.leader,
        "leading": leads,
        "stopped": report.stopped,
        "stoppedMessage": stopped_message,
        "queueDepth": report.queue_depth,
        "oldestWaitingTime": report.oldest_waiting_ms.and_then(time),
        "inFlight": report.in_flight,
        "delayed": report.delayed,
        "retrying": report.retrying,
        "quarantined": report.quarantined,
        "reconciles": report.reconciles,
        "failures": report.failures,
        "panics": report.panics,
        "checkpoint": report.checkpoint,
        "received": report.received,
        "behindVersions": behind_versions,
        "behindSinceTime": behind_since_ms.and_then(time),
    })
}

fn quarantined(held: &QuarantinedKey) -> Value {
    json!({
        "controller": held.controller,
        "namespace": held.namespace,
        "name": held.name,
        "attempts": held.row.attempts,
        "generation": held.row.generation,
        "error": held.row.error,
        "since": time(held.row.since_ms),
        "dueTime": held.row.due_ms.and_then(time),
    })
}

fn row(row: &StateEntry) -> Value {
    json!({"name": row.name, "value": BASE64.encode(&row.value)})
}

fn lease(state: &LeaseState) -> Value {
    json!({"holder": state.holder, "transitions": state.transitions})
}

fn time(ms: u64) -> Option<String> {
    DateTime::from_timestamp_millis(i64::try_from(ms).ok()?).map(rfc3339)
}

const ROOTS: [(&str, Operation, &str); 9] = [
    (
        "controllers",
        Operation::Controllers,
        "What each controller last said of itself, and the hooks that never started; needs `list` on `controllerstates`.",
    ),
    (
        "quarantine",
        Operation::Quarantine,
        "The keys that are not tried any more, 10,000 at most; needs `get` on `controllerstates/quarantine`.",
    ),
    (
        "controllerState",
        Operation::ControllerState,
        "Rows of a controller's own durable state, in order; needs `get` on `controllerstates`.",
    ),
    (
        "controllerStateRows",
        Operation::ControllerStateRows,
        "Those rows of these names, 500 at most, that a controller's own durable state has; needs `get` on `controllerstates`.",
    ),
    (
        "acquireLease",
        Operation::AcquireLease,
        "Begins a new term of a lease that is free, has ended, or is the holder's own, and says whose it is; needs `patch` on `leases`.",
    ),
    ("renewLease", Operation::RenewLease, "Keeps a term from ending; LEASE_LOST if it has ended."),
    ("releaseLease", Operation::ReleaseLease, "Gives a lease back before its end."),
    (
        "updateControllerState",
        Operation::UpdateControllerState,
        "Changes a controller's own durable state, all or nothing; needs `patch` on `controllerstates`.",
    ),
    (
        "releaseQuarantine",
        Operation::ReleaseQuarantine,
        "Has a controller try a quarantined key again, or all of them, and says how many; needs `patch` on `controllerstates/quarantine`.",
    ),
];

pub fn add(types: &mut Types) {
    types.add(controller_type());
    types.add(quarantined_type());
    types.add(TypeDef::new(
        "ControllerStateRow",
        [("name", text("name").required()), ("value", text("value").required().describe("Base64."))],
    ));
    types.add(TypeDef::new(
        "LeaseTerm",
        [
            ("holder", text("holder").required().describe("Empty if it is nobody's.")),
            ("transitions", scalar("transitions", "Int64").required().describe("The fencing token.")),
        ],
    ));
    for (name, operation, description) in ROOTS {
        let (name, description) = (name.into(), description.into());
        types.add_root(RootField { name, operation, target: None, result: result(operation), description });
    }
}

fn result(operation: Operation) -> FieldDef {
    match operation {
        Operation::Controllers => object("", "Controller").required().list(),
        Operation::Quarantine => object("", "QuarantinedKey").required().list(),
        Operation::ControllerState | Operation::ControllerStateRows => {
            object("", "ControllerStateRow").required().list()
        }
        Operation::UpdateControllerState => scalar("", "Boolean").required(),
        Operation::ReleaseQuarantine => scalar("", "Int64").required(),
        _ => object("", "LeaseTerm").required(),
    }
}

fn controller_type() -> TypeDef {
    let count = |name: &'static str| scalar(name, "Int64").required();
    TypeDef::new(
        "Controller",
        [
            ("name", text("name").required()),
            ("apiVersion", text("apiVersion").required()),
            ("kind", text("kind").required()),
            ("leader", text("leader").required().describe("Who ran it when it last said so; empty if it never ran.")),
            ("leading", scalar("leading", "Boolean").required().describe("Whether the leader holds its lease now.")),
            (
                "stopped",
                text("stopped").describe("Why it does not run although a leader could run it; null if it runs."),
            ),
            (
                "stoppedMessage",
                text("stoppedMessage").describe(
                    "What is wrong and what to do, of a hook that does not run; needs `list` on `reconcilehooks`, else null.",
                ),
            ),
            ("queueDepth", count("queueDepth").describe("Keys that wait for a worker.")),
            ("oldestWaitingTime", text("oldestWaitingTime").describe("Since when the longest of them waits.")),
            ("inFlight", count("inFlight")),
            ("delayed", count("delayed").describe("Keys in a backoff, or waiting for their time.")),
            ("retrying", count("retrying").describe("Those of them whose last attempt failed.")),
            ("quarantined", count("quarantined")),
            ("reconciles", count("reconciles").describe("Since the manager took the lease.")),
            ("failures", count("failures")),
            ("panics", count("panics")),
            ("checkpoint", text("checkpoint").describe("Everything up to this version is reconciled or recorded.")),
            ("received", text("received")),
            (
                "behindVersions",
                scalar("behindVersions", "Int64")
                    .describe("0 if nothing waits; otherwise of the whole store, other kinds included."),
            ),
            (
                "behindSinceTime",
                text("behindSinceTime").describe("Null if nothing waits to be reconciled, or to be seen."),
            ),
        ],
    )
}

fn quarantined_type() -> TypeDef {
    TypeDef::new(
        "QuarantinedKey",
        [
            ("controller", text("controller").required()),
            ("namespace", text("namespace")),
            ("name", text("name").required()),
            ("attempts", scalar("attempts", "Int64").required()),
            ("generation", scalar("generation", "Int64").required().describe("The last one that was tried.")),
            ("error", text("error").required()),
            ("since", text("since").required()),
            ("dueTime", text("dueTime").describe("When it is tried again; null in quarantine.")),
        ],
    )
}

pub fn arguments(operation: Operation) -> Vec<InputValue> {
    match operation {
        Operation::Quarantine => vec![optional("controller", "String"), retrying()],
        Operation::ControllerState => vec![
            required("controller", "String"),
            required("prefix", "String").description("`checkpoint`, `known/`, `unfinished/` …"),
            optional("after", "String").description("The name of the last row that you have."),
        ],
        Operation::ControllerStateRows => {
            vec![required("controller", "String"), InputValue::new("names", TypeRef::named_nn_list_nn("String"))]
        }
        Operation::AcquireLease => vec![required("input", "AcquireLeaseInput")],
        Operation::RenewLease => vec![required("input", "RenewLeaseInput")],
        Operation::ReleaseLease => vec![required("input", "ReleaseLeaseInput")],
        Operation::UpdateControllerState => vec![required("input", "UpdateControllerStateInput")],
        Operation::ReleaseQuarantine => vec![required("input", "ReleaseQuarantineInput")],
        _ => Vec::new(),
    }
}

fn retrying() -> InputValue {
    optional("retrying", "Boolean")
        .description("Also keys that failed and wait for their next attempt. Default: false.")
}

pub fn inputs() -> Vec<(&'static str, Vec<InputValue>)> {
    let duration = || optional("durationSeconds", "Int64").description("Default: 15.");
    let changes = TypeRef::named_nn_list_nn("ControllerStateChange");
    vec![
        (
            "FenceInput",
            vec![
                required("namespace", "String"),
                required("name", "String"),
                required("holder", "String"),
                required("transitions", "Int64"),
            ],
        ),
        (
            "AcquireLeaseInput",
            vec![
                required("namespace", "String"),
                required("name", "String"),
                required("holder", "String").description("No two living holders may share it."),
                duration(),
            ],
        ),
        ("RenewLeaseInput", vec![required("fence", "FenceInput"), duration()]),
        ("ReleaseLeaseInput", vec![required("fence", "FenceInput")]),
        (
            "ControllerStateChange",
            vec![required("name", "String"), optional("value", "String").description("Base64; null removes the row.")],
        ),
        (
            "UpdateControllerStateInput",
            vec![
                required("controller", "String"),
                optional("fence", "FenceInput"),
                InputValue::new("changes", changes),
            ],
        ),
        (
            "ReleaseQuarantineInput",
            vec![
                required("controller", "String"),
                optional("namespace", "String"),
                optional("name", "String").description("All of them without it."),
                retrying(),
            ],
        ),
    ]
}
