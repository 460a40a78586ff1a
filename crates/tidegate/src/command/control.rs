//! `tidegate control`: the controller manager as a process of its own.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use tidegate_client::RemotePlane;
use tidegate_runtime::Manager;
use tidegate_server::http::{
    Checks, Limits, Listen, ListenError, Listener, Plaintext, Shutdown, TlsFiles, observed, serve,
};
use tidegate_server::metrics::Metrics;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::repo::SYNC_TIME_MAX;
use super::serve::Signals;
use crate::cli::ControlArgs;
use crate::client::{connect, connect_patiently};
use crate::config::Log;
use crate::control::{self, Life, Needs};
use crate::repositories::RemoteRepositories;
use crate::telemetry;

/// Probes and scrapers.
const CONNECTIONS_MAX: u32 = 64;

pub fn run(args: &ControlArgs) -> Result<ExitCode> {
    telemetry::start(&Log { format: args.log_format, filter: telemetry::filter() });
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("failed to start the runtime")?;
    runtime.block_on(control(args))
}

async fn control(args: &ControlArgs) -> Result<ExitCode> {
    let mut signals = Signals::listen()?;
    let plane = RemotePlane::new(connect(&args.connection)?);
    let name = args.holder.clone().unwrap_or_else(|| format!("control-{}", std::process::id()));
    let life = Life::Named { name, lease_duration: args.lease_duration };
    let secrets_dir = args.secrets_dir.clone();
    if let Some(warning) = secrets_dir.as_deref().and_then(control::secrets_warning) {
        tracing::warn!("{warning}");
    }
    let patient = RemotePlane::new(connect_patiently(&args.connection, SYNC_TIME_MAX)?);
    let repositories = Arc::new(RemoteRepositories(patient));
    let needs = Needs { plane: Arc::new(plane), life, secrets_dir, repositories };
    let manager = control::manager(needs)?;
    let holder = manager.options().holder.clone();
    let observer = listen(args)?.map(|listener| Observer::start(listener, &manager));
    let url = observer.as_ref().map(|observer| observer.url.clone());
    tracing::info!(server = args.connection.server, %holder, listen = url, "the controller manager runs");
    let (stop, stopped) = watch::channel(false);
    let running = tokio::spawn(async move { manager.run(stopped).await });
    let signal = signals.next().await;
    tracing::info!(signal = signal.name, "draining: running reconciles may finish; a second signal ends at once");
    stop.send_replace(true);
    tokio::select! {
        ended = running => ended.context("the manager failed")?,
        signal = signals.next() => return Ok(signal.exit_code()),
    }
    if let Some(observer) = observer {
        observer.stop().await;
    }
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}

/// By the same rules as `serve`.
fn listen(args: &ControlArgs) -> Result<Option<Listener>> {
    let Some(address) = args.listen else { return Ok(None) };
    let files = args.tls_cert.clone().zip(args.tls_key.clone());
    let tls = files.map(|(cert, key)| TlsFiles { cert, key, ca: None });
    let plaintext = if args.allow_plaintext { Plaintext::Allowed } else { Plaintext::LoopbackOnly };
    match Listener::bind(&Listen { address, tls, plaintext }) {
        // There are no tokens here, but who may read them is for its owner to say.
        Err(ListenError::Plaintext { address }) => bail!(
            "{address} is not a loopback address, and health and metrics would cross the network in the clear: \
             give --tls-cert and --tls-key, or --allow-plaintext if everybody there may read them"
        ),
        bound => Ok(Some(bound?)),
    }
}

/// Health and metrics, for as long as the manager works.
struct Observer {
    url: String,
    shutdown: Shutdown,
    serving: JoinHandle<()>,
}

impl Observer {
    fn start(listener: Listener, manager: &Manager) -> Self {
        let (checks, metrics) = (Arc::new(Checks::default()), Arc::new(Metrics::default()));
        let health = manager.clone();
        checks.register("controllers", move || health.health());
        metrics.register_controllers(manager.clone(), None);
        let limits = Limits { connections_max: CONNECTIONS_MAX, ..Limits::default() };
        let (url, shutdown) = (listener.url(), Shutdown::default());
        let router = observed(checks, metrics.clone(), limits);
        let ending = shutdown.clone();
        let serving = tokio::spawn(async move {
            serve(listener, router, limits, ending, metrics).await;
        });
        Self { url, shutdown, serving }
    }

    /// A scraper that keeps its connection open is not waited for.
    async fn stop(self) {
        self.shutdown.drain();
        self.shutdown.end();
        let _ = self.serving.await;
    }
}
