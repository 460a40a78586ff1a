//! The server as one thing: opened in order, run, and closed in reverse.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tidegate_runtime::Manager;
use tidegate_store::{CommitError, OpenError, Store};

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
}

/// Bound and ready; serving begins with [`Server::run`].
pub struct Server {
    listener: Listener,
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

/// Needs a multi-threaded tokio runtime.
pub async fn start(options: Options) -> Result<Server, StartError> {
    // The address first: a second server should fail before it touches data.
    let listener = Listener::bind(&options.listen)?;
    create_private_dir(&options.data_dir)?;
    let store = Store::open(&options.data_dir.join(STORE_DIR), options.store.clone())?;
    match wire(listener, store.clone(), options).await {
        Ok(server) => Ok(server),
        Err(error) => {
            // Whoever follows it would keep it open.
            store.close().await;
            Err(error)
        }
    }
}

/// With a store that is open, whatever its engine.
pub(crate) async fn wire(listener: Listener, store: Store, options: Options) -> Result<Server, StartError> {
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
    Ok(Server {
        listener,
        router,
        store,
        api,
        metrics,
        checks,
        shutdown,
        limits: http_limits,
        admin_token_path,
        manifests,
    })
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
        &self.admin_token_path
    }

    /// What the folder of manifests changed, if one was given.
    pub fn manifests(&self) -> Option<api::Applied> {
        self.manifests
    }

    pub fn api(&self) -> &Api {
        &self.api
    }

    /// Shows the manager of this process in `/metrics` and `/readyz`, which is
    /// red only if it can neither lead nor stand by.
    pub fn watch_controllers(&self, manager: Manager) {
        self.metrics.register_controllers(manager.clone(), Some(self.api.clone()));
        self.checks.register("controllers", move || manager.health());
    }

    /// For whoever ends the server: signals, or a test.
    pub fn shutdown(&self) -> Shutdown {
        self.shutdown.clone()
    }

    /// Serves until it is told to stop, then drains and closes the store.
    pub async fn run(self) -> Outcome {
        let outcome = http::serve(self.listener, self.router, self.limits, self.shutdown, self.metrics).await;
        self.store.close().await;
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
