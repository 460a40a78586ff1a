//! `tidegate reverse`: flags in, an operator that ends when it is told to.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::fs::{Access, access};
use rustix::process::Signal;
use tidegate_git::{PlainHttp, Program};
use tidegate_reverser::branch::{Limits, Operator};
use tidegate_reverser::claims::{Exclusion, Omitted, PlanOptions};
use tidegate_reverser::cluster::connect;
use tidegate_reverser::engine;
use tidegate_reverser::install::{InstallOptions, manifests};
use tidegate_reverser::lease::Rank;
use tidegate_reverser::operator::CertificateFiles;
use tidegate_reverser::operator::{self, LeaseOptions, OperatorOptions, WebhookOptions};
use tidegate_reverser::webhook::Target;
use tokio::signal::unix::{SignalKind, signal};

use super::UsageError;
use crate::config::Log;
use crate::reverse_args::{InstallArgs, ReverseArgs, ReverseCommand, ReverseRunArgs, WORK_DIR};
use crate::{open_files, telemetry};

/// For work that nobody waits for any more.
const RUNTIME_END_MAX: Duration = Duration::from_secs(2);
const WEBHOOK_SERVICE_PORT: u16 = 443;

pub fn run(args: ReverseArgs) -> Result<ExitCode> {
    match args.command {
        Some(ReverseCommand::Install(args)) => install(args),
        None => start(&args.run),
    }
}

fn install(args: InstallArgs) -> Result<ExitCode> {
    let InstallArgs { print: _, namespace, image, replicas, crds_only } = args;
    let options = InstallOptions { namespace, image, replicas, is_crds_only: crds_only };
    std::io::Write::write_all(&mut std::io::stdout(), manifests(&options).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn start(args: &ReverseRunArgs) -> Result<ExitCode> {
    telemetry::start(&Log { format: args.log_format, filter: telemetry::filter() });
    open_files::raise();
    let exclusions = args.discovery_exclude.iter().map(|text| Exclusion::parse(text));
    let exclusions =
        exclusions.collect::<Result<_, _>>().map_err(|why| UsageError(format!("--discovery-exclude {why}")))?;
    let webhook = webhook(args).map_err(UsageError)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("failed to start the runtime")?;
    let ended = runtime.block_on(operate(args, exclusions, webhook));
    runtime.shutdown_timeout(RUNTIME_END_MAX);
    ended.map(|()| ExitCode::SUCCESS)
}

async fn operate(args: &ReverseRunArgs, exclusions: Vec<Exclusion>, webhook: Option<WebhookOptions>) -> Result<()> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    // Whoever listens is not ended by it: a file beyond a limit is an error
    // like a full disk, and what waits is written when there is room.
    let _too_large = signal(SignalKind::from_raw(Signal::XFSZ.as_raw()))?;
    let api = connect(args.kubeconfig.as_deref(), args.context.as_deref()).await?;
    let holder = format!("{}_{}", host_name(), uuid::Uuid::new_v4());
    let options = options(args, exclusions, webhook, &holder)?;
    let stop = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping: what waits is pushed first; a second signal ends at once");
        tokio::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            std::process::exit(1);
        });
    };
    tracing::info!(health = %args.health_listen, webhook = options.webhook.is_some(), "starting");
    operator::run(api, options, stop).await?;
    tracing::info!("stopped");
    Ok(())
}

fn options(
    args: &ReverseRunArgs,
    exclusions: Vec<Exclusion>,
    webhook: Option<WebhookOptions>,
    holder: &str,
) -> Result<OperatorOptions> {
    let work_dir = work_dir(args)?;
    let home = work_dir.join("home");
    let search_path = std::env::var_os("PATH").unwrap_or_default();
    let engine = engine::Options {
        plan: PlanOptions {
            omitted: if args.watch_all { Omitted::Everything } else { Omitted::Preset },
            cross_namespace: !args.no_cross_namespace_refs,
        },
        exclusions,
        discovery_refresh: args.discovery_refresh,
        program: Program { git: "git".into(), search_path, home },
        work_dir,
        limits: limits(args),
        operator: Operator {
            name: args.committer_name.clone(),
            email: args.committer_email.clone(),
            noreply_domain: format!("users.noreply.{}", args.cluster_name),
            controller_namespace: args.lease_namespace.clone(),
            controller_name: args.lease_name.clone(),
            instance_id: holder.to_owned(),
        },
        grace: args.attribution_grace,
        workers_max: args.workers_max_global as usize,
        workers_per_repo_max: args.workers_max_per_repo as usize,
        plain_http: if args.allow_plain_http { PlainHttp::Allowed } else { PlainHttp::LoopbackOnly },
    };
    let lease = args.leader_elect.then(|| LeaseOptions {
        namespace: args.lease_namespace.clone(),
        name: args.lease_name.clone(),
        holder: holder.to_owned(),
        rank: if is_in_pod() { Rank::Replica } else { Rank::ByHand },
    });
    Ok(OperatorOptions {
        engine,
        webhook,
        lease,
        health_listen: args.health_listen,
        is_ingesting: args.enable_watch_ingestion,
    })
}

fn limits(args: &ReverseRunArgs) -> Limits {
    Limits {
        files_max: args.git_batch_max_files as usize,
        bytes_max: (args.git_batch_max_bytes_mib as usize) << 20,
        wait_max: Duration::from_secs(args.git_batch_max_wait_sec.into()),
        silence: args.git_batch_silence,
        idle: Limits::default().idle,
        refresh: args.git_refresh,
        pending_bytes_max: (args.pending_max_mib as usize) << 20,
    }
}

/// Without an address there is no webhook, and authors are unknown.
fn webhook(args: &ReverseRunArgs) -> Result<Option<WebhookOptions>, String> {
    let target = match (&args.webhook_url, &args.webhook_service) {
        (Some(url), _) => match reqwest::Url::parse(url) {
            Ok(parsed) if parsed.scheme() == "https" => Target::Url(url.clone()),
            Ok(_) => return Err(format!("--webhook-url {url}: the API server calls https:// alone")),
            Err(why) => return Err(format!("--webhook-url {url}: {why}; write it as https://HOST:PORT")),
        },
        (None, Some(service)) => match service.split_once('/') {
            Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => {
                Target::Service { namespace: namespace.into(), name: name.into(), port: WEBHOOK_SERVICE_PORT }
            }
            _ => return Err(format!("--webhook-service {service}: write it as NAMESPACE/NAME")),
        },
        (None, None) => return Ok(None),
    };
    let files = args.webhook_cert.clone().zip(args.webhook_key.clone());
    Ok(Some(WebhookOptions {
        listen: args.webhook_listen,
        target,
        files: files.map(|(cert, key)| CertificateFiles { cert, key, ca: args.webhook_ca.clone() }),
        configuration: args.webhook_name.clone(),
        timeout_s: args.webhook_timeout_sec,
        cluster: args.cluster_name.clone(),
    }))
}

/// The default is a pod's. Whoever runs this by hand may not write there. Git
/// runs elsewhere, so it needs whole paths.
fn work_dir(args: &ReverseRunArgs) -> Result<PathBuf> {
    if let Some(chosen) = &args.work_dir {
        return std::path::absolute(chosen).with_context(|| format!("--work-dir {}", chosen.display()));
    }
    let system = PathBuf::from(WORK_DIR);
    let is_writable = || access(&system, Access::WRITE_OK | Access::EXEC_OK).is_ok();
    if std::fs::create_dir_all(&system).is_ok() && is_writable() {
        return Ok(system);
    }
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    let own = cache.with_context(|| format!("{WORK_DIR} cannot be written, and HOME is not set: give --work-dir"))?;
    let own = own.join("tidegate/reverse");
    tracing::info!(work_dir = %own.display(), "{WORK_DIR} cannot be written");
    Ok(own)
}

/// Kubernetes tells every pod where the API server is.
fn is_in_pod() -> bool {
    std::env::var_os("KUBERNETES_SERVICE_HOST").is_some()
}

/// In a pod it is the pod's name.
fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() { "reverser".into() } else { name.trim().to_owned() }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, Command};

    #[test]
    fn a_relative_work_dir_is_one_of_here() {
        let Command::Reverse(args) = Cli::parse_from(["tidegate", "reverse", "--work-dir", "w"]).command else {
            panic!("another command");
        };
        assert_eq!(work_dir(&args.run).unwrap(), std::env::current_dir().unwrap().join("w"));
    }
}
