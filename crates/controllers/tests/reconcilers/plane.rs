//! The world as a plane.

use std::time::Duration;

use async_trait::async_trait;
use chrono::Utc;
use serde_json::{Value, json};
use tidegate_admission::CONTENTS_FINALIZER;
use tidegate_model::{Object, ObjectKey, ResourceVersion, StatusMerge, merge_status};
use tidegate_runtime::{
    ApiError, Fault, Fence, Item, Kind, Lease, LeaseRequest, ListPage, Plane, Precondition, Source, StateChange,
    StateRow, WatchEvent, WatchStream,
};
use tokio::sync::watch;

use crate::world::{Stored, World, item};

/// Small, so that lists have pages.
const PAGE: usize = 3;

#[async_trait]
impl Source for World {
    async fn list(&self, kind: &Kind, after: Option<&str>) -> Result<ListPage, ApiError> {
        let state = self.state();
        served(&state, kind)?;
        let of_kind = |key: &&ObjectKey| {
            key.resource == kind.resource && after.is_none_or(|after| key.to_string().as_str() > after)
        };
        let keys: Vec<ObjectKey> = state.objects.keys().filter(of_kind).cloned().collect();
        let items = keys.iter().take(PAGE).map(|key| item(key, &state.objects[key].0, state.objects[key].1)).collect();
        let next = (keys.len() > PAGE).then(|| keys[PAGE - 1].to_string());
        Ok(ListPage { version: state.version, items, next })
    }

    async fn watch(&self, kind: &Kind, after: ResourceVersion) -> Result<Box<dyn WatchStream>, ApiError> {
        served(&self.state(), kind)?;
        Ok(Box::new(Stream { world: self.clone(), kind: kind.clone(), after, changed: self.0.changed.subscribe() }))
    }
}

struct Stream {
    world: World,
    kind: Kind,
    after: ResourceVersion,
    changed: watch::Receiver<ResourceVersion>,
}

#[async_trait]
impl WatchStream for Stream {
    async fn next(&mut self) -> Result<Vec<WatchEvent>, ApiError> {
        let mut held_back = self.world.0.held_back.subscribe();
        loop {
            held_back.wait_for(|held| !held.contains(&*self.kind.kind)).await.map_err(|_| gone())?;
            let (mut events, version) = {
                let state = self.world.state();
                served(&state, &self.kind)?;
                let is_due = |event: &&WatchEvent| event.version() > self.after && of_kind(event, &self.kind);
                (state.log.iter().filter(is_due).cloned().collect::<Vec<_>>(), state.version)
            };
            if version > self.after {
                events.push(WatchEvent::Bookmark(version));
                self.after = version;
                return Ok(events);
            }
            self.changed.changed().await.map_err(|_| gone())?;
        }
    }
}

fn gone() -> ApiError {
    ApiError::new(Fault::Unavailable, "the world is gone")
}

fn of_kind(event: &WatchEvent, kind: &Kind) -> bool {
    match event {
        WatchEvent::Added(item) | WatchEvent::Modified(item) | WatchEvent::Deleted(item) => {
            item.key.resource == kind.resource
        }
        WatchEvent::Bookmark(_) => true,
    }
}

fn served(state: &Stored, kind: &Kind) -> Result<(), ApiError> {
    let found = state.kinds.by_gvk(&kind.api_version, &kind.kind);
    found.map(drop).ok_or_else(|| ApiError::new(Fault::KindNotFound, format!("there is no {kind}")))
}

fn expected(state: &Stored, at: &Precondition) -> Result<Object, ApiError> {
    match state.objects.get(&at.key) {
        None => Err(ApiError::new(Fault::NotFound, format!("{} does not exist", at.key))),
        Some((_, version)) if *version != at.version => Err(ApiError::new(Fault::Conflict, "it changed")),
        Some((object, _)) => Ok(object.clone()),
    }
}

#[async_trait]
impl Plane for World {
    async fn get(&self, kind: &Kind, key: &ObjectKey) -> Result<Option<Item>, ApiError> {
        let state = self.state();
        served(&state, kind)?;
        Ok(state.objects.get(key).map(|(object, version)| item(key, object, *version)))
    }

    async fn patch_status(&self, kind: &Kind, at: &Precondition, patch: Value) -> Result<Item, ApiError> {
        let mut state = self.state();
        state.burn(&*kind.kind == "Widget").inspect_err(|_| self.0.changed.send_modify(|_| {}))?;
        let object = expected(&state, at)?;
        let context = StatusMerge { now: Utc::now(), generation: object.generation() };
        let invalid = |errors: Vec<tidegate_model::FieldError>| ApiError::new(Fault::Invalid, format!("{errors:?}"));
        let merged = merge_status(object.status(), &patch, &context).map_err(invalid)?;
        if !merged.changed {
            return Ok(item(&at.key, &object, at.version));
        }
        let mut next = object.clone();
        next.root_mut().insert("status".into(), merged.status);
        let schema = state.kinds.by_gvk(&kind.api_version, &kind.kind).unwrap().1.schema.clone();
        let value = next.clone().into_value();
        let mut pruned = value.clone();
        schema.prune(&mut pruned);
        // Stricter than the server, which drops what the schema does not know.
        if kind.resource.group.ends_with("gitstore.dev") && pruned != value {
            return Err(ApiError::new(Fault::Invalid, format!("the schema does not know all of {patch}")));
        }
        let errors = schema.validate_status(&pruned, None);
        if !errors.is_empty() {
            return Err(invalid(errors));
        }
        *state.status_writes.entry(at.key.clone()).or_default() += 1;
        let written = state.put(at.key.clone(), Object::from_value(pruned).unwrap());
        self.0.changed.send_replace(state.version);
        Ok(written)
    }

    async fn patch_finalizers(
        &self,
        _kind: &Kind,
        at: &Precondition,
        add: &[String],
        remove: &[String],
    ) -> Result<Option<Item>, ApiError> {
        let mut state = self.state();
        let mut object = expected(&state, at)?;
        let inside = state.objects.keys().filter(|key| key.namespace.as_ref() == Some(&at.key.name)).count();
        if remove.iter().any(|name| name == CONTENTS_FINALIZER) && inside > 0 {
            return Err(ApiError::new(Fault::Invalid, format!("{inside} objects are left")));
        }
        let kept = object.finalizers().filter(|name| !remove.iter().any(|gone| gone == name)).map(String::from);
        let finalizers: Vec<String> = kept.chain(add.iter().cloned()).collect();
        let done = finalizers.is_empty() && object.deletion_timestamp().is_some();
        object.metadata_mut().insert("finalizers".into(), json!(finalizers));
        let left = if done {
            state.remove(&at.key);
            None
        } else {
            Some(state.put(at.key.clone(), object))
        };
        self.0.changed.send_replace(state.version);
        Ok(left)
    }

    async fn lease(&self, request: &LeaseRequest) -> Result<Lease, ApiError> {
        let mut state = self.state();
        let holder = match request {
            LeaseRequest::Acquire { holder, .. } => {
                state.lease_term += 1;
                holder.clone()
            }
            LeaseRequest::Renew { fence, .. } => fence.holder.clone(),
            LeaseRequest::Release { .. } => "".into(),
        };
        Ok(Lease { holder, transitions: state.lease_term })
    }

    async fn state_read(&self, controller: &str, prefix: &str, after: Option<&str>) -> Result<Vec<StateRow>, ApiError> {
        if prefix.starts_with("records/") {
            self.0.gives_records.subscribe().wait_for(|gives| *gives).await.unwrap();
        }
        let state = self.state();
        let rows = state.rows.iter().filter(|((owner, name), _)| {
            owner == controller && name.starts_with(prefix) && after.is_none_or(|after| name.as_str() > after)
        });
        Ok(rows.map(|((_, name), value)| StateRow { name: name.clone(), value: value.clone() }).collect())
    }

    async fn state_get(&self, controller: &str, names: &[String]) -> Result<Vec<StateRow>, ApiError> {
        let state = self.state();
        let row = |name: &String| state.rows.get(&(controller.to_owned(), name.clone())).cloned();
        let found = names.iter().filter_map(|name| Some(StateRow { name: name.clone(), value: row(name)? }));
        Ok(found.collect())
    }

    async fn state_write(
        &self,
        controller: &str,
        _fence: Option<&Fence>,
        changes: Vec<StateChange>,
    ) -> Result<(), ApiError> {
        let mut state = self.state();
        let is_note = |change: &StateChange| controller == "hooks" && change.name.starts_with("note/");
        let cleans = controller.starts_with("hook.") || changes.iter().any(is_note);
        state.burn(cleans).inspect_err(|_| self.0.changed.send_modify(|_| {}))?;
        self.0.changed.send_modify(|_| {});
        for StateChange { name, value } in changes {
            let id = (controller.to_owned(), name);
            match value {
                Some(value) => drop(state.rows.insert(id, value)),
                None => drop(state.rows.remove(&id)),
            }
        }
        Ok(())
    }
}

/// A name for what tests wait between looks at things that are not in the
/// world, such as an endpoint's calls.
pub async fn moment() {
    tokio::time::sleep(Duration::from_millis(5)).await;
}
