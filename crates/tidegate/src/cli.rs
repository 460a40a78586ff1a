//! What may be typed. `--help` is enough to get going.

mod objects;
mod operations;
mod processes;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

pub use self::objects::{CheckArgs, GetArgs, OutputFormat, ReportFormat, SelectArgs, WatchArgs};
pub use self::operations::{
    Account, FailedArgs, QuarantineArgs, QuarantineCommand, QuarantineFormat, RepoArgs, RepoCommand, StoreArgs,
    StoreCommand, TokenArgs, TokenCommand,
};
pub use self::processes::{ControlArgs, ServeArgs};
use crate::reverse_args::ReverseArgs;

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
LEADER is the manager that runs a controller: `NAME (gone)` if its lease has ended, `none (WHY)` for
a hook that cannot be used, with what is wrong below the table. The controller of a hook is called
hook.HOOK.HASH, that of one that could never start hook.HOOK.
OLDEST is how long the first in the queue has waited, BEHIND-FOR how long the oldest change that was
not tried. VERSIONS-BEHIND 0 says that every change of its kind is seen and was tried; what failed
is in RETRYING, and in QUARANTINED when it is given up on.

Examples:
  tidegate controllers
  watch -n 2 tidegate controllers              while something catches up";

const COMPLETION_EXAMPLES: &str = "\
Examples:
  tidegate completion bash > ~/.local/share/bash-completion/completions/tidegate
  tidegate completion zsh > ~/.zfunc/_tidegate
  tidegate completion fish > ~/.config/fish/completions/tidegate.fish";

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
    #[command(after_help = COMPLETION_EXAMPLES)]
    Completion {
        /// The shell that reads the script
        shell: Shell,
    },
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
