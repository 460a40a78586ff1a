//! Writes statuses and Events, one at a time, the newest of each object.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::Utc;
use serde_json::{Map, Value, json};
use tidegate_model::timestamp::format_time;
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::claims::TypeId;
use crate::cluster::{Api, ApiError, collection, object};
use crate::config::{Condition, ConfigKind, GROUP, Id, Meta, Reason, StatusBody, Truth, VERSION};
use crate::repeats::Repeats;

/// After a failure; the newest status of each object is kept meanwhile.
const RETRY: Duration = Duration::from_secs(2);
/// Where Events of cluster-scoped objects live.
const EVENT_NAMESPACE: &str = "default";

type Queue = BTreeMap<(ConfigKind, Id), (Meta, StatusBody)>;

/// Telling never waits; at most one status an object waits to be written.
pub(super) struct StatusWriter {
    queue: Arc<Mutex<Queue>>,
    woken: Arc<Notify>,
    /// What each object was told last.
    told: BTreeMap<(ConfigKind, Id), (String, i64, StatusBody)>,
}

impl StatusWriter {
    pub fn tell(&mut self, kind: ConfigKind, id: Id, meta: Meta, body: StatusBody) {
        let told = (meta.uid.clone(), meta.generation, body.clone());
        if self.told.get(&(kind, id.clone())) == Some(&told) {
            return;
        }
        self.told.insert((kind, id.clone()), told);
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).insert((kind, id), (meta, body));
        self.woken.notify_one();
    }
}

pub(super) fn write_statuses(api: Api, instance: String) -> (StatusWriter, impl Future<Output = ()> + Send) {
    let (queue, woken) = (Arc::new(Mutex::new(Queue::new())), Arc::new(Notify::new()));
    let writer = StatusWriter { queue: queue.clone(), woken: woken.clone(), told: BTreeMap::new() };
    (writer, keep_writing(api, instance, queue, woken))
}

async fn keep_writing(api: Api, instance: String, queue: Arc<Mutex<Queue>>, woken: Arc<Notify>) {
    let mut repeats = Repeats::default();
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_first();
        let Some(((kind, id), (meta, body))) = next else {
            woken.notified().await;
            continue;
        };
        if let Err(error) = write(&api, &instance, kind, &id, &meta, &body).await {
            if error.is_not_found() {
                continue;
            }
            let error = error.told();
            if repeats.is_new(&error) {
                tracing::warn!(kind = kind.name(), object = %id, error, "the status was not written");
            }
            queue.lock().unwrap_or_else(PoisonError::into_inner).entry((kind, id)).or_insert((meta, body));
            sleep(RETRY).await;
        } else {
            repeats.end();
        }
    }
}

/// Against what is there now: a time that did not move stays.
async fn write(
    api: &Api,
    instance: &str,
    kind: ConfigKind,
    id: &Id,
    meta: &Meta,
    body: &StatusBody,
) -> Result<(), ApiError> {
    let namespace = Some(id.namespace.as_str()).filter(|namespace| !namespace.is_empty());
    let path = object(&TypeId::new(GROUP, VERSION, kind.plural()), namespace, &id.name);
    let current = api.get(&path).await?;
    let before = current.get("status");
    let Some(mut status) = body.against(before, meta.generation, &format_time(Utc::now())) else { return Ok(()) };
    // A merge patch removes only what it names.
    let gone: Map<_, _> = before
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter(|(field, _)| status.get(field.as_str()).is_none())
        .map(|(field, _)| (field.clone(), Value::Null))
        .collect();
    if let Value::Object(fields) = &mut status {
        fields.extend(gone);
    }
    let changed = body.main().filter(|condition| !has(before, condition)).cloned();
    api.merge(&format!("{path}/status"), &json!({"status": status})).await?;
    if let Some(condition) = changed {
        tell_event(api, instance, kind, id, meta, &condition).await;
    }
    Ok(())
}

/// Whether the object said so before: the same reason again is no event.
fn has(status: Option<&Value>, condition: &Condition) -> bool {
    let conditions = status.and_then(|status| status.get("conditions")?.as_array());
    conditions.into_iter().flatten().any(|own| {
        own["type"] == condition.kind
            && own["status"] == condition.truth.text()
            && own["reason"] == condition.reason.text()
    })
}

async fn tell_event(api: &Api, instance: &str, kind: ConfigKind, id: &Id, meta: &Meta, condition: &Condition) {
    let namespace = if id.namespace.is_empty() { EVENT_NAMESPACE } else { &id.namespace };
    let now = Utc::now();
    // Every destination begins with a comparison: that is no reason to worry.
    let is_wrong = condition.truth == Truth::False && condition.reason != Reason::Seeding;
    let event = json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": format!("{}.{:x}", id.name, now.timestamp_micros()), "namespace": namespace},
        "involvedObject": {
            "apiVersion": ConfigKind::api_version(), "kind": kind.name(), "namespace": id.namespace,
            "name": id.name, "uid": meta.uid, "resourceVersion": meta.resource_version,
        },
        "type": if is_wrong { "Warning" } else { "Normal" },
        "reason": condition.reason.text(), "message": condition.message, "action": "Reconcile", "count": 1,
        "firstTimestamp": format_time(now), "lastTimestamp": format_time(now),
        "source": {"component": "tidegate-reverser"}, "reportingComponent": "tidegate-reverser",
        "reportingInstance": instance,
    });
    let path = collection(&TypeId::new("", "v1", "events"), Some(namespace));
    if let Err(error) = api.create(&path, &event).await {
        tracing::debug!(error = error.told(), "an Event was not written");
    }
}
