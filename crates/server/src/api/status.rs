//! Status writes: with a precondition, merged, checked against the schema.

use std::sync::Arc;

use chrono::Utc;
use serde_json::{Map, Value, json};
use tidegate_model::schema::Schema;
use tidegate_model::{EncodedObject, FieldError, Object, ObjectKey, ResourceVersion, StatusMerge, merge_status};
use tidegate_store::{CommitError, Expect, Op, StoredObject, Transaction};

use super::error::{ApiError, Code};
use super::fence::{Fence, lease_lost};
use super::kind_ref::KindRef;
use super::{Api, Item, OBJECT_BYTES_MAX};
use crate::identity::{Attributes, SUBRESOURCE_STATUS, Session, Verb};

#[derive(Clone, Debug)]
pub struct StatusWrite {
    pub namespace: Option<String>,
    pub name: String,
    /// The precondition.
    pub resource_version: Option<String>,
    /// A JSON merge patch of `status`.
    pub patch: Value,
}

impl Api {
    pub async fn update_status(&self, session: &Session, kind: &KindRef, write: StatusWrite) -> Result<Item, ApiError> {
        self.update_status_fenced(session, kind, write, None).await
    }

    /// Refused if the lease behind `fence` is not in force when it commits.
    pub async fn update_status_fenced(
        &self,
        session: &Session,
        kind: &KindRef,
        write: StatusWrite,
        fence: Option<&Fence>,
    ) -> Result<Item, ApiError> {
        let key = kind.key(write.namespace.as_deref(), &write.name)?;
        let attributes = Attributes::new(Verb::Patch, &key.resource).subresource(SUBRESOURCE_STATUS);
        self.authorize(session, &attributes.namespace(write.namespace.as_deref()).name(&write.name))?;
        self.write_status_fenced(kind, &key, write, fence).await
    }

    /// For callers whose permission has been decided.
    pub(super) async fn write_status(
        &self,
        kind: &KindRef,
        key: &ObjectKey,
        write: StatusWrite,
    ) -> Result<Item, ApiError> {
        self.write_status_fenced(kind, key, write, None).await
    }

    async fn write_status_fenced(
        &self,
        kind: &KindRef,
        key: &ObjectKey,
        write: StatusWrite,
        fence: Option<&Fence>,
    ) -> Result<Item, ApiError> {
        let expected = precondition(write.resource_version.as_deref())?;
        let (stored, object) = self.read_expected(key, expected)?;
        // After the read: the definition is at least as new as the object, or
        // a field that the writer may know of would be pruned.
        let kind = &self.as_seen(kind).await?;
        if !kind.version().has_status {
            return Err(ApiError::bad_request(format!(
                "`{}` has no status: its definition does not declare the status subresource",
                kind.kind.kind
            )));
        }
        match next_status(&kind.version().schema, &object, &write.patch)? {
            None => Ok(Item::serve(kind, stored)),
            Some(next) => self.put(kind, key, expected, &next, fence).await,
        }
    }

    /// The kind as its definition is in what has been read by now.
    async fn as_seen(&self, kind: &KindRef) -> Result<KindRef, ApiError> {
        let kinds = self.0.follower.kinds_as_seen().await.ok_or_else(|| {
            ApiError::new(Code::Unavailable, "a new definition is not in force yet: try again in a moment")
        })?;
        match kinds.set.by_gvk(&kind.api_version, &kind.kind.kind) {
            Some((now, _)) if Arc::ptr_eq(now, &kind.kind) => Ok(kind.clone()),
            _ => KindRef::find(&kinds.set, &kind.api_version, &kind.kind.kind),
        }
    }

    /// The object at exactly the version that the caller has seen.
    pub(super) fn read_expected(
        &self,
        key: &ObjectKey,
        expected: ResourceVersion,
    ) -> Result<(StoredObject, Object), ApiError> {
        let stored = self.0.store.view().get(key)?.ok_or_else(|| not_found(key))?;
        let object = decode(&stored)?;
        if stored.version != expected {
            return Err(ApiError::conflict(expected, stored.version, object.generation()));
        }
        Ok((stored, object))
    }

    pub(super) async fn put(
        &self,
        kind: &KindRef,
        key: &ObjectKey,
        expected: ResourceVersion,
        next: &Object,
        fence: Option<&Fence>,
    ) -> Result<Item, ApiError> {
        let encoded = EncodedObject::new(next);
        if encoded.len() > OBJECT_BYTES_MAX {
            let message = format!(
                "the object would have {} bytes: the limit is {OBJECT_BYTES_MAX}; report less in the status",
                encoded.len()
            );
            return Err(ApiError::new(Code::TooLarge, message).with("limitBytes", OBJECT_BYTES_MAX));
        }
        let version = self.commit_one(key, expected, Op::Put(encoded.clone()), fence).await?;
        let json = kind.serve(encoded.stamp(version).into());
        Ok(Item { key: key.clone(), version, json })
    }

    pub(super) async fn commit_one(
        &self,
        key: &ObjectKey,
        expected: ResourceVersion,
        op: Op,
        fence: Option<&Fence>,
    ) -> Result<ResourceVersion, ApiError> {
        let mut transaction = Transaction::one(key.clone(), Expect::Version(expected), op);
        transaction.writes.extend(fence.map(Fence::guard));
        match self.0.store.commit(transaction).await {
            Err(CommitError::Conflict { index, .. }) if index > 0 => Err(lease_lost()),
            Ok(committed) => Ok(committed.versions.first().copied().flatten().unwrap_or(committed.version)),
            // Somebody was faster between our read and our commit.
            Err(CommitError::Conflict { .. }) => {
                Err(self.read_expected(key, expected).err().unwrap_or_else(|| not_found(key)))
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// `None` if the patch changes nothing. All but the status is as it was, to
/// the byte: the schema may be newer than the object.
fn next_status(schema: &Schema, object: &Object, patch: &Value) -> Result<Option<Object>, ApiError> {
    let context = StatusMerge { now: Utc::now(), generation: object.generation() };
    let invalid = |errors: Vec<FieldError>| ApiError::invalid("the status", &errors);
    let merged = merge_status(object.status(), patch, &context).map_err(invalid)?;
    if !merged.changed {
        return Ok(None);
    }
    let mut status = json!({"status": merged.status});
    schema.prune(&mut status);
    let status = status["status"].take();
    // What was pruned may have been all that was new.
    let is_empty = status.as_object().is_none_or(Map::is_empty);
    if object.status().map_or(is_empty, |before| *before == status) {
        return Ok(None);
    }
    let mut next = object.clone();
    next.root_mut().insert("status".into(), status);
    let errors = new_errors(schema, &next, object);
    if errors.is_empty() { Ok(Some(next)) } else { Err(invalid(errors)) }
}

/// Those that the object does not have already: when a definition changes, a
/// controller must be able to go on beside fields that are not its own.
fn new_errors(schema: &Schema, next: &Object, object: &Object) -> Vec<FieldError> {
    let value = |object: &Object| Value::Object(object.root().clone());
    let (next, object) = (value(next), value(object));
    let mut errors = schema.validate_status(&next, Some(&object));
    if !errors.is_empty() {
        let before = schema.validate_status(&object, Some(&object));
        errors.retain(|error| !before.contains(error));
    }
    errors
}

pub(super) fn precondition(version: Option<&str>) -> Result<ResourceVersion, ApiError> {
    match version {
        None | Some("") => Err(missing_precondition()),
        Some(text) => Ok(text.parse()?),
    }
}

pub fn missing_precondition() -> ApiError {
    ApiError::new(
        Code::PreconditionRequired,
        "`resourceVersion` is required: pass the version that you read, so that you never overwrite a change that you have not seen",
    )
}

pub(super) fn not_found(key: &ObjectKey) -> ApiError {
    ApiError::new(Code::NotFound, format!("{key} does not exist"))
}

pub(super) fn decode(stored: &StoredObject) -> Result<Object, ApiError> {
    Object::from_json(&stored.json).ok_or_else(|| {
        let message = "the stored object does not decode: run `tidegate store check` on the stopped store";
        ApiError::new(Code::Internal, message).because(format!("{} at {}", stored.key, stored.version))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(status: &Value) -> Schema {
        let properties = json!({"spec": {"type": "object", "properties": {"a": {"type": "string"}}}, "status": status});
        Schema::compile(&json!({"type": "object", "properties": properties})).unwrap()
    }

    fn object(status: &Value) -> Object {
        let value = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a", "generation": 2},
            "spec": {"a": "x", "b": 5}, "status": status});
        Object::from_value(value).unwrap()
    }

    #[test]
    fn a_schema_takes_nothing_from_the_spec() {
        let schema = schema(&json!({"type": "object", "properties": {"seen": {"type": "integer"}}}));
        let before = object(&json!({}));
        let next = next_status(&schema, &before, &json!({"seen": 2, "unknown": 1})).unwrap().unwrap();
        assert_eq!(next.status(), Some(&json!({"seen": 2})));
        assert_eq!(next.root()["spec"], json!({"a": "x", "b": 5}));
        assert!(next_status(&schema, &next, &json!({"unknown": 2})).unwrap().is_none());
    }

    #[test]
    fn what_a_new_definition_refuses_does_not_stop_other_writers() {
        let text = json!({"type": "string"});
        let schema = schema(&json!({"type": "object", "properties": {"foo": text, "bar": text}}));
        let before = object(&json!({"foo": 3}));
        let next = next_status(&schema, &before, &json!({"bar": "b"})).unwrap().unwrap();
        assert_eq!(next.status(), Some(&json!({"foo": 3, "bar": "b"})));
        for patch in [json!({"foo": 4}), json!({"bar": 4})] {
            assert!(next_status(&schema, &before, &patch).is_err(), "{patch}");
        }
    }
}
