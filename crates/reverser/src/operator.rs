//! One replica: waits for the lease, works while it holds it.
//!
//! Invariant: only the holder of the lease watches, records admissions and
//! pushes; it stops pushing before another can start, and starts no push after
//! its term is over.

use std::fs::{self, File};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::sync::Arc;

use prometheus_client::registry::Registry;
use rustix::fs::{FlockOperation, flock};
use tidegate_git::Remote;
pub use tidegate_tls::CertificateFiles;
use tidegate_tls::{CertificateError, Certificates};
use tokio::net::TcpListener;
use tokio::sync::{Notify, oneshot};
use tokio::task::{JoinHandle, JoinSet};

use crate::branch::GitMetrics;
use crate::cluster::{Api, Obstacle, meet};
use crate::engine::{self, Ending, Parts, Shared};
use crate::health::{Standing, serve_health};
use crate::lease::{Ended, Lease, Rank, Term};
use crate::webhook::{MakeError, Registration, Target, WebhookState, keep_registered, make_certificate, serve};

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
    /// How many seconds the API server waits for us.
    pub timeout_s: u32,
    pub cluster: String,
}

#[derive(Clone, Debug)]
pub struct LeaseOptions {
    pub namespace: String,
    pub name: String,
    pub holder: String,
    pub rank: Rank,
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
    #[error("failed to prepare the webhook's certificate")]
    MakeCertificate(#[from] MakeError),
    #[error(transparent)]
    Obstacle(#[from] Obstacle),
}

/// Works until `stop`; then pushes what waits, and returns.
pub async fn run(api: Api, options: OperatorOptions, stop: impl Future<Output = ()>) -> Result<(), OperatorError> {
    let _lock = prepare_work_dir(&options.engine).await?;
    let shared = Arc::new(Shared::default());
    let git_metrics = GitMetrics::default();
    let standing = Arc::new(Standing::default());
    let mut servers = JoinSet::new();
    let mut registry = Registry::with_prefix("gitopsreverser");
    shared.metrics.register(&mut registry);
    git_metrics.register(&mut registry);
    let listener = listen(options.health_listen, "--health-listen").await?;
    servers.spawn(serve_health(listener, registry, standing.clone()));
    let registration = match &options.webhook {
        Some(webhook) => {
            let namespace = &options.engine.operator.controller_namespace;
            Some(start_webhook(&mut servers, &api, webhook, namespace, shared.clone(), standing.clone()).await?)
        }
        None => None,
    };
    let mut stop = pin!(stop);
    let cluster_uid = tokio::select! {
        uid = meet(&api, |obstacle| standing.waits(obstacle.to_string())) => uid?.into(),
        () = &mut stop => return Ok(()),
    };
    let (engine, term) = (options.engine.clone(), Term::endless());
    let parts = Parts { api, cluster_uid, options: engine, shared, git_metrics, term };
    take_turns(parts, &options, registration, &standing, stop).await;
    Ok(())
}

/// Waits for the lease, works while it has it, and again.
async fn take_turns(
    mut parts: Parts,
    options: &OperatorOptions,
    registration: Option<Registration>,
    standing: &Standing,
    mut stop: Pin<&mut impl Future<Output = ()>>,
) {
    let lease = options.lease.as_ref();
    let lease = lease.map(|of| Lease::new(parts.api.clone(), &of.namespace, &of.name, &of.holder, of.rank));
    loop {
        tokio::select! {
            term = acquire(lease.as_ref(), standing) => parts.term = term,
            () = &mut stop => {
                return release(lease.as_ref()).await;
            }
        }
        tracing::info!("this replica works");
        let replica = Replica { parts: &parts, lease: lease.as_ref(), standing };
        match replica.lead(registration.clone(), options.is_ingesting, &mut stop).await {
            Over::Stopped => return,
            Over::Lost => {}
            Over::Wanted => tracing::info!("handed over to an operator that somebody runs by hand"),
        }
    }
}

async fn acquire(lease: Option<&Lease>, standing: &Standing) -> Term {
    match lease {
        Some(lease) => lease.acquire(|why| standing.waits(why)).await,
        None => Term::endless(),
    }
}

async fn release(lease: Option<&Lease>) {
    if let Some(lease) = lease {
        lease.release().await;
    }
}

/// Why this replica works no longer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Over {
    Stopped,
    Lost,
    Wanted,
}

impl Over {
    fn text(self) -> &'static str {
        match self {
            Self::Stopped => "stopping",
            Self::Lost => "the lease is lost",
            Self::Wanted => "handing over to an operator that somebody runs by hand",
        }
    }
}

struct Replica<'r> {
    parts: &'r Parts,
    lease: Option<&'r Lease>,
    standing: &'r Standing,
}

impl Replica<'_> {
    /// Until the lease is lost or asked for, or the operator is to stop.
    async fn lead(
        &self,
        registration: Option<Registration>,
        is_ingesting: bool,
        stop: &mut (impl Future<Output = ()> + Unpin),
    ) -> Over {
        self.standing.works();
        self.parts.shared.metrics.is_leader.set(1);
        let mut tasks = JoinSet::new();
        if let Some(registration) = registration {
            tasks.spawn(keep_registered(registration));
        }
        let (end, ending) = oneshot::channel();
        let engine = is_ingesting.then(|| tokio::spawn(engine::run(self.parts.clone(), ending)));
        let over = tokio::select! {
            ended = self.keep() => if ended == Ended::Wanted { Over::Wanted } else { Over::Lost },
            () = &mut *stop => Over::Stopped,
        };
        self.standing.waits(over.text());
        self.parts.shared.metrics.is_leader.set(0);
        let ending = if over == Over::Lost { Ending::AtOnce } else { Ending::Drain };
        let _ = end.send(ending);
        if let Some(engine) = engine {
            self.wait_for(engine, ending).await;
        }
        if ending == Ending::Drain {
            release(self.lease).await;
        }
        over
    }

    async fn keep(&self) -> Ended {
        match self.lease {
            Some(lease) => lease.keep(&self.parts.term).await,
            None => std::future::pending().await,
        }
    }

    async fn keep_until_lost(&self) {
        while self.keep().await != Ended::Lost {}
    }

    /// Draining takes longer than a renewal: the lease is held meanwhile.
    async fn wait_for(&self, mut engine: JoinHandle<()>, ending: Ending) {
        let ended = tokio::select! {
            ended = &mut engine => ended,
            () = self.keep_until_lost(), if ending == Ending::Drain => {
                engine.abort();
                engine.await
            }
        };
        if let Err(error) = ended
            && !error.is_cancelled()
        {
            tracing::error!(%error, "the engine ended badly");
        }
    }
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
    namespace: &str,
    shared: Arc<Shared>,
    standing: Arc<Standing>,
) -> Result<Registration, OperatorError> {
    shared.proof.want();
    let certificates = match &options.files {
        Some(files) => Certificates::load(files.clone())?,
        None => make_certificate(names(&options.target))?,
    };
    let listener = listen(options.listen, "--webhook-listen").await?;
    let state = WebhookState { shared: shared.clone(), cluster: options.cluster.as_str().into(), standing };
    let serving = serve(listener, certificates.clone(), state);
    servers.spawn(async move {
        if let Err(error) = serving.await {
            tracing::error!(%error, "the webhook does not serve");
        }
    });
    let fresh = certificates.clone();
    // Nobody asks: the files are looked at now and then.
    servers.spawn(async move { fresh.keep_fresh(&Notify::new()).await });
    let (api, name, target) = (api.clone(), options.configuration.clone(), options.target.clone());
    let (namespace, timeout_s) = (namespace.to_owned(), options.timeout_s);
    Ok(Registration { api, namespace, name, target, certificates, timeout_s, shared })
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
