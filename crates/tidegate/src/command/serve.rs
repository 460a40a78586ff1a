//! `tidegate serve`: configuration in, a server that ends when it is told to.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use tidegate_server::http::{Outcome, Shutdown};
use tidegate_server::plane::LocalPlane;
use tidegate_server::server::{self, Server, Started};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::UsageError;
use super::serve_options::options;
use crate::cli::ServeArgs;
use crate::config::{self, Config, Sources, Switch};
use crate::control::{self, Life, Needs};
use crate::open_files;
use crate::output::Table;
use crate::repositories::LocalRepositories;
use crate::telemetry::{self, Reader};

/// For work that no request waits for any more.
const RUNTIME_END_MAX: Duration = Duration::from_secs(2);

pub fn run(args: &ServeArgs) -> Result<ExitCode> {
    let (mut config, warnings) = config::load(&sources(args)?).map_err(|error| UsageError(format!("{error:#}")))?;
    if args.show_config {
        warnings.iter().for_each(|warning| tell!("warning: {warning}"));
        let text = Table::new(["KEY", "VALUE", "MEANING"]).render(&config::shown(&config));
        std::io::stdout().write_all(text.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let reader = telemetry::start(&config.log);
    let (connections_max, too_few_files) = open_files::connections(open_files::raise(), config.http.connections_max);
    config.http.connections_max = connections_max;
    let no_secrets = config.secrets.dir.as_deref().and_then(control::secrets_warning);
    for warning in warnings.into_iter().chain(too_few_files).chain(no_secrets) {
        tracing::warn!("{warning}");
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("failed to start the runtime")?;
    let code = runtime.block_on(serve(config, reader));
    runtime.shutdown_timeout(RUNTIME_END_MAX);
    code
}

fn sources(args: &ServeArgs) -> Result<Sources, UsageError> {
    let is_ours = |name: &str| name.starts_with("TIDEGATE_") || name == "RUST_LOG";
    let named = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    let text = |(name, value): (String, OsString)| match value.into_string() {
        Ok(value) => Ok((name, value)),
        Err(_) => {
            Err(UsageError(format!("the environment variable {name} is not UTF-8 text: set it anew, or unset it")))
        }
    };
    Ok(Sources {
        file: args.config.clone(),
        environment: named.filter(|(name, _)| is_ours(name)).map(text).collect::<Result<_, _>>()?,
        set: args.set.clone(),
        flags: flags(args),
    })
}

fn flags(args: &ServeArgs) -> Vec<(&'static str, String)> {
    let switch = |on: bool| on.then(|| "true".to_owned());
    let own = [
        ("data_dir", args.data_dir.clone()),
        ("listen", args.listen.clone()),
        ("tls.cert", args.tls_cert.clone()),
        ("tls.key", args.tls_key.clone()),
        ("allow_plaintext", switch(args.allow_plaintext)),
        ("manifests", args.manifests.clone()),
        ("controllers", args.controllers.clone()),
        ("secrets.dir", args.secrets_dir.clone()),
        ("window.age", args.window_age.clone()),
        ("window.events", args.window_events.clone()),
        ("window.bytes", args.window_bytes.clone()),
        ("drain_time", args.drain_time.clone()),
        ("store.accept_loss", switch(args.accept_loss)),
        ("log.format", args.log_format.clone()),
    ];
    own.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
}

async fn serve(config: Config, reader: Reader) -> Result<ExitCode> {
    let (mut signals, mut impatient) = (Signals::listen()?, Signals::listen()?);
    let data_dir = config.data_dir.clone();
    let (controllers, secrets_dir) = (config.controllers, config.secrets.dir.clone());
    let options = options(config, std::env::var_os("PATH").unwrap_or_default());
    let started = tokio::select! {
        started = server::start_unless(options, signals.next()) => started?,
        second = impatient.second() => std::process::exit(second.code.into()),
    };
    let server = match started {
        Started::Ready(server) => server,
        Started::Stopped(signal) => {
            tracing::info!(signal = signal.name, "stopped before it was ready");
            return Ok(ExitCode::SUCCESS);
        }
    };
    let mut manager = match controllers {
        Switch::On => Some(Controllers::start(&server, secrets_dir)?),
        Switch::Off => None,
    };
    announce(&server, &data_dir, reader);
    let shutdown = server.shutdown();
    // On its own: it goes on to answer while the controllers stop.
    let mut running = tokio::spawn(server.run());
    loop {
        tokio::select! {
            outcome = &mut running => return Ok(ended(outcome.context("the server failed")?)),
            signal = signals.next() => {
                // Whoever sends requests finds somebody else meanwhile.
                shutdown.leave();
                // First, while the store still takes what they save.
                if let Some(manager) = manager.take().filter(|_| !shutdown.is_draining()) {
                    tokio::select! {
                        () = manager.stop() => {}
                        second = signals.next() => std::process::exit(second.code.into()),
                    }
                }
                on_signal(signal, &shutdown);
            }
        }
    }
}

/// The controller manager in this process.
struct Controllers {
    task: JoinHandle<()>,
    stop: watch::Sender<bool>,
}

impl Controllers {
    fn start(server: &Server, secrets_dir: Option<PathBuf>) -> Result<Self> {
        let plane = LocalPlane::new(server.api().clone());
        let repositories = Arc::new(LocalRepositories::new(server.api().clone()));
        let needs = Needs { plane: Arc::new(plane), life: Life::OfServer, secrets_dir, repositories };
        let manager = control::manager(needs)?;
        server.watch_controllers(manager.clone());
        let (stop, stopped) = watch::channel(false);
        Ok(Self { task: tokio::spawn(async move { manager.run(stopped).await }), stop })
    }

    async fn stop(self) {
        self.stop.send_replace(true);
        if let Err(error) = self.task.await {
            tracing::error!(%error, "the controller manager failed");
        }
    }
}

/// The first one drains. The second one ends the process here and now: what was
/// acknowledged is on disk, so there is nothing to wait for.
fn on_signal(signal: Ending, shutdown: &Shutdown) {
    if shutdown.is_draining() {
        tracing::warn!(signal = signal.name, "ending at once");
        std::process::exit(signal.code.into());
    }
    tracing::info!(signal = signal.name, "draining: running requests may finish; a second signal ends at once");
    shutdown.drain();
}

fn ended(outcome: Outcome) -> ExitCode {
    match outcome {
        Outcome::Drained => tracing::info!("stopped"),
        Outcome::Cut => tracing::warn!("stopped with connections still open after the drain time"),
    }
    ExitCode::SUCCESS
}

/// Where it is, and where the token is; never the token.
fn announce(server: &Server, data_dir: &Path, reader: Reader) {
    let (data_dir, token) = (absolute(data_dir), absolute(server.admin_token_path()));
    let (url, data_dir, token) = (server.url(), data_dir.display().to_string(), token.display().to_string());
    if let Some(applied) = server.manifests() {
        let (created, updated, deleted) = (applied.created, applied.updated, applied.deleted);
        tracing::info!(created, updated, deleted, "the manifests are in force");
    }
    let (graphql, git) = (format!("{url}/graphql"), format!("{url}/git/system/control.git"));
    match reader {
        Reader::Program => {
            tracing::info!(url, graphql, graphiql = graphql, git, data_dir, admin_token_file = token, "ready");
        }
        Reader::Person => tell!(
            "\n  Tidegate is ready: {url}\n\n  \
             GraphQL      {graphql}\n  \
             GraphiQL     {graphql} in a browser\n  \
             Git          {git}\n  \
             data         {data_dir}\n  \
             admin token  in {token}\n\n  \
             Ctrl-C stops it.\n"
        ),
    }
}

fn absolute(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// The signals that end a server.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

#[derive(Clone, Copy)]
pub(super) struct Ending {
    pub name: &'static str,
    /// 128 + the signal's number, as shells have it.
    code: u8,
}

impl Ending {
    pub fn exit_code(self) -> ExitCode {
        ExitCode::from(self.code)
    }
}

impl Signals {
    pub fn listen() -> Result<Self> {
        let listen = |kind| signal(kind).context("failed to listen for signals");
        Ok(Self { terminate: listen(SignalKind::terminate())?, interrupt: listen(SignalKind::interrupt())? })
    }

    async fn second(&mut self) -> Ending {
        self.next().await;
        self.next().await
    }

    pub async fn next(&mut self) -> Ending {
        tokio::select! {
            _ = self.terminate.recv() => Ending { name: "SIGTERM", code: 143 },
            _ = self.interrupt.recv() => Ending { name: "SIGINT", code: 130 },
        }
    }
}
