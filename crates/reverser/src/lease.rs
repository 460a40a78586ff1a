//! Which of several replicas works: a Lease of coordination.k8s.io.
//!
//! Invariants: whoever cannot renew stops [`STOP_BEFORE`] the time at which
//! another may start, counted from before its last good renewal was sent.
//! Times of others are never compared with ours: only how long a record has
//! not changed, by our own clock. An operator that somebody runs by hand goes
//! first: replicas hand the work over and wait.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use chrono::{SecondsFormat, Utc};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::claims::TypeId;
use crate::cluster::{Api, ApiError, Obstacle, collection, object};
use crate::repeats::Repeats;

const LEASE_TIME: Duration = Duration::from_secs(15);
/// Without a renewal for this long we have lost.
const RENEW_DEADLINE: Duration = Duration::from_secs(10);
/// What is left to end what we do: a push is killed in milliseconds.
pub const STOP_BEFORE: Duration = Duration::from_secs(LEASE_TIME.as_secs() - RENEW_DEADLINE.as_secs());
const RETRY: Duration = Duration::from_secs(2);
/// Who asks the holder to hand over, and when it last did.
const WANTED_BY: &str = "reverser.tidegate.dev/wanted-by";
const WANTED_AT: &str = "reverser.tidegate.dev/wanted-at";

/// Who goes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rank {
    /// One of a Deployment's.
    Replica,
    /// Somebody runs it outside of the cluster, and wants it to work.
    ByHand,
}

pub struct Lease {
    api: Api,
    namespace: String,
    name: String,
    /// Who we are.
    holder: String,
    rank: Rank,
}

/// Why a lease is not ours any more, or not for long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    Lost,
    /// Somebody runs an operator by hand: it is to have the work.
    Wanted,
}

/// A time during which nobody else works. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Term(Arc<Mutex<Until>>);

#[derive(Clone, Copy, Debug)]
enum Until {
    Endless,
    /// So long after this renewal.
    Since(Stamp),
    Over,
}

/// By two clocks: the first stands still while a machine sleeps, the second
/// jumps when somebody sets it.
#[derive(Clone, Copy, Debug)]
struct Stamp(Instant, SystemTime);

impl Stamp {
    fn now() -> Self {
        Self(Instant::now(), SystemTime::now())
    }

    fn age(self) -> Duration {
        self.0.elapsed().max(self.1.elapsed().unwrap_or_default())
    }
}

impl Term {
    /// Of the only replica.
    pub fn endless() -> Self {
        Self(Arc::new(Mutex::new(Until::Endless)))
    }

    fn since(sent: Stamp) -> Self {
        Self(Arc::new(Mutex::new(Until::Since(sent))))
    }

    fn renew(&self, sent: Stamp) {
        self.set(Until::Since(sent));
    }

    /// Another works: nothing begins any more.
    pub fn end(&self) {
        self.set(Until::Over);
    }

    fn set(&self, until: Until) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }

    /// How much of it is left.
    fn left(&self) -> Duration {
        match *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Until::Endless => Duration::MAX,
            Until::Since(renewed) => RENEW_DEADLINE.saturating_sub(renewed.age()),
            Until::Over => Duration::ZERO,
        }
    }

    /// Whether we may push. A machine that slept finds out here, before
    /// anything that it remembers goes anywhere.
    pub fn is_on(&self) -> bool {
        !self.left().is_zero()
    }
}

/// What a Lease says.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct Record {
    holder: String,
    renewed: String,
    wanted_by: String,
    wanted_at: String,
}

/// What it says, and since when it has said so to us.
#[derive(Clone, Debug)]
struct Observed {
    record: Record,
    held_since: Instant,
    wanted_since: Instant,
}

impl Observed {
    fn new(record: Record, now: Instant) -> Self {
        Self { record, held_since: now, wanted_since: now }
    }

    fn update(&mut self, record: Record, now: Instant) {
        if (&self.record.holder, &self.record.renewed) != (&record.holder, &record.renewed) {
            self.held_since = now;
        }
        if (&self.record.wanted_by, &self.record.wanted_at) != (&record.wanted_by, &record.wanted_at) {
            self.wanted_since = now;
        }
        self.record = record;
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Decision {
    Take,
    /// Ask the holder to hand over.
    Want,
    Wait,
}

fn decide(observed: &Observed, own: &str, rank: Rank, now: Instant) -> Decision {
    let is_over = |since: Instant| now.saturating_duration_since(since) >= LEASE_TIME;
    let Record { holder, wanted_by, .. } = &observed.record;
    let is_free = holder.is_empty() || holder == own || is_over(observed.held_since);
    let is_wanted = is_by_another(wanted_by, own) && !is_over(observed.wanted_since);
    match (is_free, rank) {
        (true, Rank::ByHand) => Decision::Take,
        (true, Rank::Replica) if !is_wanted => Decision::Take,
        (false, Rank::ByHand) => Decision::Want,
        (_, Rank::Replica) => Decision::Wait,
    }
}

fn is_by_another(name: &str, own: &str) -> bool {
    !name.is_empty() && name != own
}

enum Renewed {
    Yes,
    /// Yes, and somebody asks for it.
    Wanted,
    No,
}

impl Lease {
    pub fn new(api: Api, namespace: &str, name: &str, holder: &str, rank: Rank) -> Self {
        Self { api, namespace: namespace.into(), name: name.into(), holder: holder.into(), rank }
    }

    /// Waits until the lease is ours, and says meanwhile why it is not.
    pub async fn acquire(&self, mut waits: impl FnMut(String)) -> Term {
        let (mut observed, mut repeats) = (None::<Observed>, Repeats::default());
        loop {
            let sent = Stamp::now();
            match self.try_acquire(&mut observed).await {
                Ok(true) => return Term::since(sent),
                Ok(false) => {
                    repeats.end();
                    let holder = observed.as_ref().map_or("", |observed| &observed.record.holder);
                    waits(format!("another replica works: {holder}"));
                }
                Err(error) => {
                    let obstacle = Obstacle::new(&self.api, &error).to_string();
                    if repeats.is_new(&obstacle) {
                        tracing::warn!("waiting for the lease: {obstacle}");
                    }
                    waits(format!("the lease cannot be read or written: {obstacle}"));
                }
            }
            sleep(RETRY).await;
        }
    }

    /// Renews until that fails for too long, or another one holds it or asks
    /// for it.
    pub async fn keep(&self, term: &Term) -> Ended {
        let ended = self.renew_until(term).await;
        if ended == Ended::Lost {
            term.end();
        }
        ended
    }

    async fn renew_until(&self, term: &Term) -> Ended {
        loop {
            sleep(RETRY.min(term.left())).await;
            let (sent, left) = (Stamp::now(), term.left());
            if left.is_zero() {
                tracing::error!("the lease is lost");
                return Ended::Lost;
            }
            match timeout(left.min(RETRY), self.renew()).await {
                Ok(Ok(Renewed::Yes)) => term.renew(sent),
                Ok(Ok(Renewed::Wanted)) => {
                    term.renew(sent);
                    return Ended::Wanted;
                }
                Ok(Ok(Renewed::No)) => {
                    tracing::error!("another replica holds the lease");
                    return Ended::Lost;
                }
                Ok(Err(error)) => tracing::warn!(error = error.told(), "the lease was not renewed"),
                Err(_) => tracing::warn!("the lease was not renewed in time"),
            }
        }
    }

    /// Lets another start at once; also withdraws what we asked for.
    pub async fn release(&self) {
        let released = async {
            let lease = self.api.get(&self.path()).await?;
            let record = record(&lease);
            if record.holder == self.holder {
                self.put(self.held(lease, "")).await
            } else if record.wanted_by == self.holder {
                self.put(wanted(lease, None)).await
            } else {
                Ok(())
            }
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
        let (record, now) = (record(&lease), Instant::now());
        let seen = observed.get_or_insert_with(|| Observed::new(record.clone(), now));
        seen.update(record, now);
        match decide(seen, &self.holder, self.rank, now) {
            // What anybody asked for is granted, or too old.
            Decision::Take => taken(self.put(wanted(self.held(lease, &self.holder), None)).await),
            Decision::Want => {
                if seen.record.wanted_by != self.holder {
                    tracing::info!(holder = seen.record.holder, "asking the one that works to hand over");
                }
                taken(self.put(wanted(lease, Some(&self.holder))).await).map(|_| false)
            }
            Decision::Wait => Ok(false),
        }
    }

    async fn renew(&self) -> Result<Renewed, ApiError> {
        loop {
            let lease = self.api.get(&self.path()).await?;
            let Record { holder, wanted_by, .. } = record(&lease);
            if holder != self.holder {
                return Ok(Renewed::No);
            }
            // With the version that was read: a rival's write in between wins.
            match self.put(self.held(lease, &self.holder)).await {
                // Somebody asked for it just now: look again.
                Err(error) if error.is_conflict() => {}
                Err(error) => return Err(error),
                Ok(()) if self.rank == Rank::Replica && is_by_another(&wanted_by, &self.holder) => {
                    return Ok(Renewed::Wanted);
                }
                Ok(()) => return Ok(Renewed::Yes),
            }
        }
    }

    /// In a namespace that may not be there: whoever runs this by hand has
    /// perhaps installed the four kinds alone.
    async fn create(&self) -> Result<(), ApiError> {
        let metadata = json!({"name": self.name, "namespace": self.namespace});
        let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata});
        let (path, lease) = (collection(&of(), Some(&self.namespace)), self.held(lease, &self.holder));
        match self.api.create(&path, &lease).await {
            Err(error) if error.is_not_found() => {
                let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}});
                tracing::info!(namespace = self.namespace, "making the namespace of the lease");
                self.api.create("/api/v1/namespaces", &namespace).await?;
                self.api.create(&path, &lease).await.map(drop)
            }
            created => created.map(drop),
        }
    }

    async fn put(&self, lease: Value) -> Result<(), ApiError> {
        self.api.replace(&self.path(), &lease).await.map(drop)
    }

    fn held(&self, mut lease: Value, holder: &str) -> Value {
        let now = now();
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

fn record(lease: &Value) -> Record {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (spec, annotations) = (&lease["spec"], &lease["metadata"]["annotations"]);
    Record {
        holder: text(&spec["holderIdentity"]),
        renewed: text(&spec["renewTime"]),
        wanted_by: text(&annotations[WANTED_BY]),
        wanted_at: text(&annotations[WANTED_AT]),
    }
}

/// The same, asked for by somebody or by nobody.
fn wanted(mut lease: Value, by: Option<&str>) -> Value {
    if !lease["metadata"]["annotations"].is_object() {
        lease["metadata"]["annotations"] = json!({});
    }
    if let Value::Object(annotations) = &mut lease["metadata"]["annotations"] {
        annotations.retain(|name, _| name != WANTED_BY && name != WANTED_AT);
        if let Some(by) = by {
            annotations.insert(WANTED_BY.into(), by.into());
            annotations.insert(WANTED_AT.into(), now().into());
        }
    }
    lease
}

fn now() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true)
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
#[path = "lease_tests.rs"]
mod tests;
