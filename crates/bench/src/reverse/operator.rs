//! `tidegate reverse` as a process of its own, with its defaults.

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use tidegate_testkit::cluster::ADMIN;
use tidegate_testkit::daemon::free_port;
use tokio::process::{Child, Command};

use super::site::Site;
use crate::http::Connection;
use crate::process;

/// It is asked for its state this often.
const POLL: Duration = Duration::from_millis(20);
/// What it pushes before it ends is a batch.
const STOP_TIME_MAX: Duration = Duration::from_secs(60);

pub struct Operator {
    child: Child,
    health: String,
    /// Gone with it: each start finds an empty directory.
    _work: tempfile::TempDir,
}

impl Operator {
    pub fn start(site: &Site, flags: &[&str]) -> anyhow::Result<Self> {
        let work = tempfile::tempdir()?;
        let (webhook, health) = (format!("127.0.0.1:{}", free_port()), format!("127.0.0.1:{}", free_port()));
        let child = Command::new(&site.binary)
            .arg("reverse")
            .arg("--kubeconfig")
            .arg(site.cluster.kubeconfig(ADMIN))
            .arg("--work-dir")
            .arg(work.path())
            .args(["--webhook-listen", &webhook, "--webhook-url", &format!("https://{webhook}")])
            .args(["--health-listen", &health])
            .args(flags)
            .env("RUST_LOG", "warn")
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("failed to start {}", site.binary.display()))?;
        Ok(Self { child, health, _work: work })
    }

    /// The sum of a metric over its labels, as soon as it is this much.
    pub async fn wait_metric(&self, name: &str, least: f64, patience: Duration) -> anyhow::Result<f64> {
        let started = Instant::now();
        loop {
            let sum = self.metric(name).await.unwrap_or(0.0);
            if sum >= least {
                return Ok(sum);
            }
            ensure!(started.elapsed() < patience, "{name} is {sum}, not {least}");
            tokio::time::sleep(POLL).await;
        }
    }

    async fn metric(&self, name: &str) -> anyhow::Result<f64> {
        let text = Connection::open(&self.health, "").await?.text("/metrics").await?;
        let is_it = |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']));
        let values = text.lines().filter(is_it).filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        Ok(values.sum())
    }

    pub fn memory_mib(&self, field: &str) -> anyhow::Result<f64> {
        process::memory_mib(self.child.id().context("the operator has ended")?, field)
    }

    /// As an administrator would; its lease is free when this returns.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        let id = self.child.id().context("the operator has ended")?;
        let asked = Command::new("kill").args(["-TERM", &id.to_string()]).status().await?;
        ensure!(asked.success(), "the operator cannot be asked to stop");
        let ended = tokio::time::timeout(STOP_TIME_MAX, self.child.wait()).await;
        ensure!(ended.context("the operator does not stop")??.success(), "the operator failed at its end");
        Ok(())
    }
}
