//! A key that is tried again much later holds nothing up.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tidegate_model::ObjectKey;
use tidegate_runtime::{
    Backoff, Controller, ControllerOptions, Manager, ManagerOptions, Next, ReconcileError, Reconciler,
};
use tokio::sync::watch;

use crate::world::{Way, World, kind};

const HOUR: Duration = Duration::from_secs(3_600);

struct Unlucky;

impl Reconciler for Unlucky {
    async fn reconcile(&self, _: &ObjectKey) -> Result<Next, ReconcileError> {
        Err(ReconcileError::retryable("not today"))
    }
}

#[tokio::test(start_paused = true)]
async fn the_checkpoint_passes_what_does_not_end_a_backoff() {
    let world = Arc::new(Mutex::new(World::new(1)));
    world.lock().unwrap().faults = false;
    let manager = Manager::new(
        Arc::new(Way { world: world.clone(), holder: "a".into() }),
        ManagerOptions::sole("system", "backoff", "a"),
    );
    let options = ControllerOptions { backoff: Backoff { first: HOUR, max: HOUR }, ..ControllerOptions::default() };
    manager.add(Controller::new("things", kind(), Unlucky).options(options)).unwrap();
    let (stop, stopped) = watch::channel(false);
    let reports = manager.clone();
    let running = tokio::spawn(async move { manager.run(stopped).await });

    let key = kind().key(Some("ns"), "t");
    world.lock().unwrap().push(&key);
    until(&world, "it has failed", |world| world.rows().iter().any(|row| row.starts_with("unfinished/ns t"))).await;
    world.lock().unwrap().write_status(&key, |status| *status = json!({"note": "somebody else's"}));
    until(&world, "the checkpoint is at the end", |world| {
        world.rows().contains(&format!("checkpoint = {}", world.version()))
    })
    .await;
    let report = reports.reports().remove(0);
    assert_eq!((report.failures, report.delayed, report.retrying), (1, 1, 1), "nothing else has happened");
    stop.send_replace(true);
    running.await.unwrap();
}

/// Long before the hour is over.
async fn until(world: &Mutex<World>, what: &str, holds: impl Fn(&World) -> bool) {
    for _ in 0..600 {
        if holds(&world.lock().unwrap()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("not so: {what}; rows {:#?}", world.lock().unwrap().rows());
}
