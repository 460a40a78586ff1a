//! The server as one thing: opened in order, run, and closed in reverse.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tidegate_runtime::Manager;
use tidegate_store::{CommitError, OpenError, Store};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::JoinError;

use crate::api::{self, Api, FollowError};
use crate::graphql::limits::Limits as GraphqlLimits;
use crate::graphql::{self, Front, Graphql};
use crate::http::{self, Checks, Listen, ListenError, Listener, Outcome, Plaintext, Shell, Shutdown};
use crate::identity::{Clock, Identities, SetupError, Tokens};
use crate::manifests::{self, ManifestsError};
use crate::metrics::Metrics;
use crate::repos::{self, Repos, ReposError};

/// The store's folder in the data directory.
pub const STORE_DIR: &str = "store";
/// A start that is told to stop may finish so long what it is at: a commit, or
/// a table that is read. What takes longer is left as in a crash.
const STOP_TIME_MAX: Duration = Duration::from_secs(2);

#[derive(Clone, Debug)]
pub struct Options {
    pub data_dir: PathBuf,
    pub listen: Listen,
    pub store: tidegate_store::Options,
    pub graphql: GraphqlLimits,
    pub http: http::Limits,
    /// A folder of manifests to admit before serving.
    pub manifests: Option<PathBuf>,
    pub repos: repos::Options,
}

impl Options {
    /// On a free port of loopback, everything else as it is by default.
    pub fn on_loopback(data_dir: PathBuf, repos: repos::Options) -> Self {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let listen = Listen { address, tls: None, plaintext: Plaintext::LoopbackOnly };
        let (store, graphql, http) = Default::default();
        Self { data_dir, listen, store, graphql, http, manifests: None, repos }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("failed to create the data directory {}", path.display())]
    DataDir { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error("failed to set up tokens")]
    Identity(#[from] SetupError),
    #[error("failed to open the store")]
    Store(#[from] OpenError),
    #[error("failed to load what governs the server")]
    Follow(#[from] FollowError),
    #[error("failed to create the first objects")]
    Bootstrap(#[from] CommitError),
    #[error(transparent)]
    Manifests(#[from] ManifestsError),
    #[error("failed to open the repositories")]
    Repos(#[from] ReposError),
    #[error("stopped before it was ready")]
    Stopped,
}

/// Bound and ready; serving begins with [`Server::run`].
pub struct Server {
    pub(crate) listener: Listener,
    pub(crate) wired: Wired,
}

/// All of a server but its address.
pub(crate) struct Wired {
    router: axum::Router,
    store: Store,
    api: Api,
    metrics: Arc<Metrics>,
    checks: Arc<Checks>,
    shutdown: Shutdown,
    limits: http::Limits,
    admin_token_path: PathBuf,
    manifests: Option<api::Applied>,
}

/// How a start ended.
pub enum Started<T> {
    Ready(Box<Server>),
    /// With what told it to stop; the store is closed.
    Stopped(T),
}

/// Needs a multi-threaded tokio runtime.
pub async fn start(options: Options) -> Result<Server, StartError> {
    match start_unless(options, std::future::pending::<Infallible>()).await? {
        Started::Ready(server) => Ok(*server),
        Started::Stopped(never) => match never {},
    }
}

/// As [`start`], unless `stop` comes first. Then whoever waits for an answer is
/// told that there is none, and what was begun is left where a start after a
/// crash would find it, too.
pub async fn start_unless<T>(options: Options, stop: impl Future<Output = T>) -> Result<Started<T>, StartError> {
    // The address first: a second server should fail before it touches data.
    let listener = Listener::bind(&options.listen)?;
    create_private_dir(&options.data_dir)?;
    let stopped = Arc::new(Notify::new());
    let runtime = Handle::current();
    // It reads, computes and waits for disks: on a thread of its own it keeps
    // nobody from hearing that it should stop.
    let mut opening = tokio::task::spawn_blocking({
        let stopped = stopped.clone();
        move || runtime.block_on(open(options, &stopped))
    });
    let told = tokio::select! {
        opened = &mut opening => {
            let wired = joined(opened)?;
            return Ok(Started::Ready(Box::new(Server { listener, wired })));
        }
        told = stop => told,
    };
    stopped.notify_one();
    let ((), opened) = tokio::join!(listener.turn_away(), tokio::time::timeout(STOP_TIME_MAX, opening));
    match opened.map(joined) {
        // It was faster than the word.
        Ok(Ok(wired)) => wired.store.close().await,
        // Stopped, or failed for a reason that nobody waits for any more.
        Ok(Err(_)) => {}
        Err(_) => tracing::debug!("the start goes on until the process ends"),
    }
    Ok(Started::Stopped(told))
}

fn joined(opened: Result<Result<Wired, StartError>, JoinError>) -> Result<Wired, StartError> {
    opened.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

async fn open(options: Options, stopped: &Notify) -> Result<Wired, StartError> {
    let store = Store::open(&options.data_dir.join(STORE_DIR), options.store.clone())?;
    let wired = tokio::select! {
        // The word may have come while the store was opened.
        biased;
        () = stopped.notified() => Err(StartError::Stopped),
        wired = wire(store.clone(), options) => wired,
    };
    if wired.is_err() {
        // Whoever follows it would keep it open.
        store.close().await;
    }
    wired
}

/// With a store that is open, whatever its engine.
pub(crate) async fn wire(store: Store, options: Options) -> Result<Wired, StartError> {
    let Options { data_dir, listen: _, store: _, graphql: graphql_limits, http: http_limits, manifests, repos } =
        options;
    let identities = Arc::new(Identities::new(Tokens::open(&data_dir, Clock::system())?));
    let admin_token_path = identities.tokens().admin_token_path().to_owned();
    let metrics = Arc::new(Metrics::default());
    let shutdown = Shutdown::default();

    let graphql = Arc::new(Graphql::new(graphql_limits.clone()));
    let api = start_api(&store, &identities, &graphql, &graphql_limits)?;
    api.bootstrap().await?;
    let manifests = match manifests {
        Some(folder) => Some(manifests::apply(&api, &folder).await?),
        None => None,
    };

    let hosted_limits = repos.limits;
    let repos = Repos::start(&api, &data_dir, metrics.clone(), repos).await?;

    let checks = Arc::new(Checks::default());
    let checked = store.clone();
    checks.register("store", move || checked.health());
    let checked = graphql.clone();
    checks.register("schema", move || checked.health());
    let projector = repos.projector().clone();
    checks.register("repositories", move || projector.health());
    metrics.register_store(store.clone());
    metrics.register_stopped_controllers(api.clone());
    let webhook_routes = repos::webhook_routes(api.clone(), repos.clone());
    let git_routes = repos::routes(repos, identities.clone(), shutdown.clone());
    let front = Front::new(graphql, api.clone(), metrics.clone(), shutdown.clone());
    let shell = Shell {
        identities,
        metrics: metrics.clone(),
        checks: checks.clone(),
        shutdown: shutdown.clone(),
        limits: http_limits,
    };
    let git_routes = shell.envelope(git_routes, repos::limits(http_limits, &hosted_limits));
    let webhook_routes = shell.envelope(webhook_routes, repos::webhook_limits(http_limits));
    let router = shell.wrap(graphql::routes(front)).merge(git_routes).merge(webhook_routes);
    Ok(Wired { router, store, api, metrics, checks, shutdown, limits: http_limits, admin_token_path, manifests })
}

fn start_api(
    store: &Store,
    identities: &Arc<Identities>,
    graphql: &Arc<Graphql>,
    limits: &GraphqlLimits,
) -> Result<Api, FollowError> {
    let options = api::Options {
        page_objects_max: limits.page_objects_max,
        page_bytes_max: limits.page_bytes_max,
        lists_at_once_max: limits.lists_at_once_max,
        watches_per_identity_max: limits.watches_per_identity_max,
    };
    let graphql = graphql.clone();
    Api::start(store.clone(), identities.clone(), options, Arc::new(move |kinds| graphql.kinds_changed(kinds)))
}

impl Server {
    pub fn url(&self) -> String {
        self.listener.url()
    }

    pub fn admin_token_path(&self) -> &Path {
        &self.wired.admin_token_path
    }

    /// What the folder of manifests changed, if one was given.
    pub fn manifests(&self) -> Option<api::Applied> {
        self.wired.manifests
    }

    pub fn api(&self) -> &Api {
        &self.wired.api
    }

    /// Shows the manager of this process in `/metrics` and `/readyz`, which is
    /// red only if it can neither lead nor stand by.
    pub fn watch_controllers(&self, manager: Manager) {
        self.wired.metrics.register_controllers(manager.clone(), Some(self.wired.api.clone()));
        self.wired.checks.register("controllers", move || manager.health());
    }

    /// For whoever ends the server: signals, or a test.
    pub fn shutdown(&self) -> Shutdown {
        self.wired.shutdown.clone()
    }

    /// Serves until it is told to stop, then drains and closes the store.
    pub async fn run(self) -> Outcome {
        let Self { listener, wired: Wired { router, store, metrics, shutdown, limits, .. } } = self;
        let outcome = http::serve(listener, router, limits, shutdown, metrics).await;
        store.close().await;
        outcome
    }
}

/// Tokens live in it: nobody else may even list it.
fn create_private_dir(path: &Path) -> Result<(), StartError> {
    use std::os::unix::fs::DirBuilderExt;
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(path).map_err(|source| StartError::DataDir { path: path.to_owned(), source })
}
