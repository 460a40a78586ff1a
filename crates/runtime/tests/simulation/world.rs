//! A plane that keeps its promises and nothing more: calls are slow, fail
//! before or after their effect, streams break off and repeat, the window
//! shrinks. Everything by one seed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use tidegate_model::{ObjectKey, ResourceVersion, StatusMerge, merge_status};
use tidegate_runtime::{
    ApiError, Fault, Fence, Item, Kind, Lease, LeaseRequest, ListPage, Plane, Precondition, Source, StateChange,
    StateRow, WatchEvent, WatchStream,
};
use tokio::time::Instant;

pub fn kind() -> Kind {
    Kind::new("example.com/v1", "Thing", "things")
}

pub struct World {
    pub rng: StdRng,
    pub objects: BTreeMap<ObjectKey, Thing>,
    /// What reconcilers made outside: must follow the objects.
    pub outside: BTreeMap<ObjectKey, i64>,
    pub faults: bool,
    /// Who is frozen until when.
    pub frozen: BTreeMap<Arc<str>, Instant>,
    log: Vec<WatchEvent>,
    /// A watch from before this has expired.
    floor: ResourceVersion,
    version: ResourceVersion,
    rows: BTreeMap<(String, String), Bytes>,
    lease: Option<(Arc<str>, i64, Instant)>,
}

impl Thing {
    pub fn is_stalled(&self) -> bool {
        let mut conditions = self.status["conditions"].as_array().into_iter().flatten();
        conditions.any(|condition| condition["type"] == "Stalled" && condition["reason"] == "Quarantined")
    }
}

#[derive(Clone)]
pub struct Thing {
    pub generation: i64,
    pub status: Value,
    version: ResourceVersion,
}

/// One manager's way to the world.
#[derive(Clone)]
pub struct Way {
    pub world: Arc<Mutex<World>>,
    pub holder: Arc<str>,
}

impl World {
    pub fn new(seed: u64) -> Self {
        let start = ResourceVersion::line_start(1_763_240_000);
        Self {
            rng: StdRng::seed_from_u64(seed),
            objects: BTreeMap::new(),
            outside: BTreeMap::new(),
            faults: true,
            frozen: BTreeMap::new(),
            log: Vec::new(),
            floor: start,
            version: start,
            rows: BTreeMap::new(),
            lease: None,
        }
    }

    fn mint(&mut self) -> ResourceVersion {
        let stride = self.rng.random_range(1..4);
        self.version = ResourceVersion::from_raw(self.version.raw() + stride);
        self.version
    }

    /// A push: a new object or a new generation.
    pub fn push(&mut self, key: &ObjectKey) {
        let version = self.mint();
        let thing = match self.objects.get(key) {
            Some(thing) => Thing { generation: thing.generation + 1, version, ..thing.clone() },
            None => Thing { generation: 1, status: json!({}), version },
        };
        let item = item(key, &thing);
        let is_new = self.objects.insert(key.clone(), thing).is_none();
        self.log.push(if is_new { WatchEvent::Added(item) } else { WatchEvent::Modified(item) });
    }

    /// Somebody else's.
    pub fn write_status(&mut self, key: &ObjectKey, write: impl FnOnce(&mut Value)) {
        let version = self.mint();
        let Some(thing) = self.objects.get_mut(key) else { return };
        write(&mut thing.status);
        thing.version = version;
        let item = item(key, thing);
        self.log.push(WatchEvent::Modified(item));
    }

    pub fn delete(&mut self, key: &ObjectKey) {
        if let Some(mut thing) = self.objects.remove(key) {
            thing.version = self.mint();
            self.log.push(WatchEvent::Deleted(item(key, &thing)));
        }
    }

    pub fn expire(&mut self) {
        self.floor = self.version;
        self.log.clear();
    }

    /// The rows of quarantined keys, and the generation that was tried; 0 if
    /// it is not known.
    pub fn quarantined(&self) -> BTreeMap<String, i64> {
        let rows = self.rows.iter().filter(|((_, name), _)| name.starts_with("unfinished/"));
        let parsed = rows.map(|((_, name), value)| (name.clone(), serde_json::from_slice::<Value>(value).unwrap()));
        let parked = parsed.filter(|(_, row)| row.get("dueMs").is_none());
        parked.map(|(name, row)| (name, row["generation"].as_i64().unwrap())).collect()
    }

    pub fn release_all(&mut self, controller: &str) {
        self.rows.insert((controller.into(), "release/*".into()), Bytes::new());
    }

    pub fn version(&self) -> ResourceVersion {
        self.version
    }

    pub fn rows(&self) -> Vec<String> {
        self.rows.iter().map(|((_, name), value)| format!("{name} = {}", String::from_utf8_lossy(value))).collect()
    }

    fn check_fence(&self, fence: Option<&Fence>) -> Result<(), ApiError> {
        let Some(fence) = fence else { return Ok(()) };
        match &self.lease {
            Some((holder, term, _)) if *holder == fence.holder && *term == fence.transitions => Ok(()),
            _ => Err(ApiError::new(Fault::LeaseLost, "not yours")),
        }
    }
}

fn item(key: &ObjectKey, thing: &Thing) -> Item {
    let value = json!({"apiVersion": "example.com/v1", "kind": "Thing",
        "metadata": {"name": &*key.name, "generation": thing.generation}, "status": thing.status});
    Item { key: key.clone(), version: thing.version, json: Bytes::from(value.to_string()) }
}

impl Way {
    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    /// The way there: slow, frozen, or cut before anything happened.
    async fn there(&self) -> Result<(), ApiError> {
        let (delay, cut) = {
            let mut world = self.world();
            let until = world.frozen.get(&self.holder).copied().unwrap_or_else(Instant::now);
            let frozen = until.saturating_duration_since(Instant::now());
            let delay = Duration::from_millis(if world.faults { world.rng.random_range(0..20) } else { 1 });
            (frozen + delay, world.faults && world.rng.random_bool(0.03))
        };
        tokio::time::sleep(delay).await;
        if cut { Err(ApiError::new(Fault::Unavailable, "cut on the way there")) } else { Ok(()) }
    }

    /// The way back: it has happened, and the caller does not learn of it.
    fn back<T>(&self, answer: T) -> Result<T, ApiError> {
        let mut world = self.world();
        let cut = world.faults && world.rng.random_bool(0.03);
        if cut { Err(ApiError::new(Fault::Unavailable, "cut on the way back")) } else { Ok(answer) }
    }
}

#[async_trait]
impl Source for Way {
    async fn list(&self, _kind: &Kind, after: Option<&str>) -> Result<ListPage, ApiError> {
        self.there().await?;
        let page = {
            let mut world = self.world();
            // A snapshot is of one version: a change between pages ends it.
            let (version, from) = match after.and_then(|after| after.split_once(' ')) {
                Some((version, from)) => (version.parse().unwrap(), from.to_owned()),
                None => (world.version, String::new()),
            };
            if version != world.version {
                return Err(ApiError::new(Fault::Expired, "the snapshot is gone"));
            }
            let size = world.rng.random_range(1..5);
            let rest = world.objects.iter().filter(|(key, _)| *key.name > *from);
            let items: Vec<Item> = rest.clone().take(size).map(|(key, thing)| item(key, thing)).collect();
            let next = (rest.count() > size).then(|| format!("{version} {}", items.last().unwrap().key.name));
            ListPage { version, items, next }
        };
        self.back(page)
    }

    async fn watch(&self, _kind: &Kind, after: ResourceVersion) -> Result<Box<dyn WatchStream>, ApiError> {
        self.there().await?;
        let mut world = self.world();
        if after < world.floor {
            return Err(ApiError::new(Fault::Expired, "too old"));
        }
        // Sometimes what was seen before comes again.
        let known = world.log.iter().filter(|event| event.version() <= after).count();
        let again = if world.faults { world.rng.random_range(0..=known.min(2)) } else { 0 };
        let sent = world.log.get(known - again).map_or(after, |event| before(event.version()));
        Ok(Box::new(Stream { way: self.clone(), sent: sent.min(after) }))
    }
}

fn before(version: ResourceVersion) -> ResourceVersion {
    ResourceVersion::from_raw(version.raw() - 1)
}

struct Stream {
    way: Way,
    sent: ResourceVersion,
}

#[async_trait]
impl WatchStream for Stream {
    async fn next(&mut self) -> Result<Vec<WatchEvent>, ApiError> {
        loop {
            self.way.there().await?;
            {
                let mut world = self.way.world();
                if self.sent < world.floor {
                    return Err(ApiError::new(Fault::Expired, "too slow"));
                }
                let most = world.rng.random_range(1..4);
                let new = world.log.iter().filter(|event| event.version() > self.sent);
                let mut events: Vec<WatchEvent> = new.take(most).cloned().collect();
                if events.is_empty() && world.rng.random_bool(0.1) {
                    events.push(WatchEvent::Bookmark(world.version));
                }
                if let Some(last) = events.last() {
                    self.sent = last.version().max(self.sent);
                    return Ok(events);
                }
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

#[async_trait]
impl Plane for Way {
    async fn get(&self, _kind: &Kind, key: &ObjectKey) -> Result<Option<Item>, ApiError> {
        self.there().await?;
        let found = self.world().objects.get(key).map(|thing| item(key, thing));
        self.back(found)
    }

    async fn patch_status(&self, _kind: &Kind, at: &Precondition, patch: Value) -> Result<Item, ApiError> {
        self.there().await?;
        let written = {
            let mut world = self.world();
            world.check_fence(at.fence.as_ref())?;
            let version = world.mint();
            let Some(thing) = world.objects.get_mut(&at.key) else {
                return Err(ApiError::new(Fault::NotFound, "gone"));
            };
            if thing.version != at.version {
                return Err(ApiError::new(Fault::Conflict, "changed"));
            }
            let context = StatusMerge { now: Default::default(), generation: thing.generation };
            let status = merge_status(Some(&thing.status), &patch, &context).unwrap().status;
            if status == thing.status {
                return Ok(item(&at.key, thing));
            }
            (thing.status, thing.version) = (status, version);
            let written = item(&at.key, thing);
            world.log.push(WatchEvent::Modified(written.clone()));
            written
        };
        self.back(written)
    }

    async fn patch_finalizers(
        &self,
        _kind: &Kind,
        _at: &Precondition,
        _add: &[String],
        _remove: &[String],
    ) -> Result<Option<Item>, ApiError> {
        Err(ApiError::new(Fault::Invalid, "no finalizers here"))
    }

    async fn lease(&self, request: &LeaseRequest) -> Result<Lease, ApiError> {
        self.there().await?;
        let lease = {
            let mut world = self.world();
            match request {
                LeaseRequest::Acquire { holder, duration, .. } => {
                    let (theirs, term, ends) = world.lease.clone().unwrap_or(("".into(), 0, Instant::now()));
                    if theirs == *holder || theirs.is_empty() || ends <= Instant::now() {
                        world.lease = Some((holder.clone(), term + 1, Instant::now() + *duration));
                    }
                }
                LeaseRequest::Renew { fence, duration } => {
                    world.check_fence(Some(fence))?;
                    world.lease = Some((fence.holder.clone(), fence.transitions, Instant::now() + *duration));
                }
                LeaseRequest::Release { fence } => {
                    world.check_fence(Some(fence))?;
                    world.lease = Some(("".into(), fence.transitions, Instant::now()));
                }
            }
            let (holder, transitions, _) = world.lease.clone().unwrap();
            Lease { holder, transitions }
        };
        self.back(lease)
    }

    async fn state_read(&self, controller: &str, prefix: &str, after: Option<&str>) -> Result<Vec<StateRow>, ApiError> {
        self.there().await?;
        let rows = {
            let mut world = self.world();
            let most = world.rng.random_range(1..4);
            let rows = world.rows.iter().filter(|((owner, name), _)| {
                owner == controller && name.starts_with(prefix) && after.is_none_or(|after| **name > *after)
            });
            rows.take(most)
                .map(|((_, name), value)| StateRow { name: name.clone(), value: value.clone() })
                .collect::<Vec<_>>()
        };
        self.back(rows)
    }

    async fn state_get(&self, controller: &str, names: &[String]) -> Result<Vec<StateRow>, ApiError> {
        self.there().await?;
        let rows = {
            let world = self.world();
            let row = |name: &String| world.rows.get(&(controller.to_owned(), name.clone())).cloned();
            let found = names.iter().filter_map(|name| Some(StateRow { name: name.clone(), value: row(name)? }));
            found.collect::<Vec<_>>()
        };
        self.back(rows)
    }

    async fn state_write(
        &self,
        controller: &str,
        fence: Option<&Fence>,
        changes: Vec<StateChange>,
    ) -> Result<(), ApiError> {
        self.there().await?;
        {
            let mut world = self.world();
            world.check_fence(fence)?;
            for StateChange { name, value } in changes {
                let key = (controller.to_owned(), name);
                match value {
                    Some(value) => world.rows.insert(key, value),
                    None => world.rows.remove(&key),
                };
            }
        }
        self.back(())
    }
}
