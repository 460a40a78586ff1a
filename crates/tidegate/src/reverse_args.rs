//! The flags of `tidegate reverse`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, Subcommand};

use crate::config::{LogFormat, log_format};
use crate::units::parse_duration;

/// Where a pod has its volume.
pub const WORK_DIR: &str = "/var/cache/gitops-reverser";

#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
The four kinds must be defined first: tidegate reverse install --print | kubectl apply -f -

Examples:
  tidegate reverse                                      in a pod, with its service account
  tidegate reverse --kubeconfig ~/.kube/config --webhook-url https://127.0.0.1:9443
  tidegate reverse install --print | kubectl apply -f -"
)]
pub struct ReverseArgs {
    #[command(subcommand)]
    pub command: Option<ReverseCommand>,
    #[command(flatten)]
    pub run: ReverseRunArgs,
}

#[derive(Subcommand)]
pub enum ReverseCommand {
    /// Write what the operator needs in a cluster as YAML: definitions, RBAC, Deployment, Service, webhook
    Install(InstallArgs),
}

#[derive(Args)]
#[command(after_help = "\
Whoever applies it must be an administrator of the cluster.

Examples:
  tidegate reverse install --print | kubectl apply -f -
  tidegate reverse install --print --image registry.example.com/tidegate:0.1.0 > reverser.yaml
  tidegate reverse install --print --crds-only | kubectl apply -f -     definitions alone")]
pub struct InstallArgs {
    /// Write it to stdout, for `kubectl apply -f -`
    #[arg(long, required = true)]
    pub print: bool,
    /// Namespace of the operator
    #[arg(long, value_name = "NAMESPACE", default_value = "tidegate-system")]
    pub namespace: String,
    /// Image of the operator
    #[arg(long, value_name = "IMAGE", default_value = concat!("ghcr.io/tidegate/tidegate:", env!("CARGO_PKG_VERSION")))]
    pub image: String,
    /// Replicas; one works, the others wait
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub replicas: u32,
    /// The four definitions alone, for an operator that runs outside of the cluster
    #[arg(long)]
    pub crds_only: bool,
}

#[derive(Args)]
pub struct ReverseRunArgs {
    /// Kubeconfig; without it KUBECONFIG, else ~/.kube/config, else the service account of the pod
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Watch and write; without it only the webhook listens
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, default_value_t = true, default_missing_value = "true", value_name = "BOOL")]
    pub enable_watch_ingestion: bool,
    /// How often the served types are looked up although nothing told of a change
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = parse_duration)]
    pub discovery_refresh: Duration,
    /// Rules without `resources` mean every type, not the desired-state preset
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, default_value_t = false, default_missing_value = "true", value_name = "BOOL")]
    pub watch_all: bool,
    /// A type that no rule can select: PLURAL, PLURAL.GROUP or *.GROUP; may be repeated
    #[arg(long, value_name = "TYPE")]
    pub discovery_exclude: Vec<String>,
    /// A rule or destination may not name an object of another namespace
    #[arg(long)]
    pub no_cross_namespace_refs: bool,

    /// Files that fill a batch
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Git")]
    pub git_batch_max_files: u32,
    /// Mebibytes that fill a batch
    #[arg(long, value_name = "MIB", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Git")]
    pub git_batch_max_bytes_mib: u32,
    /// Seconds after which a batch is written although changes go on
    #[arg(long, value_name = "SECONDS", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Git")]
    pub git_batch_max_wait_sec: u32,
    /// Silence after which a batch is written
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = parse_duration, help_heading = "Git")]
    pub git_batch_silence: Duration,
    /// How often a remote is looked at although nothing changed in the cluster
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = parse_duration, help_heading = "Git")]
    pub git_refresh: Duration,
    /// Branches that are written and pushed at once; others wait for their turn
    #[arg(long, value_name = "N", default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Git")]
    pub workers_max_global: u32,
    /// The same, of one repository
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Git")]
    pub workers_max_per_repo: u32,
    /// Directory of the bare clones; may be empty at every start [default: /var/cache/gitops-reverser, or
    /// tidegate/reverse in the user's cache where that cannot be written]
    #[arg(long, value_name = "DIR", help_heading = "Git")]
    pub work_dir: Option<PathBuf>,
    /// Allow http:// to hosts other than this one
    #[arg(long, help_heading = "Git")]
    pub allow_plain_http: bool,
    /// Name of the committer
    #[arg(long, value_name = "NAME", default_value = "tidegate-reverser", help_heading = "Git")]
    pub committer_name: String,
    /// Address of the committer
    #[arg(
        long,
        value_name = "EMAIL",
        default_value = "tidegate-reverser@users.noreply.cluster.local",
        help_heading = "Git"
    )]
    pub committer_email: String,

    /// Address of the webhook
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9443", help_heading = "Authors")]
    pub webhook_listen: SocketAddr,
    /// Register the webhook by this URL, for an operator outside of the cluster
    #[arg(long, value_name = "URL", conflicts_with = "webhook_service", help_heading = "Authors")]
    pub webhook_url: Option<String>,
    /// Register the webhook by this Service: NAMESPACE/NAME
    #[arg(long, value_name = "NAMESPACE/NAME", help_heading = "Authors")]
    pub webhook_service: Option<String>,
    /// Name of the ValidatingWebhookConfiguration
    #[arg(long, value_name = "NAME", default_value = "tidegate-reverser", help_heading = "Authors")]
    pub webhook_name: String,
    /// Certificate chain (PEM); without it one is made and registered
    #[arg(long, value_name = "FILE", requires = "webhook_key", help_heading = "Authors")]
    pub webhook_cert: Option<PathBuf>,
    /// Private key (PEM)
    #[arg(long, value_name = "FILE", requires = "webhook_cert", help_heading = "Authors")]
    pub webhook_key: Option<PathBuf>,
    /// Certificates (PEM) that the API server is to trust; --webhook-cert if left out
    #[arg(long, value_name = "FILE", requires = "webhook_cert", help_heading = "Authors")]
    pub webhook_ca: Option<PathBuf>,
    /// Seconds that the API server waits for the webhook before it goes on without it, 1 to 30
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=30), help_heading = "Authors")]
    pub webhook_timeout_sec: u32,
    /// How long a change waits for its author
    #[arg(long, value_name = "DURATION", default_value = "200ms", value_parser = parse_duration, help_heading = "Authors")]
    pub attribution_grace: Duration,
    /// Part of the address of users who have none: NAME@users.noreply.CLUSTER
    #[arg(long, value_name = "CLUSTER", default_value = "cluster.local", help_heading = "Authors")]
    pub cluster_name: String,

    /// Only the replica that holds a Lease works; one outside of the cluster goes first
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, default_value_t = true, default_missing_value = "true", value_name = "BOOL", help_heading = "Running")]
    pub leader_elect: bool,
    /// Namespace of the Lease, made if it is missing; also what commits call the operator's namespace
    #[arg(long, value_name = "NAMESPACE", default_value = "tidegate-system", help_heading = "Running")]
    pub lease_namespace: String,
    /// Name of the Lease; also what commits call the operator
    #[arg(long, value_name = "NAME", default_value = "tidegate-reverser", help_heading = "Running")]
    pub lease_name: String,
    /// Address of /healthz, /readyz and /metrics
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8081", help_heading = "Running")]
    pub health_listen: SocketAddr,
    /// auto, human or json
    #[arg(long, value_name = "FORMAT", env = "TIDEGATE_LOG_FORMAT", default_value = "auto", value_parser = log_format, help_heading = "Running")]
    pub log_format: LogFormat,
    /// Bytes of changes kept in memory for each branch while Git is away; beyond it objects are read again
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Running")]
    pub pending_max_mib: u32,
}

#[cfg(test)]
#[path = "reverse_args_tests.rs"]
mod tests;
