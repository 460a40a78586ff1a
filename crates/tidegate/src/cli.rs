//! What may be typed. `--help` is enough to get going.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::config::LogFormat;
use crate::reverse_args::ReverseArgs;
use crate::units::parse_duration;

const EXAMPLES: &str = "\
Getting started:
  tidegate serve                     a server on http://127.0.0.1:7300, data in ./tidegate-data
  tidegate whoami                    in the same directory: finds ./tidegate-data/admin.token
  tidegate kinds                     what can be listed and watched
  tidegate get products -A           a table of all products
  tidegate watch products -o json    one line an event, until Ctrl-C

Exit codes: 0 it worked, 1 it failed, 2 it was called wrongly.";

const KINDS_EXAMPLES: &str = "\
Every name in the table can be given to `get` and `watch`.

Examples:
  tidegate kinds
  tidegate kinds --server https://tidegate.example.com --token-file robot.token";

const WHOAMI_EXAMPLES: &str = "\
Examples:
  tidegate whoami                              the token that other commands would use from here
  tidegate whoami --token-file robot.token     whose it is, its id, and when it expires";

const CONTROLLERS_EXAMPLES: &str = "\
LEADER is the manager that runs a controller: `NAME (gone)` if its lease has ended, `none (WHY)` if it
is a hook's and the hook cannot be used. OLDEST is how long the first in the queue waits, BEHIND-FOR
how long the oldest change that is not reconciled.

Examples:
  tidegate controllers
  watch -n 2 tidegate controllers              while something catches up";

#[derive(Parser)]
#[command(name = "tidegate", version, about = "Git and a Kubernetes-style API, kept in step", after_help = EXAMPLES, max_term_width = 110)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Run the server: Git repositories, the store, the GraphQL API, the watch
    Serve(ServeArgs),
    /// Run the controller manager of a server as a process of its own
    Control(ControlArgs),
    /// Write every change of a Kubernetes cluster to Git, with its author
    Reverse(Box<ReverseArgs>),
    /// Check the manifests of a work tree as a push would be checked
    Check(CheckArgs),
    /// Show objects as a table, YAML or JSON
    Get(GetArgs),
    /// Follow the changes of objects; resumes by itself after a lost connection
    Watch(WatchArgs),
    /// List the kinds that the server knows
    #[command(after_help = KINDS_EXAMPLES)]
    Kinds(ConnectionArgs),
    /// Say who the token is
    #[command(after_help = WHOAMI_EXAMPLES)]
    Whoami(ConnectionArgs),
    /// Create and revoke tokens of service accounts
    Token(TokenArgs),
    /// Bring repositories up to date, and compare them with the store
    Repo(RepoArgs),
    /// Show what each controller does, and how far behind it is
    #[command(after_help = CONTROLLERS_EXAMPLES)]
    Controllers(ConnectionArgs),
    /// List and release the objects that controllers have given up on
    Quarantine(QuarantineArgs),
    /// Check, compact, export and import the store of a stopped server
    Store(StoreArgs),
    /// Print a completion script for a shell
    Completion { shell: Shell },
}

#[derive(Args)]
#[command(after_help = "\
Every key of docs/configuration.md can be set in the file, by a TIDEGATE_… variable, or with --set.

Examples:
  tidegate serve
  tidegate serve --data-dir /var/lib/tidegate --listen 0.0.0.0:7300 --tls-cert a.crt --tls-key a.key
  tidegate serve --window-age 48h --set list.page_objects_max=1000")]
pub struct ServeArgs {
    /// Configuration file (YAML)
    #[arg(long, value_name = "FILE", env = "TIDEGATE_CONFIG")]
    pub config: Option<PathBuf>,
    /// Directory of the store, the signing key and the admin token [default: ./tidegate-data]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<String>,
    /// Address and port to listen on [default: 127.0.0.1:7300]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<String>,
    /// Certificate chain (PEM); needs --tls-key
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<String>,
    /// Private key (PEM); needs --tls-cert
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<String>,
    /// Listen without TLS on more than loopback, behind a proxy that speaks TLS
    #[arg(long, alias = "insecure-listen")]
    pub allow_plaintext: bool,
    /// Folder of manifests (YAML, JSON, Markdown) to admit before serving
    #[arg(long, value_name = "DIR")]
    pub manifests: Option<String>,
    /// on or off: run the controllers in this process [default: on]
    #[arg(long, value_name = "ON|OFF")]
    pub controllers: Option<String>,
    /// Directory of secrets as files, NAMESPACE/NAME/KEY, for remote repositories and hooks
    #[arg(long, value_name = "DIR")]
    pub secrets_dir: Option<String>,
    /// How long an event can be watched from [default: 24h]
    #[arg(long, value_name = "DURATION")]
    pub window_age: Option<String>,
    /// How many events can be watched from [default: 5000000]
    #[arg(long, value_name = "N")]
    pub window_events: Option<String>,
    /// How much disk the events may take [default: 4GiB]
    #[arg(long, value_name = "SIZE")]
    pub window_bytes: Option<String>,
    /// How long running requests may go on after SIGTERM [default: 20s]
    #[arg(long, value_name = "DURATION")]
    pub drain_time: Option<String>,
    /// Start although acknowledged writes are missing, with a new epoch
    #[arg(long)]
    pub accept_loss: bool,
    /// auto, human or json [default: auto]
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<String>,
    /// Any key of the configuration; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub set: Vec<(String, String)>,
    /// Print the configuration that these flags, the file and the environment amount to, and end
    #[arg(long)]
    pub show_config: bool,
}

#[derive(Args)]
#[command(after_help = "\
Of several managers of one server, `serve` included, one works and the others stand by.
The token is that of the service account `system/controller-manager`, or of one with the same role.
Its file is read for each request, so replace it before it expires.
While the server is away the manager waits, and says so once.

Examples:
  tidegate token create --service-account system/controller-manager --ttl 30d -o manager.token
  tidegate control --server https://tidegate.example.com --token-file manager.token
  tidegate control --token-file manager.token --listen 127.0.0.1:7301     for /readyz and /metrics")]
pub struct ControlArgs {
    /// Address and port of /livez, /readyz and /metrics; not served if left out
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<SocketAddr>,
    /// Certificate chain (PEM) of that address; needs --tls-key
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Private key (PEM) of that address; needs --tls-cert
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Listen without TLS on more than loopback
    #[arg(long)]
    pub allow_plaintext: bool,
    /// auto, human or json
    #[arg(long, value_name = "FORMAT", env = "TIDEGATE_LOG_FORMAT", default_value = "auto", value_parser = crate::config::log_format)]
    pub log_format: LogFormat,
    /// What `tidegate controllers` calls this manager; each start adds a word of its own [default: control-PID]
    #[arg(long, value_name = "NAME", value_parser = holder)]
    pub holder: Option<String>,
    /// How long a manager that dies or hangs keeps the others waiting, from 1s to 1h
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = lease_duration)]
    pub lease_duration: Duration,
    /// Directory of secrets as files, NAMESPACE/NAME/KEY, for hooks
    #[arg(long, value_name = "DIR")]
    pub secrets_dir: Option<PathBuf>,
    #[command(flatten)]
    pub connection: ConnectionArgs,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  tidegate quarantine list
  tidegate quarantine release shop/desk-lamp")]
pub struct QuarantineArgs {
    #[command(subcommand)]
    pub command: QuarantineCommand,
    #[command(flatten)]
    pub connection: ConnectionArgs,
}

#[derive(Subcommand)]
pub enum QuarantineCommand {
    /// What is in quarantine, and why
    #[command(after_help = "\
Examples:
  tidegate quarantine list
  tidegate quarantine list --controller products")]
    List {
        /// Of one controller
        #[arg(long, value_name = "NAME")]
        controller: Option<String>,
    },
    /// Have a controller try again, now
    #[command(after_help = "\
Examples:
  tidegate quarantine release shop/desk-lamp
  tidegate quarantine release --all --controller products")]
    Release {
        /// Everything that is in quarantine
        #[arg(long, conflicts_with = "key")]
        all: bool,
        /// Of one controller
        #[arg(long, value_name = "NAME")]
        controller: Option<String>,
        /// The object, as NAMESPACE/NAME, or NAME for cluster scope
        key: Option<String>,
    },
}

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

/// Which server, and who asks.
#[derive(Args)]
#[command(next_help_heading = "Connection")]
pub struct ConnectionArgs {
    /// Address of the server
    #[arg(long, global = true, value_name = "URL", env = "TIDEGATE_SERVER", default_value = "http://127.0.0.1:7300")]
    pub server: String,
    /// File with the token; else the variable TIDEGATE_TOKEN, else ./tidegate-data/admin.token
    #[arg(long, global = true, value_name = "FILE", env = "TIDEGATE_TOKEN_FILE")]
    pub token_file: Option<PathBuf>,
    /// Certificates (PEM) to trust instead of the system's
    #[arg(long, global = true, value_name = "FILE", env = "TIDEGATE_CA_FILE")]
    pub ca_file: Option<PathBuf>,
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

#[derive(Args)]
#[command(after_help = "\
Examples:
  tidegate token create --service-account shop/robot --ttl 30d -o robot.token
  tidegate token revoke --service-account shop/robot ID     the id that `create` and `whoami` print")]
pub struct TokenArgs {
    #[command(subcommand)]
    pub command: TokenCommand,
    #[command(flatten)]
    pub connection: ConnectionArgs,
}

#[derive(Subcommand)]
pub enum TokenCommand {
    /// Create a token; it alone goes to stdout, its id and expiry to stderr
    #[command(after_help = "\
The account is a ServiceAccount that was pushed; what it may do, the roles say that are bound to it.

Examples:
  tidegate token create --service-account shop/robot -o robot.token
  tidegate token create --service-account shop/robot --ttl 30d | ssh host 'cat > robot.token'")]
    Create {
        /// The account, as NAMESPACE/NAME
        #[arg(long, value_name = "NAMESPACE/NAME", value_parser = account)]
        service_account: Account,
        /// How long it is valid [default: 24h]
        #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
        ttl: Option<Duration>,
        /// Write the token to this new file (mode 0600) instead
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Revoke a token before it expires, and end its open watches
    #[command(after_help = "\
Examples:
  tidegate whoami --token-file robot.token                     shows the token's id
  tidegate token revoke --service-account shop/robot ID")]
    Revoke {
        /// The account, as NAMESPACE/NAME
        #[arg(long, value_name = "NAMESPACE/NAME", value_parser = account)]
        service_account: Account,
        /// The id that `token create` printed, or `whoami` prints
        id: String,
    },
}

#[derive(Args)]
pub struct RepoArgs {
    #[command(subcommand)]
    pub command: RepoCommand,
    #[command(flatten)]
    pub connection: ConnectionArgs,
}

#[derive(Subcommand)]
pub enum RepoCommand {
    /// Fetch a remote repository now, and say what came of it
    #[command(after_help = "\
Exit codes: 0 its head is in force, 1 it is refused or could not be fetched.

Example:
  tidegate repo sync shop/catalogue")]
    Sync {
        /// The repository, as NAMESPACE/NAME
        #[arg(value_name = "NAMESPACE/NAME", value_parser = account)]
        repository: Account,
    },
    /// Say where store and Git disagree; exit code 1 if they do
    #[command(after_help = "\
The server must be running; pushes wait while a repository is compared.
Looking needs the verb `fetch` on the repository, mending the verb `push`.

Examples:
  tidegate repo verify                           every repository
  tidegate repo verify shop/catalogue            one
  tidegate repo verify shop/catalogue --repair   and make the store what Git says")]
    Verify {
        /// Repositories as NAMESPACE/NAME; all if none is named
        #[arg(value_name = "NAMESPACE/NAME", value_parser = account)]
        repositories: Vec<Account>,
        /// Make the store what the head of the projected branch says
        #[arg(long)]
        repair: bool,
    },
}

#[derive(Clone, Debug)]
pub struct Account {
    pub namespace: String,
    pub name: String,
}

#[derive(Args)]
#[command(after_help = "\
The server must be stopped.
Tokens are not part of an export: copy `signing.key` too if they are to stay valid.

Examples:
  tidegate store check
  tidegate store export backup.tidegate
  tidegate store export - | ssh host tidegate store import -
  tidegate store import backup.tidegate --restore --data-dir ./restored")]
pub struct StoreArgs {
    /// Directory that `serve` uses
    #[arg(long, global = true, value_name = "DIR", env = "TIDEGATE_DATA_DIR", default_value = crate::config::DATA_DIR)]
    pub data_dir: PathBuf,
    #[command(subcommand)]
    pub command: StoreCommand,
}

#[derive(Subcommand)]
pub enum StoreCommand {
    /// Read every row and compare what must agree
    Check,
    /// Give back the disk that deleted rows still take
    #[command(after_help = "\
What is in the journal alone is written to the tables, too. The journal keeps its size until the
server has filled it (64 MiB), so a store from which little was deleted may take more than before.")]
    Compact,
    /// Write everything to a file, `-` for stdout; versions and epoch are kept
    Export {
        /// A new file, or `-`
        file: PathBuf,
    },
    /// Fill an empty directory from an export, `-` for stdin
    Import {
        /// What `store export` wrote, or `-`
        file: PathBuf,
        /// The export is older than what clients have seen: start a new epoch, so that they list again
        #[arg(long)]
        restore: bool,
    },
}

/// With the word that is added to it, a lease has room for 253 bytes.
fn holder(text: &str) -> Result<String, String> {
    match text.len() {
        1..=200 => Ok(text.to_owned()),
        _ => Err("a name has 1 to 200 bytes".into()),
    }
}

/// A lease knows whole seconds.
fn lease_duration(text: &str) -> Result<Duration, String> {
    let duration = parse_duration(text)?;
    match (duration.as_secs(), duration.subsec_nanos()) {
        (1..=3600, 0) => Ok(duration),
        _ => Err(format!("`{text}` is not a number of seconds from 1s to 1h")),
    }
}

fn key_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write it as KEY=VALUE")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

fn account(text: &str) -> Result<Account, String> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
            Ok(Account { namespace: namespace.into(), name: name.into() })
        }
        _ => Err("write it as NAMESPACE/NAME, such as `default/robot`".into()),
    }
}
