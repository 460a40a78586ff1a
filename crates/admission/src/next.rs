//! From a desired state and the stored object to the next stored object.
//!
//! Invariant: what the system and controllers wrote (uid, creation time,
//! finalizers, status and so on) is carried over untouched. The generation
//! rises only with a change of what is desired, never with one of metadata.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use tidegate_model::Object;
use tidegate_model::timestamp::format_time;

use crate::provenance::is_reserved;
use crate::{Desired, LastChange, Provenance};

/// What only the moment of the write knows.
#[derive(Clone, Copy, Debug)]
pub struct Stamp<'s> {
    pub now: DateTime<Utc>,
    /// For an object that does not exist yet.
    pub new_uid: &'s str,
    pub source: Provenance<'s>,
    pub change: LastChange<'s>,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    Create(Object),
    Update(Object),
    /// Neither write nor event.
    Unchanged,
    /// It is being deleted: it cannot be wanted again until it is gone.
    Terminating,
}

/// `desired` is that of a [`crate::PlannedPut`].
pub fn next_object(desired: &Desired, current: Option<&Object>, stamp: &Stamp<'_>) -> Outcome {
    match current {
        None => Outcome::Create(created(desired.object(), stamp)),
        Some(current) if current.deletion_timestamp().is_some() => Outcome::Terminating,
        Some(current) => updated(&desired.object(), current, stamp).map_or(Outcome::Unchanged, Outcome::Update),
    }
}

#[derive(Clone, PartialEq, Debug)]
pub enum Deletion {
    /// Finalizers hold it: store this, with its deletion time.
    Stamp(Object),
    Remove,
    /// The time is stamped already; finalizers still hold it.
    Waiting,
}

/// As Kubernetes does it: the first deletion of an object with finalizers only
/// stamps it, and raises the generation so that its controllers look at it.
pub fn delete_object(current: &Object, now: DateTime<Utc>) -> Deletion {
    if current.finalizers().next().is_none() {
        return Deletion::Remove;
    }
    if current.deletion_timestamp().is_some() {
        return Deletion::Waiting;
    }
    Deletion::Stamp(stamped(current, now))
}

/// Holds a namespace that is deleted until nothing is in it. The server
/// refuses to remove it before.
pub const CONTENTS_FINALIZER: &str = "tidegate.dev/contents";

/// The namespace as it is stored while there are objects in it; `None` if it
/// is on its way out already.
pub fn drain_namespace(current: &Object, now: DateTime<Utc>) -> Option<Object> {
    if current.deletion_timestamp().is_some() {
        return None;
    }
    let mut finalizers: Vec<Value> = current.finalizers().map(Value::from).collect();
    finalizers.push(CONTENTS_FINALIZER.into());
    let mut drained = stamped(current, now);
    drained.metadata_mut().insert("finalizers".into(), finalizers.into());
    Some(drained)
}

fn stamped(current: &Object, now: DateTime<Utc>) -> Object {
    let mut stamped = current.clone();
    let generation = current.generation() + 1;
    let metadata = stamped.metadata_mut();
    metadata.insert("deletionTimestamp".into(), format_time(now).into());
    metadata.insert("deletionGracePeriodSeconds".into(), 0.into());
    metadata.insert("generation".into(), generation.into());
    stamped
}

fn created(mut object: Object, stamp: &Stamp<'_>) -> Object {
    let metadata = object.metadata_mut();
    metadata.insert("uid".into(), stamp.new_uid.into());
    metadata.insert("creationTimestamp".into(), format_time(stamp.now).into());
    metadata.insert("generation".into(), 1.into());
    write_source(metadata, stamp);
    object
}

/// `None` if nothing changes but commit and author: a push leaves alone what it does
/// not touch.
fn updated(desired: &Object, current: &Object, stamp: &Stamp<'_>) -> Option<Object> {
    let mut next = desired.clone();
    let is_desired_changed = authored_fields(desired).ne(authored_fields(current));
    let generation = current.generation() + i64::from(is_desired_changed);
    let metadata = next.metadata_mut();
    for (field, value) in current.metadata() {
        if !matches!(field.as_str(), "name" | "namespace" | "labels" | "annotations") {
            metadata.insert(field.clone(), value.clone());
        }
    }
    metadata.insert("generation".into(), generation.into());
    write_source(metadata, &Stamp { change: LastChange::of(current), ..*stamp });
    if let Some(status) = current.status() {
        next.root_mut().insert("status".into(), status.clone());
    }
    if next == *current {
        return None;
    }
    write_source(next.metadata_mut(), stamp);
    Some(next)
}

/// Everything but identity, metadata and status, in the order of its names.
fn authored_fields(object: &Object) -> impl Iterator<Item = (&String, &Value)> {
    const OTHERS: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];
    let mut fields: Vec<_> = object.root().iter().filter(|(field, _)| !OTHERS.contains(&field.as_str())).collect();
    fields.sort_by_key(|(field, _)| *field);
    fields.into_iter()
}

fn write_source(metadata: &mut Map<String, Value>, stamp: &Stamp<'_>) {
    let annotations = metadata.entry("annotations").or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(annotations) = annotations {
        annotations.retain(|key, _| !is_reserved(key));
        stamp.source.write(stamp.change, annotations);
    }
}

#[cfg(test)]
#[path = "next_tests.rs"]
mod tests;
