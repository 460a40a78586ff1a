//! A server and a controller manager in this process.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, ensure};
use tidegate_runtime::{Manager, ManagerOptions};
use tidegate_server::http::{Outcome, Shutdown};
use tidegate_server::plane::LocalPlane;
use tidegate_server::repos;
use tidegate_server::server::{self, Options};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

/// For the longest of all waits, a first list of a million objects.
const WAIT_MAX: Duration = Duration::from_secs(900);

pub struct Host {
    pub plane: Arc<LocalPlane>,
    manager: Manager,
    stop: watch::Sender<bool>,
    managing: JoinHandle<()>,
    shutdown: Shutdown,
    serving: JoinHandle<Outcome>,
}

impl Host {
    /// `add` gives the manager its controllers.
    pub async fn start(data_dir: &Path, add: impl FnOnce(&Manager) -> anyhow::Result<()>) -> anyhow::Result<Self> {
        let server = server::start(options(data_dir)).await?;
        let plane = Arc::new(LocalPlane::new(server.api().clone()));
        let manager = Manager::new(plane.clone(), ManagerOptions::sole("system", "controller-manager", "bench"));
        add(&manager)?;
        let (stop, stopped) = watch::channel(false);
        let managed = manager.clone();
        let managing = tokio::spawn(async move { managed.run(stopped).await });
        let shutdown = server.shutdown();
        Ok(Self { plane, manager, stop, managing, shutdown, serving: tokio::spawn(server.run()) })
    }

    /// Nothing waits or runs, and the checkpoint has passed everything.
    pub async fn settled(&self) -> anyhow::Result<()> {
        let settled = async {
            while !self.is_settled() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(WAIT_MAX, settled).await.context("the controllers have not settled")
    }

    fn is_settled(&self) -> bool {
        let reports = self.manager.reports();
        let is_idle = |report: &tidegate_runtime::ControllerReport| {
            report.queue_depth == 0
                && report.in_flight == 0
                && report.checkpoint.is_some()
                && report.behind_since_ms.is_none()
        };
        !reports.is_empty() && reports.iter().all(is_idle)
    }

    /// In the order of `serve`: the manager first.
    pub async fn stop(self) -> anyhow::Result<()> {
        self.stop.send_replace(true);
        self.managing.await?;
        drop(self.plane);
        self.shutdown.drain();
        ensure!(self.serving.await? == Outcome::Drained, "the server did not drain");
        Ok(())
    }
}

fn options(data_dir: &Path) -> Options {
    let repos = repos::Options::new(std::env::var_os("PATH").unwrap_or_default());
    Options::on_loopback(data_dir.to_owned(), repos)
}

/// Counts, and wakes whoever waits for a number.
#[derive(Default)]
pub struct Counter {
    count: AtomicUsize,
    wanted: AtomicUsize,
    reached: Notify,
}

impl Counter {
    pub fn add(&self) {
        if self.count.fetch_add(1, Ordering::Relaxed) + 1 == self.wanted.load(Ordering::Relaxed) {
            self.reached.notify_one();
        }
    }

    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// To be called once, before anything is counted.
    pub fn expect(&self, number: usize) {
        self.wanted.store(number, Ordering::Relaxed);
    }

    pub async fn reached(&self) -> anyhow::Result<()> {
        tokio::time::timeout(WAIT_MAX, self.reached.notified())
            .await
            .with_context(|| format!("{} of {} reconciles", self.count(), self.wanted.load(Ordering::Relaxed)))
    }
}
