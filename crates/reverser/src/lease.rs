//! Which of several replicas works: a Lease of coordination.k8s.io.
//!
//! Invariant: whoever cannot renew stops [`STOP_BEFORE`] the time at which
//! another may start. Times of others are never compared with ours: only how
//! long a record has not changed, by our own clock.

use std::time::{Duration, Instant};

use chrono::{SecondsFormat, Utc};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::claims::TypeId;
use crate::cluster::{Api, ApiError, collection, object};

const LEASE_TIME: Duration = Duration::from_secs(15);
/// Without a renewal for this long we have lost.
const RENEW_DEADLINE: Duration = Duration::from_secs(10);
/// What is left to end what we do: a push is killed in milliseconds.
pub const STOP_BEFORE: Duration = Duration::from_secs(LEASE_TIME.as_secs() - RENEW_DEADLINE.as_secs());
const RETRY: Duration = Duration::from_secs(2);

pub struct Lease {
    api: Api,
    namespace: String,
    name: String,
    /// Who we are.
    holder: String,
}

/// What a record says, and since when it has said so to us.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Observed {
    record: (String, String),
    since: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Decision {
    Take,
    Wait,
}

fn decide(observed: &Observed, own: &str, now: Instant) -> Decision {
    let holder = observed.record.0.as_str();
    let is_free = holder.is_empty() || holder == own;
    if is_free || now.saturating_duration_since(observed.since) >= LEASE_TIME { Decision::Take } else { Decision::Wait }
}

impl Lease {
    pub fn new(api: Api, namespace: &str, name: &str, holder: &str) -> Self {
        Self { api, namespace: namespace.into(), name: name.into(), holder: holder.into() }
    }

    /// Waits until the lease is ours.
    pub async fn acquire(&self) {
        let mut observed: Option<Observed> = None;
        loop {
            match self.try_acquire(&mut observed).await {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => tracing::warn!(error = error.told(), "the lease cannot be read or written"),
            }
            sleep(RETRY).await;
        }
    }

    /// Renews until that fails for too long, or another one holds it.
    pub async fn hold(&self) {
        let mut renewed = Instant::now();
        while renewed.elapsed() < RENEW_DEADLINE {
            sleep(RETRY).await;
            match timeout(RETRY, self.renew()).await {
                Ok(Ok(true)) => renewed = Instant::now(),
                Ok(Ok(false)) => return tracing::error!("another replica holds the lease"),
                Ok(Err(error)) => tracing::warn!(error = error.told(), "the lease was not renewed"),
                Err(_) => tracing::warn!("the lease was not renewed in time"),
            }
        }
        tracing::error!("the lease is lost");
    }

    /// Lets another start at once.
    pub async fn release(&self) {
        let released = async {
            let lease = self.api.get(&self.path()).await?;
            if lease["spec"]["holderIdentity"] == self.holder.as_str() { self.put(lease, "").await } else { Ok(()) }
        };
        if let Ok(Err(error)) = timeout(RETRY, released).await {
            tracing::debug!(error = error.told(), "the lease was not released; it expires");
        }
    }

    async fn try_acquire(&self, observed: &mut Option<Observed>) -> Result<bool, ApiError> {
        let lease = match self.api.get(&self.path()).await {
            Ok(lease) => lease,
            Err(error) if error.is_not_found() => return taken(self.create().await),
            Err(error) => return Err(error),
        };
        let text = |field: &str| lease["spec"][field].as_str().unwrap_or_default().to_owned();
        let record = (text("holderIdentity"), text("renewTime"));
        let now = Instant::now();
        let seen = observed.get_or_insert_with(|| Observed { record: record.clone(), since: now });
        if seen.record != record {
            *seen = Observed { record, since: now };
        }
        match decide(seen, &self.holder, now) {
            Decision::Take => taken(self.put(lease, &self.holder).await),
            Decision::Wait => Ok(false),
        }
    }

    async fn renew(&self) -> Result<bool, ApiError> {
        let lease = self.api.get(&self.path()).await?;
        if lease["spec"]["holderIdentity"] != self.holder.as_str() {
            return Ok(false);
        }
        // With the version that was read: a rival's write in between wins.
        self.put(lease, &self.holder).await.map(|()| true)
    }

    async fn create(&self) -> Result<(), ApiError> {
        let metadata = json!({"name": self.name, "namespace": self.namespace});
        let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata});
        let lease = self.held(lease, &self.holder);
        self.api.create(&collection(&of(), Some(&self.namespace)), &lease).await.map(drop)
    }

    async fn put(&self, lease: Value, holder: &str) -> Result<(), ApiError> {
        self.api.replace(&self.path(), &self.held(lease, holder)).await.map(drop)
    }

    fn held(&self, mut lease: Value, holder: &str) -> Value {
        let now = Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true);
        let is_new = lease["spec"]["holderIdentity"] != holder;
        let transitions = lease["spec"]["leaseTransitions"].as_i64().unwrap_or(0) + i64::from(is_new);
        if is_new || lease["spec"]["acquireTime"].is_null() {
            lease["spec"]["acquireTime"] = now.clone().into();
        }
        lease["spec"]["holderIdentity"] = holder.into();
        lease["spec"]["renewTime"] = now.into();
        lease["spec"]["leaseDurationSeconds"] = LEASE_TIME.as_secs().into();
        lease["spec"]["leaseTransitions"] = transitions.into();
        lease
    }

    fn path(&self) -> String {
        object(&of(), Some(&self.namespace), &self.name)
    }
}

fn of() -> TypeId {
    TypeId::new("coordination.k8s.io", "v1", "leases")
}

/// Somebody else was faster: that is an answer, not a failure.
fn taken(written: Result<(), ApiError>) -> Result<bool, ApiError> {
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.is_conflict() => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_stands_still_expires_by_our_clock() {
        let now = Instant::now();
        let observed = |holder: &str| Observed { record: (holder.into(), "2099-01-01T00:00:00Z".into()), since: now };
        assert_eq!(decide(&observed("other"), "me", now), Decision::Wait);
        assert_eq!(decide(&observed("other"), "me", now + LEASE_TIME), Decision::Take);
        assert_eq!(decide(&observed(""), "me", now), Decision::Take);
        assert_eq!(decide(&observed("me"), "me", now), Decision::Take);
    }
}
