//! Fences: a write that holds only while a lease is in a certain term.
//!
//! Invariant: the lease is looked at by the committer, in the transaction of
//! the write itself, so that no write of a former holder comes after the first
//! of its successor.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use tidegate_model::{GroupResource, Object, ObjectKey, ResourceVersion};
use tidegate_store::{Expect, Op, Rebased, StoredObject, Write};

use super::error::{ApiError, Code};
use super::lease::has_ended;

/// Which term of which lease.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fence {
    pub namespace: String,
    pub name: String,
    pub holder: String,
    pub transitions: i64,
}

impl Fence {
    /// A write that changes nothing, and conflicts if the fence is not in
    /// force.
    pub(super) fn guard(&self) -> Write {
        let fence = self.clone();
        // No object is at this version, so the question always comes.
        let never = Expect::Version(ResourceVersion::line_start(NEVER_SECONDS));
        let judge = move |current: Option<&StoredObject>| match current.and_then(|lease| Object::from_json(&lease.json))
        {
            Some(lease) if fence.is_in_force(&lease) => Rebased::Skip,
            _ => Rebased::Conflict,
        };
        Write {
            key: lease_key(&self.namespace, &self.name),
            expect: never,
            op: Op::Delete,
            rebase: Some(Arc::new(judge)),
        }
    }

    /// In force, and renewed in time.
    pub(super) fn is_held(&self, lease: &StoredObject, now: DateTime<Utc>) -> bool {
        let is_held =
            |lease: &Object| self.is_in_force(lease) && lease.spec().is_some_and(|spec| !has_ended(spec, now));
        Object::from_json(&lease.json).as_ref().is_some_and(is_held)
    }

    fn is_in_force(&self, lease: &Object) -> bool {
        let spec = |field: &str| lease.spec().and_then(|spec| spec.get(field));
        spec("holderIdentity").and_then(|value| value.as_str()) == Some(&self.holder)
            && spec("leaseTransitions").and_then(|value| value.as_i64()) == Some(self.transitions)
    }
}

/// In April 2000: before any number line begins.
const NEVER_SECONDS: u64 = 956_000_000;

pub(super) fn lease_key(namespace: &str, name: &str) -> ObjectKey {
    ObjectKey::new(GroupResource::new("coordination.k8s.io", "leases"), Some(namespace), name)
}

pub(super) fn lease_lost() -> ApiError {
    ApiError::new(
        Code::LeaseLost,
        "the lease is in another term or another holder's by now: stop, acquire it again, and begin from what is saved",
    )
}
