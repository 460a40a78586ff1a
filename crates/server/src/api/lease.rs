//! Leases: taken, renewed and given back through the API, judged by the
//! server's clock.

use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};
use tidegate_model::{EncodedObject, Object, ObjectKey};
use tidegate_store::{CommitError, Expect, Op, Transaction};
use uuid::Uuid;

use super::Api;
use super::error::{ApiError, Code};
use super::fence::{Fence, lease_key, lease_lost};
use super::kind_ref::check_length;
use crate::identity::{Attributes, Session, Verb};

/// Two managers that ask at once conflict; one of them reads again.
const ATTEMPTS_MAX: usize = 8;
const DURATION_MIN: Duration = Duration::from_secs(1);
const DURATION_MAX: Duration = Duration::from_secs(60 * 60);

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LeaseWrite {
    /// Begins a new term, if the lease is nobody's, has ended, or is the
    /// holder's own from an earlier life.
    Acquire {
        namespace: String,
        name: String,
        holder: String,
        duration: Duration,
    },
    Renew {
        fence: Fence,
        duration: Duration,
    },
    Release {
        fence: Fence,
    },
}

/// Whose it is after the write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeaseState {
    /// Empty if it is nobody's.
    pub holder: String,
    pub transitions: i64,
}

impl Api {
    /// Needs `patch` on `leases`.
    pub async fn lease(&self, session: &Session, write: LeaseWrite) -> Result<LeaseState, ApiError> {
        let (namespace, name) = write.place();
        check_length("namespace", Some(namespace))?;
        check_length("name", Some(name))?;
        let key = lease_key(namespace, name);
        let attributes = Attributes::new(Verb::Patch, &key.resource).namespace(Some(namespace)).name(name);
        self.authorize(session, &attributes)?;
        write.check()?;
        for _ in 0..ATTEMPTS_MAX {
            if let Some(state) = self.try_lease(&key, &write).await? {
                return Ok(state);
            }
        }
        Err(ApiError::new(Code::Conflict, "the lease keeps changing: try again"))
    }

    /// `None` if somebody else was faster.
    async fn try_lease(&self, key: &ObjectKey, write: &LeaseWrite) -> Result<Option<LeaseState>, ApiError> {
        let stored = self.0.store.view().get(key)?;
        let current = stored.as_ref().map(super::status::decode).transpose()?;
        let Term { state, next } = Term::after(current.as_ref(), write, Utc::now())?;
        let Some(spec) = next else { return Ok(Some(state)) };
        let object = with_spec(current, key, spec);
        let expect = stored.map_or(Expect::Absent, |stored| Expect::Version(stored.version));
        let transaction = Transaction::one(key.clone(), expect, Op::Put(EncodedObject::new(&object)));
        match self.0.store.commit(transaction).await {
            Ok(_) => Ok(Some(state)),
            Err(CommitError::Conflict { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl LeaseWrite {
    fn place(&self) -> (&str, &str) {
        match self {
            Self::Acquire { namespace, name, .. } => (namespace, name),
            Self::Renew { fence, .. } | Self::Release { fence } => (&fence.namespace, &fence.name),
        }
    }

    fn check(&self) -> Result<(), ApiError> {
        match self {
            Self::Acquire { holder, .. } if holder.is_empty() || holder.len() > 253 => {
                Err(ApiError::bad_request("`holder` must have 1 to 253 bytes: name yourself so that no other has it"))
            }
            Self::Acquire { duration, .. } | Self::Renew { duration, .. }
                if !(DURATION_MIN..=DURATION_MAX).contains(duration) =>
            {
                Err(ApiError::bad_request("`durationSeconds` must be from 1 to 3600"))
            }
            _ => Ok(()),
        }
    }
}

/// What a write makes of a lease.
struct Term {
    state: LeaseState,
    /// The spec to write; `None` if it stays as it is.
    next: Option<Value>,
}

impl Term {
    fn after(current: Option<&Object>, write: &LeaseWrite, now: DateTime<Utc>) -> Result<Self, ApiError> {
        let spec = current.and_then(Object::spec).cloned().unwrap_or_default();
        let theirs = spec.get("holderIdentity").and_then(Value::as_str).unwrap_or_default().to_owned();
        let transitions = spec.get("leaseTransitions").and_then(Value::as_i64).unwrap_or(0);
        let is_in_force = |fence: &Fence| fence.holder == theirs && fence.transitions == transitions;
        let term = |holder: &str, transitions: i64, duration: &Duration, acquired: Value| Self {
            state: LeaseState { holder: holder.to_owned(), transitions },
            next: Some(json!({
                "holderIdentity": holder,
                "leaseTransitions": transitions,
                "leaseDurationSeconds": duration.as_secs().max(1),
                "acquireTime": acquired,
                "renewTime": micros(now),
            })),
        };
        match write {
            LeaseWrite::Acquire { holder, duration, .. } => {
                let is_free = theirs.is_empty() || theirs == *holder || has_ended(&spec, now);
                Ok(if is_free {
                    term(holder, transitions + 1, duration, micros(now).into())
                } else {
                    Self { state: LeaseState { holder: theirs, transitions }, next: None }
                })
            }
            LeaseWrite::Renew { fence, duration } if is_in_force(fence) => {
                let acquired = spec.get("acquireTime").cloned().unwrap_or_else(|| micros(now).into());
                Ok(term(&fence.holder, transitions, duration, acquired))
            }
            LeaseWrite::Release { fence } if is_in_force(fence) => {
                Ok(term("", transitions, &DURATION_MIN, micros(now).into()))
            }
            LeaseWrite::Renew { .. } | LeaseWrite::Release { .. } => Err(lease_lost()),
        }
    }
}

pub(super) fn has_ended(spec: &Value, now: DateTime<Utc>) -> bool {
    let renewed =
        spec.get("renewTime").and_then(Value::as_str).and_then(|text| DateTime::parse_from_rfc3339(text).ok());
    let seconds = spec.get("leaseDurationSeconds").and_then(Value::as_i64).unwrap_or(0);
    renewed.is_none_or(|renewed| renewed + chrono::Duration::seconds(seconds) <= now)
}

fn micros(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Micros, true)
}

fn with_spec(current: Option<Object>, key: &ObjectKey, spec: Value) -> Object {
    let mut object = current.unwrap_or_else(|| {
        let now = Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true);
        let metadata = json!({"name": &*key.name, "namespace": key.namespace.as_deref(),
            "uid": Uuid::new_v4().to_string(), "creationTimestamp": now, "generation": 1});
        let object = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata});
        Object::from_value(object).expect("it has an object's shape")
    });
    object.root_mut().insert("spec".into(), spec);
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acquire(holder: &str) -> LeaseWrite {
        let duration = Duration::from_secs(15);
        LeaseWrite::Acquire { namespace: "system".into(), name: "m".into(), holder: holder.into(), duration }
    }

    fn fence(holder: &str, transitions: i64) -> Fence {
        Fence { namespace: "system".into(), name: "m".into(), holder: holder.into(), transitions }
    }

    fn renew(holder: &str, transitions: i64) -> LeaseWrite {
        LeaseWrite::Renew { fence: fence(holder, transitions), duration: Duration::from_secs(15) }
    }

    /// One write after the other, each so many seconds after the first.
    #[test]
    fn a_term_is_somebodys_until_it_ends() {
        let mut current: Option<Object> = None;
        let release = |holder: &str, term| LeaseWrite::Release { fence: fence(holder, term) };
        for (seconds, write, expected) in [
            (0, acquire("a"), Some(("a", 1))),
            (1, acquire("b"), Some(("a", 1))),
            (5, renew("a", 1), Some(("a", 1))),
            (19, acquire("b"), Some(("a", 1))),
            (20, acquire("b"), Some(("b", 2))),
            (21, renew("a", 1), None),
            (22, release("a", 1), None),
            (23, acquire("b"), Some(("b", 3))),
            (24, renew("b", 2), None),
            (60, renew("b", 3), Some(("b", 3))),
            (61, release("b", 3), Some(("", 3))),
            (61, acquire("a"), Some(("a", 4))),
        ] {
            let now = DateTime::UNIX_EPOCH + chrono::Duration::seconds(seconds);
            let term = Term::after(current.as_ref(), &write, now).ok();
            let state = term.as_ref().map(|term| (term.state.holder.as_str(), term.state.transitions));
            assert_eq!(state, expected, "{seconds} s: {write:?}");
            if let Some(spec) = term.and_then(|term| term.next) {
                current = Some(with_spec(current, &lease_key("system", "m"), spec));
            }
        }
    }
}
