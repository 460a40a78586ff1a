//! What shows objects, and what checks them before they are any.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::ConnectionArgs;
use crate::units::parse_duration;

#[derive(Args)]
#[command(after_help = "\
Known are the built-in kinds, those that the tree defines, and those of a server with --with-server.
Exit codes: 0 no problems, 1 problems (with --strict also warnings) or a failure, 2 called wrongly.

Examples:
  tidegate check                              the current directory
  tidegate check examples/shop -n shop        as a repository of the namespace `shop`
  tidegate check --output github --strict     in a workflow: problems appear at their lines
  tidegate check --with-server                with the kinds and namespaces of a server")]
pub struct CheckArgs {
    /// Folder or file to check
    #[arg(default_value = ".")]
    pub path: PathBuf,
    /// Namespace of objects whose file names none
    #[arg(short, long, default_value = "default")]
    pub namespace: String,
    /// How the problems are written
    #[arg(short, long, value_enum, default_value_t = ReportFormat::Text)]
    pub output: ReportFormat,
    /// Fail on warnings, too
    #[arg(long)]
    pub strict: bool,
    /// Ask a server for its kinds and namespaces
    #[arg(long)]
    pub with_server: bool,
    #[command(flatten)]
    pub connection: ConnectionArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum ReportFormat {
    /// `file:line: field: message`
    Text,
    /// One object with all of them
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// Workflow commands of GitHub Actions
    Github,
}

/// Which objects.
#[derive(Args)]
pub struct SelectArgs {
    /// Plural, singular, short name or kind, with `.group` where it is ambiguous; also KIND/NAME
    #[arg(value_name = "KIND")]
    pub kind_and_name: String,
    /// One object
    #[arg(value_name = "NAME")]
    pub one: Option<String>,
    /// Namespace of a namespaced kind
    #[arg(short, long, default_value = "default")]
    pub namespace: String,
    /// All namespaces
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub all_namespaces: bool,
    /// Labels: `season=winter,tier in (a, b),!draft`
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    pub selector: Option<String>,
    /// Fields: `metadata.name=a`, `metadata.namespace!=b`
    #[arg(long, value_name = "SELECTOR")]
    pub field_selector: Option<String>,
}

impl SelectArgs {
    pub fn kind(&self) -> &str {
        self.kind_and_name.split_once('/').map_or(&*self.kind_and_name, |(kind, _)| kind)
    }

    pub fn name(&self) -> Option<&str> {
        self.one.as_deref().or(self.kind_and_name.split_once('/').map(|(_, name)| name))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum OutputFormat {
    /// Columns, for people
    Table,
    /// One document an object
    Yaml,
    /// `get`: one list, or the object; `watch`: one line an event
    Json,
    /// `products.catalog.gitstore.dev/desk-lamp`, for scripts
    Name,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  tidegate get products                          the products of the namespace `default`
  tidegate get product desk-lamp -n shop -o yaml one object; product/desk-lamp is the same
  tidegate get products -A -l season=winter      all namespaces, by label
  tidegate get crd -o name                       names alone, for scripts")]
pub struct GetArgs {
    #[command(flatten)]
    pub select: SelectArgs,
    /// How objects are written
    #[arg(short, long, value_enum, default_value_t = OutputFormat::Table)]
    pub output: OutputFormat,
    /// At most this many objects
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,
    #[command(flatten)]
    pub connection: ConnectionArgs,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  tidegate watch products -A                               the current objects, then each change
  tidegate watch products --no-initial -o json             changes alone, one line each
  tidegate watch products --since 1848736000000123         exactly what came after that version
  tidegate watch product/desk-lamp --count 1 --timeout 1m --no-initial     wait for one change")]
pub struct WatchArgs {
    #[command(flatten)]
    pub select: SelectArgs,
    /// How events are written
    #[arg(short, long, value_enum, default_value_t = OutputFormat::Table)]
    pub output: OutputFormat,
    /// Exactly the events after this resourceVersion
    #[arg(long, value_name = "RESOURCEVERSION", conflicts_with = "initial")]
    pub since: Option<String>,
    /// First the current objects, as ADDED (the default without --since)
    #[arg(long, overrides_with = "no_initial")]
    pub initial: bool,
    /// Only what changes from now on
    #[arg(long, overrides_with = "initial")]
    pub no_initial: bool,
    /// End after this many events
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// End after this time; fails if --count was not reached
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub timeout: Option<Duration>,
    #[command(flatten)]
    pub connection: ConnectionArgs,
}
