//! `tidegate control`: the controller manager as a process of its own.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use tokio::sync::watch;

use super::repo::SYNC_TIME_MAX;
use super::serve::Signals;
use crate::cli::ControlArgs;
use crate::client::{Client, RemotePlane};
use crate::config::{Log, LogFormat};
use crate::control::{self, Needs};
use crate::repositories::RemoteRepositories;
use crate::telemetry;

pub fn run(args: &ControlArgs) -> Result<ExitCode> {
    telemetry::start(&Log { format: LogFormat::Auto, filter: crate::config::LOG_FILTER.into() });
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("failed to start the runtime")?;
    runtime.block_on(control(args))
}

async fn control(args: &ControlArgs) -> Result<ExitCode> {
    let mut signals = Signals::listen()?;
    let plane = RemotePlane::new(Client::new(&args.connection)?);
    let holder = match &args.holder {
        Some(holder) => holder.clone(),
        None => format!("control-{}-{}", std::process::id(), random_word()),
    };
    let secrets_dir = args.secrets_dir.clone();
    let patient = RemotePlane::new(Client::patient(&args.connection, SYNC_TIME_MAX)?);
    let repositories = Arc::new(RemoteRepositories(patient));
    let needs = Needs { plane: Arc::new(plane), holder: holder.clone(), secrets_dir, repositories };
    let manager = control::manager(needs)?;
    tracing::info!(server = args.connection.server, holder, "the controller manager runs");
    let (stop, stopped) = watch::channel(false);
    let running = tokio::spawn(async move { manager.run(stopped).await });
    let signal = signals.next().await;
    tracing::info!(signal = signal.name, "draining: running reconciles may finish; a second signal ends at once");
    stop.send_replace(true);
    tokio::select! {
        ended = running => ended.context("the manager failed")?,
        signal = signals.next() => return Ok(signal.exit_code()),
    }
    Ok(ExitCode::SUCCESS)
}

/// Tells apart two managers of one machine that had the same process id.
fn random_word() -> String {
    format!("{:08x}", rand::random::<u32>())
}
