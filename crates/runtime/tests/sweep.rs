//! What a sweep brings is known before it is reconciled, also if the watch has
//! not told of it: a crash right after the run must leave a trace.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::{Value, json};
use tidegate_model::{ObjectKey, ResourceVersion};
use tidegate_runtime::{
    ApiError, Change, Controller, Fence, Index, Item, Kind, Lease, LeaseRequest, ListPage, Manager, ManagerOptions,
    Next, Plane, Precondition, ReconcileError, Reconciler, Source, StateChange, StateRow, Touched, WatchEvent,
    WatchStream,
};
use tokio::sync::{mpsc, watch};

fn kind() -> Kind {
    Kind::new("example.com/v1", "Thing", "things")
}

fn version() -> ResourceVersion {
    ResourceVersion::line_start(1_763_240_000)
}

/// One object that lists show and the watch keeps back.
#[derive(Default)]
struct Slow {
    rows: Mutex<BTreeMap<String, Bytes>>,
}

struct Silence;

#[async_trait]
impl WatchStream for Silence {
    async fn next(&mut self) -> Result<Vec<WatchEvent>, ApiError> {
        std::future::pending().await
    }
}

fn thing() -> Item {
    let object = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "late", "namespace": "ns", "generation": 1}});
    Item { key: kind().key(Some("ns"), "late"), version: version(), json: object.to_string().into() }
}

#[async_trait]
impl Source for Slow {
    async fn list(&self, _: &Kind, _: Option<&str>) -> Result<ListPage, ApiError> {
        Ok(ListPage { version: version(), items: vec![thing()], next: None })
    }

    async fn watch(&self, _: &Kind, _: ResourceVersion) -> Result<Box<dyn WatchStream>, ApiError> {
        Ok(Box::new(Silence))
    }
}

#[async_trait]
impl Plane for Slow {
    async fn get(&self, _: &Kind, _: &ObjectKey) -> Result<Option<Item>, ApiError> {
        Ok(Some(thing()))
    }

    async fn patch_status(&self, _: &Kind, _: &Precondition, _: Value) -> Result<Item, ApiError> {
        Ok(thing())
    }

    async fn patch_finalizers(
        &self,
        _: &Kind,
        _: &Precondition,
        _: &[String],
        _: &[String],
    ) -> Result<Option<Item>, ApiError> {
        Ok(Some(thing()))
    }

    async fn lease(&self, _: &LeaseRequest) -> Result<Lease, ApiError> {
        Ok(Lease { holder: "test".into(), transitions: 1 })
    }

    async fn state_read(&self, _: &str, prefix: &str, after: Option<&str>) -> Result<Vec<StateRow>, ApiError> {
        let rows = self.rows.lock().unwrap();
        let wanted =
            rows.iter().filter(|(name, _)| name.starts_with(prefix) && after.is_none_or(|after| &***name > after));
        Ok(wanted.map(|(name, value)| StateRow { name: name.clone(), value: value.clone() }).collect())
    }

    async fn state_get(&self, _: &str, names: &[String]) -> Result<Vec<StateRow>, ApiError> {
        let rows = self.rows.lock().unwrap();
        let found = names.iter().filter_map(|name| Some((name, rows.get(name)?)));
        Ok(found.map(|(name, value)| StateRow { name: name.clone(), value: value.clone() }).collect())
    }

    async fn state_write(&self, _: &str, _: Option<&Fence>, changes: Vec<StateChange>) -> Result<(), ApiError> {
        let mut rows = self.rows.lock().unwrap();
        for StateChange { name, value } in changes {
            match value {
                Some(value) => drop(rows.insert(name, value)),
                None => drop(rows.remove(&name)),
            }
        }
        Ok(())
    }
}

/// Cannot tell what is stale, so every start sweeps.
struct Forgetful;

impl Index for Forgetful {
    fn kinds(&self) -> Vec<Kind> {
        Vec::new()
    }

    fn apply(&self, _: &Kind, _: &[Change<'_>], _: &mut Touched) {}

    fn keys(&self, _: &Kind) -> Vec<ObjectKey> {
        Vec::new()
    }

    fn audit(&self, touched: &mut Touched) {
        touched.everything();
    }
}

/// Says whether its key was known when it ran.
struct Witness {
    plane: Arc<Slow>,
    seen: mpsc::UnboundedSender<bool>,
}

impl Reconciler for Witness {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let row = format!("known/{} {}", key.namespace.as_deref().unwrap_or_default(), key.name);
        let _ = self.seen.send(self.plane.rows.lock().unwrap().contains_key(&row));
        Ok(Next::AwaitChange)
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_is_known_before_a_sweep_runs_it() {
    let plane = Arc::new(Slow::default());
    // An earlier life has reconciled everything up to here: nothing is listed.
    plane.rows.lock().unwrap().insert("checkpoint".into(), version().to_string().into());
    let manager = Manager::new(plane.clone(), ManagerOptions::sole("ns", "lease", "test"));
    let index = manager.index(Arc::new(Forgetful));
    let (seen, mut runs) = mpsc::unbounded_channel();
    let witness = Witness { plane: plane.clone(), seen };
    manager.add(Controller::new("things", kind(), witness).index(&index)).unwrap();
    let (stop, stopped) = watch::channel(false);
    let running = tokio::spawn(async move { manager.run(stopped).await });
    let known = tokio::time::timeout(Duration::from_secs(60), runs.recv()).await.expect("it is swept");
    assert_eq!(known, Some(true), "a crash now would leave no trace of it");
    stop.send_replace(true);
    running.await.unwrap();
}
