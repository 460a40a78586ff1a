//! The server under load: its own process.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::process::{Child, Command};

use crate::http::Connection;

pub struct Server {
    child: Child,
    pub address: String,
    pub token: String,
    /// From the start of the process to the first good `/readyz`.
    pub ready: Duration,
}

const START_MAX: Duration = Duration::from_secs(60);

impl Server {
    pub async fn start(binary: &Path, data_dir: &Path) -> anyhow::Result<Self> {
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let address = format!("127.0.0.1:{port}");
        let started = Instant::now();
        let mut child = Command::new(binary)
            .args(["serve", "--listen", &address, "--data-dir"])
            .arg(data_dir)
            .env("RUST_LOG", "warn")
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("failed to start {}", binary.display()))?;
        while !is_ready(&address).await {
            anyhow::ensure!(started.elapsed() < START_MAX, "the server was not ready in time");
            anyhow::ensure!(child.try_wait()?.is_none(), "the server has ended");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let ready = started.elapsed();
        let token = std::fs::read_to_string(data_dir.join("admin.token"))?.trim().to_owned();
        Ok(Self { child, address, token, ready })
    }

    pub async fn connect(&self) -> anyhow::Result<Connection> {
        Connection::open(&self.address, &self.token).await
    }

    /// What all pushes took from their last byte to their answer.
    pub async fn push_seconds(&self) -> anyhow::Result<f64> {
        let metrics = self.connect().await?.text("/metrics").await?;
        let sums = metrics.lines().filter_map(|line| line.strip_prefix("tidegate_git_push_duration_seconds_sum{"));
        let seconds: Option<Vec<f64>> = sums.map(|line| line.rsplit(' ').next()?.parse().ok()).collect();
        Ok(seconds.context("a sum that is no number")?.into_iter().sum())
    }

    /// Resident memory, as the kernel counts it.
    pub fn memory_mib(&self) -> anyhow::Result<f64> {
        self.memory("VmRSS:")
    }

    /// The most that it ever was.
    pub fn memory_peak_mib(&self) -> anyhow::Result<f64> {
        self.memory("VmHWM:")
    }

    fn memory(&self, field: &str) -> anyhow::Result<f64> {
        memory_mib(self.child.id().context("the server has ended")?, field)
    }

    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.child.kill().await?;
        Ok(())
    }
}

/// A field of `/proc/<pid>/status`.
pub fn memory_mib(pid: u32, field: &str) -> anyhow::Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find(|line| line.starts_with(field)).context("no such field")?;
    let kib: f64 = line.split_whitespace().nth(1).context("no number")?.parse()?;
    Ok(kib / 1024.0)
}

async fn is_ready(address: &str) -> bool {
    let Ok(mut connection) = Connection::open(address, "").await else { return false };
    matches!(connection.get("/readyz").await, Ok(200))
}
