//! Objects in memory: pushed through admission, watched by version.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use chrono::Utc;
use serde_json::Value;
use tidegate_admission::{
    Change, Deletion, File, LastChange, Outcome, Plan, Provenance, Rules, Stamp, State, Verdict, delete_object,
    drain_namespace, next_object, plan,
};
use tidegate_controllers::hooks::HookOptions;
use tidegate_model::kinds::KindSet;
use tidegate_model::{EncodedObject, GroupResource, Object, ObjectKey, ResourceVersion};
use tidegate_runtime::{ApiError, ControllerReport, Fault, Item, Manager, ManagerOptions, WatchEvent};
use tokio::sync::watch;

use crate::plane::moment;

/// A test that waits longer for a state is stuck.
pub const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Clone)]
pub struct World(pub Arc<Shared>);

pub struct Shared {
    state: Mutex<Stored>,
    /// Moves with every change.
    pub changed: watch::Sender<ResourceVersion>,
    /// Whether pages of an index's records are given.
    pub gives_records: watch::Sender<bool>,
    /// Kinds whose watches say nothing after their start.
    pub held_back: watch::Sender<BTreeSet<String>>,
}

pub struct Stored {
    pub kinds: KindSet,
    pub objects: BTreeMap<ObjectKey, (Object, ResourceVersion)>,
    pub log: Vec<WatchEvent>,
    pub version: ResourceVersion,
    pub rows: BTreeMap<(String, String), Bytes>,
    pub lease_term: i64,
    /// By key: how often a status was written.
    pub status_writes: BTreeMap<ObjectKey, usize>,
    pub fuse: Option<Fuse>,
}

/// Lets so many writes that clean up after a hook pass, and then none at all.
pub struct Fuse {
    left: usize,
    pub is_blown: bool,
}

impl World {
    pub fn new() -> Self {
        let version = ResourceVersion::line_start(1_763_240_000);
        let state = Stored {
            kinds: KindSet::builtin(),
            objects: BTreeMap::new(),
            log: Vec::new(),
            version,
            rows: BTreeMap::new(),
            lease_term: 0,
            status_writes: BTreeMap::new(),
            fuse: None,
        };
        let (changed, gives_records) = (watch::Sender::new(version), watch::Sender::new(true));
        let held_back = watch::Sender::default();
        Self(Arc::new(Shared { state: Mutex::new(state), changed, gives_records, held_back }))
    }

    /// A manager with all controllers, which runs until it is dropped.
    pub fn manage(&self, hooks: HookOptions) -> Running {
        let options = ManagerOptions::sole("system", "manager", "test");
        let manager = Manager::new(Arc::new(self.clone()), options);
        tidegate_controllers::add_to(&manager, hooks).unwrap();
        let (stop, stopped) = watch::channel(false);
        let running = manager.clone();
        let task = tokio::spawn(async move { running.run(stopped).await });
        Running { manager, stop, task }
    }

    pub fn hold_back(&self, kind: &str, holds: bool) {
        self.0.held_back.send_modify(|held| {
            let _ = if holds { held.insert(kind.into()) } else { held.remove(kind) };
        });
    }

    pub fn state(&self) -> MutexGuard<'_, Stored> {
        self.0.state.lock().unwrap()
    }

    pub fn push(&self, files: &[(&str, &str)], removed: &[&str]) -> Result<(), String> {
        let mut state = self.state();
        let files = files.iter().map(|(path, text)| File { path, bytes: text.as_bytes() }).collect();
        let change = Change { files, removed: removed.to_vec(), ..Change::default() };
        let Ok(verdict) = plan(&state.kinds, &Seen(&state), &rules(), &change);
        match verdict {
            Verdict::Admit(plan) => state.apply(plan),
            Verdict::Reject(diagnostics) => return Err(diagnostics.iter().map(|d| format!("{d}\n")).collect()),
        }
        self.0.changed.send_replace(state.version);
        Ok(())
    }

    /// A YAML file that does not matter.
    pub fn apply(&self, path: &str, text: &str) {
        self.push(&[(path, text)], &[]).unwrap();
    }

    pub fn get(&self, kind: &str, name: &str) -> Option<Value> {
        let state = self.state();
        let found = state.objects.values().find(|(object, _)| object.kind() == kind && object.name() == name);
        found.map(|(object, _)| object.clone().into_value())
    }

    /// `Ready`, the reason why not, or that nothing is said of this generation.
    pub fn ready(&self, kind: &str, name: &str) -> String {
        let Some(object) = self.get(kind, name) else { return "gone".into() };
        if object["status"]["observedGeneration"] != object["metadata"]["generation"] {
            return "unobserved".into();
        }
        let ready = condition(&object, "Ready");
        if ready["status"] == "True" { "Ready".into() } else { ready["reason"].as_str().unwrap_or("unsaid").into() }
    }

    pub fn version_of(&self, kind: &str, name: &str) -> String {
        let state = self.state();
        let found = state.objects.values().find(|(object, _)| object.kind() == kind && object.name() == name);
        found.unwrap().1.to_string()
    }

    /// See [`Fuse`].
    pub fn break_off_after(&self, left: usize) {
        self.state().fuse = Some(Fuse { left, is_blown: false });
    }

    pub fn is_broken_off(&self) -> bool {
        self.state().fuse.as_ref().is_some_and(|fuse| fuse.is_blown)
    }

    pub async fn until(&self, what: &str, holds: impl Fn(&World) -> bool) {
        let mut changed = self.0.changed.subscribe();
        let wait = async {
            while !holds(self) {
                changed.changed().await.unwrap();
            }
        };
        if tokio::time::timeout(PATIENCE, wait).await.is_err() {
            panic!("{what} did not come true; there is: {:#?}", self.statuses());
        }
    }

    pub async fn until_ready(&self, kind: &str, name: &str, expected: &str) {
        self.until(&format!("{kind} {name} is {expected}"), |world| world.ready(kind, name) == expected).await;
    }

    pub fn writes(&self) -> usize {
        self.state().status_writes.values().sum()
    }

    fn statuses(&self) -> Vec<String> {
        let state = self.state();
        let status = |object: &Object| object.status().map(ToString::to_string).unwrap_or_default();
        state.objects.iter().map(|(key, (object, _))| format!("{key}: {}", status(object))).collect()
    }
}

pub fn condition<'o>(object: &'o Value, kind: &str) -> &'o Value {
    let conditions = object["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    conditions.iter().find(|condition| condition["type"] == kind).unwrap_or(&Value::Null)
}

pub struct Running {
    pub manager: Manager,
    stop: watch::Sender<bool>,
    task: tokio::task::JoinHandle<()>,
}

impl Running {
    /// Drains and saves.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        self.task.await.unwrap();
    }

    /// As if the process had been killed.
    pub async fn abort(self) {
        self.task.abort();
        let _ = self.task.await;
    }

    /// Until every controller has heard of all that there is, its own writes
    /// among it, and has nothing to do.
    pub async fn idle(&self, world: &World) {
        let is_idle = || {
            let version = world.state().version.to_string();
            let has_heard = |report: &ControllerReport| report.checkpoint.as_ref() == Some(&version);
            let rests = |report: &ControllerReport| report.queue_depth + report.in_flight == 0;
            let reports = self.manager.reports();
            !reports.is_empty() && reports.iter().all(|report| has_heard(report) && rests(report))
        };
        let wait = async {
            while !is_idle() {
                moment().await;
            }
        };
        if tokio::time::timeout(PATIENCE, wait).await.is_err() {
            panic!("at {} there is work: {:#?}", world.state().version, self.manager.reports());
        }
    }

    pub fn controllers(&self) -> Vec<String> {
        self.manager.reports().iter().map(|report| report.controller.to_string()).collect()
    }
}

fn rules() -> Rules {
    Rules::unrestricted("shop", "all")
}

impl Stored {
    /// Whether a write may pass; `cleans` if it is one that cleans up.
    pub fn burn(&mut self, cleans: bool) -> Result<(), ApiError> {
        let Some(fuse) = &mut self.fuse else { return Ok(()) };
        fuse.is_blown |= cleans && fuse.left == 0;
        if fuse.is_blown {
            return Err(ApiError::new(Fault::Unavailable, "broken off"));
        }
        fuse.left -= usize::from(cleans);
        Ok(())
    }

    pub fn mint(&mut self) -> ResourceVersion {
        self.version = ResourceVersion::from_raw(self.version.raw() + 3);
        self.version
    }

    pub fn put(&mut self, key: ObjectKey, object: Object) -> Item {
        let version = self.mint();
        let item = item(&key, &object, version);
        let is_new = self.objects.insert(key, (object, version)).is_none();
        self.log.push(if is_new { WatchEvent::Added(item.clone()) } else { WatchEvent::Modified(item.clone()) });
        item
    }

    pub fn remove(&mut self, key: &ObjectKey) {
        if let Some((object, _)) = self.objects.remove(key) {
            let version = self.mint();
            self.log.push(WatchEvent::Deleted(item(key, &object, version)));
        }
    }

    fn apply(&mut self, plan: Plan) {
        let now = Utc::now();
        for put in plan.puts {
            let uid = format!("uid-{}", self.version.raw());
            let rules = rules();
            let source = Provenance { repository: &rules.repository, path: &put.place.path };
            let current = self.objects.get(&put.key).map(|(object, _)| object);
            match next_object(
                &put.desired,
                current,
                &Stamp { now, new_uid: &uid, source, change: LastChange::default() },
            ) {
                Outcome::Create(next) | Outcome::Update(next) => drop(self.put(put.key, next)),
                Outcome::Unchanged => {}
                Outcome::Terminating => panic!("admitted although it is being deleted: {}", put.key),
            }
        }
        for key in plan.drains {
            let drained = drain_namespace(&self.objects[&key].0, now).unwrap();
            self.put(key, drained);
        }
        for key in plan.deletes {
            match delete_object(&self.objects[&key].0, now) {
                Deletion::Remove => self.remove(&key),
                Deletion::Stamp(stamped) => drop(self.put(key, stamped)),
                Deletion::Waiting => {}
            }
        }
        self.kinds = plan.kinds;
    }
}

pub fn item(key: &ObjectKey, object: &Object, version: ResourceVersion) -> Item {
    Item { key: key.clone(), version, json: EncodedObject::new(object).stamp(version).into() }
}

struct Seen<'s>(&'s Stored);

impl State for Seen<'_> {
    type Error = std::convert::Infallible;

    fn current(&self, key: &ObjectKey) -> Result<Option<Arc<Object>>, Self::Error> {
        Ok(self.0.objects.get(key).map(|(object, _)| Arc::new(object.clone())))
    }

    fn defined_at(&self, path: &str) -> Result<Vec<ObjectKey>, Self::Error> {
        let defined = |object: &Object| Provenance::of(object).is_some_and(|provenance| provenance.path == path);
        Ok(self.0.objects.iter().filter(|(_, (object, _))| defined(object)).map(|(key, _)| key.clone()).collect())
    }

    fn count(&self, resource: &GroupResource, namespace: Option<&str>) -> Result<u64, Self::Error> {
        let fits = |key: &&ObjectKey| {
            key.resource == *resource && namespace.is_none_or(|name| key.namespace.as_deref() == Some(name))
        };
        Ok(self.0.objects.keys().filter(fits).count() as u64)
    }
}
