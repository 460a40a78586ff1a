//! One replica: waits for the lease, works while it holds it.
//!
//! Invariant: only the holder of the lease watches, records admissions and
//! pushes; it stops pushing before another can start.

use std::fs::{self, File};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use prometheus_client::registry::Registry;
use rustix::fs::{FlockOperation, flock};
use tidegate_git::Remote;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::branch::GitMetrics;
use crate::cluster::{Api, ApiError};
use crate::engine::{self, Ending, Parts, Shared};
use crate::lease::Lease;
use crate::webhook::{
    CertificateError, CertificateFiles, Certificates, Registration, Target, WebhookState, keep_registered, serve,
};

/// In the work directory.
const LOCK_FILE: &str = "lock";

#[derive(Clone, Debug)]
pub struct OperatorOptions {
    pub engine: engine::Options,
    pub webhook: Option<WebhookOptions>,
    /// `None` where there is only one replica.
    pub lease: Option<LeaseOptions>,
    pub health_listen: SocketAddr,
    /// The webhook alone, without watches and without Git.
    pub is_ingesting: bool,
}

#[derive(Clone, Debug)]
pub struct WebhookOptions {
    pub listen: SocketAddr,
    pub target: Target,
    /// Made and injected if left out.
    pub files: Option<CertificateFiles>,
    pub configuration: String,
    pub cluster: String,
}

#[derive(Clone, Debug)]
pub struct LeaseOptions {
    pub namespace: String,
    pub name: String,
    pub holder: String,
}

#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    #[error("failed to listen on {address}: choose another with {flag}")]
    Listen { address: SocketAddr, flag: &'static str, source: io::Error },
    #[error("failed to use {}: choose another with --work-dir", path.display())]
    WorkDir { path: PathBuf, source: io::Error },
    #[error("{} is used by another process: give each its own --work-dir", .0.display())]
    WorkDirInUse(PathBuf),
    #[error("failed to use git")]
    Git(#[from] tidegate_git::GitError),
    #[error("failed to prepare the webhook's certificate")]
    Certificate(#[from] CertificateError),
    #[error("failed to serve the webhook")]
    Tls(#[from] rustls::Error),
    #[error("failed to reach the API server")]
    Api(#[from] ApiError),
}

/// The uid of `kube-system`, which stands for the cluster.
pub async fn cluster_uid(api: &Api) -> Result<String, OperatorError> {
    let namespace = api.get("/api/v1/namespaces/kube-system").await?;
    Ok(namespace["metadata"]["uid"].as_str().unwrap_or_default().to_owned())
}

/// Works until `stop`; then pushes what waits, and returns.
pub async fn run(api: Api, options: OperatorOptions, stop: impl Future<Output = ()>) -> Result<(), OperatorError> {
    let _lock = prepare_work_dir(&options.engine).await?;
    let shared = Arc::new(Shared::default());
    let git_metrics = GitMetrics::default();
    let is_leading = Arc::new(AtomicBool::new(false));
    let mut servers = JoinSet::new();
    let mut registry = Registry::with_prefix("gitopsreverser");
    shared.metrics.register(&mut registry);
    git_metrics.register(&mut registry);
    serve_health(&mut servers, options.health_listen, registry, is_leading.clone()).await?;
    let registration = match &options.webhook {
        Some(webhook) => Some(start_webhook(&mut servers, &api, webhook, shared.clone(), is_leading.clone()).await?),
        None => None,
    };
    let parts = Parts { api: api.clone(), options: options.engine.clone(), shared, git_metrics };
    let mut stop = pin!(stop);
    loop {
        let lease = options.lease.as_ref().map(|of| Lease::new(api.clone(), &of.namespace, &of.name, &of.holder));
        tokio::select! {
            () = acquire(lease.as_ref()) => {}
            () = &mut stop => return Ok(()),
        }
        tracing::info!("this replica works");
        let ending =
            lead(&parts, registration.clone(), lease.as_ref(), &is_leading, options.is_ingesting, &mut stop).await;
        if ending == Ending::Drain {
            return Ok(());
        }
    }
}

async fn acquire(lease: Option<&Lease>) {
    if let Some(lease) = lease {
        lease.acquire().await;
    }
}

async fn hold(lease: Option<&Lease>) {
    match lease {
        Some(lease) => lease.hold().await,
        None => std::future::pending().await,
    }
}

/// Until the lease is lost or the operator is to stop.
async fn lead(
    parts: &Parts,
    registration: Option<Registration>,
    lease: Option<&Lease>,
    is_leading: &AtomicBool,
    is_ingesting: bool,
    stop: &mut (impl Future<Output = ()> + Unpin),
) -> Ending {
    is_leading.store(true, Ordering::Release);
    parts.shared.metrics.is_leader.set(1);
    let mut tasks = JoinSet::new();
    if let Some(registration) = registration {
        tasks.spawn(keep_registered(registration));
    }
    let (end, ending) = oneshot::channel();
    let mut engine = is_ingesting.then(|| tokio::spawn(engine::run(parts.clone(), ending)));
    let ending = {
        let mut held = pin!(hold(lease));
        tokio::select! {
            () = &mut held => Ending::AtOnce,
            () = &mut *stop => Ending::Drain,
        }
    };
    is_leading.store(false, Ordering::Release);
    parts.shared.metrics.is_leader.set(0);
    let _ = end.send(ending);
    if let Some(engine) = &mut engine {
        let ended = async {
            // Draining takes longer than a renewal: the lease is held meanwhile.
            tokio::select! {
                ended = &mut *engine => ended,
                () = hold(lease), if ending == Ending::Drain => { engine.abort(); engine.await }
            }
        };
        if let Err(error) = ended.await.map_err(|error| error.to_string()) {
            tracing::error!(error, "the engine ended badly");
        }
    }
    if let (Ending::Drain, Some(lease)) = (ending, lease) {
        lease.release().await;
    }
    ending
}

/// Ours for as long as what it returns is held.
async fn prepare_work_dir(options: &engine::Options) -> Result<File, OperatorError> {
    let failed = |source| OperatorError::WorkDir { path: options.work_dir.clone(), source };
    for path in [&options.work_dir, &options.program.home] {
        fs::create_dir_all(path).map_err(failed)?;
    }
    let lock = File::create(options.work_dir.join(LOCK_FILE)).map_err(failed)?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive)
        .map_err(|_| OperatorError::WorkDirInUse(options.work_dir.clone()))?;
    // Keys that a process wrote for git and was killed before it removed them.
    Remote::sweep(&options.program).map_err(failed)?;
    options.program.check().await?;
    Ok(lock)
}

async fn listen(address: SocketAddr, flag: &'static str) -> Result<TcpListener, OperatorError> {
    TcpListener::bind(address).await.map_err(|source| OperatorError::Listen { address, flag, source })
}

async fn start_webhook(
    servers: &mut JoinSet<()>,
    api: &Api,
    options: &WebhookOptions,
    shared: Arc<Shared>,
    is_leading: Arc<AtomicBool>,
) -> Result<Registration, OperatorError> {
    let certificates = match &options.files {
        Some(files) => Certificates::load(files.clone())?,
        None => Certificates::make(names(&options.target))?,
    };
    let listener = listen(options.listen, "--webhook-listen").await?;
    let state = WebhookState { shared: shared.clone(), cluster: options.cluster.as_str().into(), is_leading };
    let serving = serve(listener, certificates.clone(), state);
    servers.spawn(async move {
        if let Err(error) = serving.await {
            tracing::error!(%error, "the webhook does not serve");
        }
    });
    servers.spawn(certificates.clone().keep_fresh());
    let (api, name, target) = (api.clone(), options.configuration.clone(), options.target.clone());
    Ok(Registration { api, name, target, certificates, shared })
}

/// The names that the API server will call us by.
fn names(target: &Target) -> Vec<String> {
    match target {
        Target::Service { namespace, name, .. } => vec![format!("{name}.{namespace}.svc")],
        Target::Url(url) => {
            let authority = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
            let authority = authority.split('/').next().unwrap_or_default();
            let host = match authority.strip_prefix('[') {
                Some(v6) => v6.split(']').next().unwrap_or_default(),
                None => authority.split(':').next().unwrap_or_default(),
            };
            vec![host.to_owned()]
        }
    }
}

#[derive(Clone)]
struct Health {
    registry: Arc<Registry>,
    is_leading: Arc<AtomicBool>,
}

async fn serve_health(
    servers: &mut JoinSet<()>,
    address: SocketAddr,
    registry: Registry,
    is_leading: Arc<AtomicBool>,
) -> Result<(), OperatorError> {
    let listener = listen(address, "--health-listen").await?;
    let health = Health { registry: Arc::new(registry), is_leading };
    let app = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state(health);
    servers.spawn(async move {
        if let Err(error) = axum::serve(listener, app).await {
            tracing::error!(%error, "health and metrics are not served");
        }
    });
    Ok(())
}

/// Ready is who works: admissions reach that one alone.
async fn readyz(State(health): State<Health>) -> (StatusCode, &'static str) {
    match health.is_leading.load(Ordering::Acquire) {
        true => (StatusCode::OK, "ok\n"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "another replica works\n"),
    }
}

async fn metrics(State(health): State<Health>) -> Result<String, StatusCode> {
    let mut text = String::new();
    let encoded = prometheus_client::encoding::text::encode(&mut text, &health.registry);
    encoded.map(|()| text).map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_for_the_host_that_is_called() {
        let of = |url: &str| names(&Target::Url(url.into()));
        assert_eq!(of("https://127.0.0.1:9443"), ["127.0.0.1"]);
        assert_eq!(of("https://[::1]:9443/x"), ["::1"]);
        assert_eq!(of("https://host.example/x"), ["host.example"]);
    }
}
