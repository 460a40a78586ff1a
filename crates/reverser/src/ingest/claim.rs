//! One claim's watch: reads, cleans and compares in its own task, so that
//! many claims use many cores; tells the engine what changed.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use prometheus_client::metrics::counter::Counter;
use serde_json::Value;
use tidegate_model::mirror::ResourceKey;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::listing::Listing;
use super::names::Names;
use super::prepare::{Prepared, prepare};
use super::table::{Table, Transition};
use crate::attribution::{Identity, Observed, Operation};
use crate::change::{Listed, State, Version, What};
use crate::claims::ClaimId;
use crate::cluster::{Api, ApiError, Consumer, Cue, Follow, collection, follow};

/// A change, and what attribution needs to know of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Seen {
    pub observed: Observed,
    pub key: ResourceKey,
    pub what: What,
    pub seen_at: Instant,
}

/// What a claim tells the engine.
#[derive(Debug)]
pub enum Told {
    /// Everything that there is. Comes after each list that was asked for.
    Listed(Vec<Listed>),
    Changed(Box<Seen>),
    Failed(String),
    Recovered,
}

/// The engine's end of a claim.
#[derive(Clone, Debug)]
pub struct ClaimWatch {
    /// Which of several watches of one claim, one after the other.
    run: u64,
    cue: Cue,
    wants_list: Arc<AtomicBool>,
    scanned: Counter,
}

impl ClaimWatch {
    pub fn new(run: u64, scanned: Counter) -> Self {
        Self { run, cue: Cue::default(), wants_list: Arc::default(), scanned }
    }

    /// Lists again and tells the whole list.
    pub fn ask_list(&self) {
        self.wants_list.store(true, Ordering::Release);
        self.cue.relist();
    }

    /// The API is said to answer.
    pub fn retry(&self) {
        self.cue.retry();
    }
}

/// Runs until it is dropped or nobody listens. What a list has of contents is
/// in `folder` until it is written.
pub async fn watch_claim(
    api: Api,
    id: ClaimId,
    watch: ClaimWatch,
    folder: PathBuf,
    to: mpsc::Sender<(ClaimId, u64, Told)>,
) {
    let path = collection(&id.of, id.namespace.as_deref());
    let (cue, list) = (watch.cue.clone(), Some(Listing::default()));
    let (table, names) = (Table::default(), Names::default());
    let mut claim = Claim { id, watch, folder, to, table, names, list, is_known: false };
    follow(Follow { api, path, cue }, &mut claim).await;
}

struct Claim {
    id: ClaimId,
    watch: ClaimWatch,
    folder: PathBuf,
    to: mpsc::Sender<(ClaimId, u64, Told)>,
    table: Table,
    names: Names,
    /// The list that is being read, if somebody wants it.
    list: Option<Listing>,
    /// Whether a list was complete before: only then is a difference a change.
    is_known: bool,
}

impl Claim {
    async fn tell(&self, told: Told) {
        // The engine ends first only when everything ends.
        let _ = self.to.send((self.id.clone(), self.watch.run, told)).await;
    }

    fn read(&mut self, object: Value) -> Option<Prepared> {
        self.watch.scanned.inc();
        let mut object = prepare(&self.id.of, object)?;
        self.names.share(&mut object);
        Some(object)
    }

    async fn tell_change(&self, object: Prepared, transition: Transition) {
        let what = match (transition.operation, &object.content) {
            (Operation::Create | Operation::Update, Some(content)) => {
                What::Put(State { version: object.version.clone(), yaml: content.yaml.clone() })
            }
            _ => What::Delete(object.version.clone()),
        };
        let hash = object.content.as_ref().map_or(0, |content| content.hash);
        let observed = observed(&object.key, &object.version, transition, hash, object.replicas);
        self.tell(Told::Changed(Box::new(Seen { observed, key: object.key, what, seen_at: Instant::now() }))).await;
    }
}

fn observed(
    key: &ResourceKey,
    version: &Version,
    transition: Transition,
    hash: u64,
    replicas: Option<i64>,
) -> Observed {
    Observed {
        identity: Identity {
            group: key.group.to_string(),
            resource: key.resource.to_string(),
            namespace: key.namespace.as_ref().map(ToString::to_string),
            name: key.name.to_string(),
        },
        version: key.version.to_string(),
        uid: version.uid.to_string(),
        base: transition.base,
        operation: transition.operation,
        hash,
        replicas,
    }
}

impl Consumer for Claim {
    fn restart(&mut self) {
        self.table.start_list();
        let is_wanted = !self.is_known || self.list.is_some() || self.watch.wants_list.swap(false, Ordering::AcqRel);
        self.list = is_wanted.then(Listing::default);
    }

    async fn listed(&mut self, object: Value) {
        let Some(object) = self.read(object) else { return };
        let transition = self.table.listed(&object);
        if let (Some(list), Some(content)) = (&mut self.list, &object.content) {
            let state = State { version: object.version.clone(), yaml: content.yaml.clone() };
            list.add(Listed::new(object.key.clone(), state), &self.folder).await;
        }
        if let Some(transition) = transition.filter(|_| self.is_known) {
            self.tell_change(object, transition).await;
        }
    }

    async fn complete(&mut self) {
        let was_known = std::mem::replace(&mut self.is_known, true);
        for (key, version, transition) in self.table.end_list() {
            if was_known {
                let what = What::Delete(version.clone());
                let observed = observed(&key, &version, transition, 0, None);
                self.tell(Told::Changed(Box::new(Seen { observed, key, what, seen_at: Instant::now() }))).await;
            }
        }
        if let Some(list) = self.list.take() {
            self.tell(Told::Listed(list.finish().await)).await;
        }
    }

    async fn changed(&mut self, object: Value) {
        let Some(object) = self.read(object) else { return };
        if let Some(transition) = self.table.changed(&object) {
            self.tell_change(object, transition).await;
        }
    }

    async fn gone(&mut self, object: Value) {
        let Some(mut object) = self.read(object) else { return };
        object.content = None;
        if let Some(transition) = self.table.gone(&object) {
            self.tell_change(object, transition).await;
        }
    }

    async fn failed(&mut self, error: &ApiError) {
        self.tell(Told::Failed(error.told())).await;
    }

    async fn recovered(&mut self) {
        self.tell(Told::Recovered).await;
    }
}
