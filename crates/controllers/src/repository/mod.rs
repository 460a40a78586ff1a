//! Repositories: provisioned, looked at in time, and reported on.
//!
//! The server fetches and projects, and notes on the object what is in force;
//! this decides when to look and what it means. An invalid commit and a host
//! that is away are states to report, not failures of the reconcile: both have
//! their own pace, and neither is ever quarantined.

mod interval;
mod plan;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use chrono::Utc;
use serde::Deserialize;
use tidegate_model::{Object, ObjectKey};
use tidegate_runtime::{
    AddError, ApiError, Client, Controller, ControllerOptions, Item, Kind, Manager, Next, ReconcileError, Reconciler,
};
use tokio::time::Instant;

use plan::{Memory, Step};

/// The server bounds a fetch itself, by its `remote.fetch_timeout` of a day at
/// most.
const DEADLINE: Duration = Duration::from_secs(25 * 3600);
/// As many as the server fetches at once, and some that wait for their turn.
const CONCURRENCY: usize = 16;

/// What the server found when it looked at a repository; the shape of
/// `RepositorySync` in the API.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    pub in_force: bool,
    pub reason: String,
    pub message: String,
    #[serde(default)]
    pub problems: Vec<String>,
    pub commit: Option<String>,
    pub objects: Option<u64>,
    pub files: Option<u64>,
}

/// Whoever can bring a repository up to date: the server.
#[async_trait]
pub trait Repositories: Send + Sync + 'static {
    /// `NotFound` if there is no such repository.
    async fn sync(&self, namespace: &str, name: &str) -> Result<Outcome, ApiError>;
}

pub fn kind() -> Kind {
    Kind::new("tidegate.dev/v1", "Repository", "repositories")
}

pub fn add_to(manager: &Manager, repositories: Arc<dyn Repositories>) -> Result<(), AddError> {
    let reconciler = RepositoryReconciler::new(manager.client(), repositories);
    let options = ControllerOptions { concurrency: CONCURRENCY, deadline: DEADLINE, ..ControllerOptions::default() };
    manager.add(Controller::new("repositories", kind(), reconciler).options(options))
}

pub struct RepositoryReconciler {
    kind: Kind,
    client: Client,
    repositories: Arc<dyn Repositories>,
    /// Of each repository, when it was last looked at and what was found. Lost
    /// with the process: then each is looked at once more.
    memories: Mutex<HashMap<ObjectKey, Memory>>,
}

impl RepositoryReconciler {
    pub fn new(client: Client, repositories: Arc<dyn Repositories>) -> Self {
        Self { kind: kind(), client, repositories, memories: Mutex::default() }
    }

    fn memory(&self, key: &ObjectKey) -> Option<Memory> {
        self.memories.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    fn remember(&self, key: &ObjectKey, memory: Option<Memory>) {
        let mut memories = self.memories.lock().unwrap_or_else(PoisonError::into_inner);
        match memory {
            Some(memory) => drop(memories.insert(key.clone(), memory)),
            None => drop(memories.remove(key)),
        }
    }

    /// What was found, or `None` if the repository is gone.
    async fn look(&self, key: &ObjectKey) -> Result<Option<Outcome>, ReconcileError> {
        let namespace = key.namespace.as_deref().unwrap_or_default();
        match self.repositories.sync(namespace, &key.name).await {
            Ok(outcome) => Ok(Some(outcome)),
            Err(error) if error.is(tidegate_runtime::Fault::NotFound) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn report(&self, object: &Object, key: &ObjectKey, memory: &Memory) -> Result<(), ReconcileError> {
        let (generation, requested) = (object.generation(), plan::requested(object));
        let patch =
            |item: &Item| Ok(plan::report(&item.object()?, generation, requested.as_deref(), memory, Utc::now()));
        self.client.report(&self.kind, key, patch).await.map(drop)
    }
}

impl Reconciler for RepositoryReconciler {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(item) = self.client.get(&self.kind, key).await? else {
            self.remember(key, None);
            return Ok(Next::AwaitChange);
        };
        let object = item.object()?;
        let before = self.memory(key);
        let outcome = match plan::step(&object, before.as_ref(), Instant::now()) {
            Step::Wait(next) => return Ok(next),
            Step::Take(outcome) => outcome,
            Step::Look => match self.look(key).await? {
                Some(outcome) => outcome,
                None => return Ok(Next::AwaitChange),
            },
        };
        let memory = Memory::new(&object, outcome, before.as_ref(), Instant::now(), rand::random());
        self.report(&object, key, &memory).await?;
        let next = memory.next(Instant::now());
        self.remember(key, Some(memory));
        Ok(next)
    }
}
