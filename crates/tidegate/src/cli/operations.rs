//! What operators do: tokens, repositories, quarantine, the store.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::ConnectionArgs;
use crate::units::parse_duration;

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
  tidegate quarantine list --controller products
  tidegate quarantine list --retrying                       and what fails, but is tried again
  tidegate quarantine list --controller hook.sizes -o json")]
    List {
        #[command(flatten)]
        which: FailedArgs,
        /// How to print it
        #[arg(short, long, value_enum, default_value_t = QuarantineFormat::Table)]
        output: QuarantineFormat,
    },
    /// Have a controller try again, now
    #[command(after_help = "\
Examples:
  tidegate quarantine release shop/desk-lamp
  tidegate quarantine release --all --controller products
  tidegate quarantine release --all --retrying --controller hook.sizes     its endpoint is back")]
    Release {
        /// Everything that is in quarantine
        #[arg(long, conflicts_with = "key")]
        all: bool,
        #[command(flatten)]
        which: FailedArgs,
        /// The object, as NAMESPACE/NAME, or NAME for cluster scope
        key: Option<String>,
    },
}

#[derive(Args)]
pub struct FailedArgs {
    /// Of one controller, by its NAME in `tidegate controllers`; of a hook, hook.HOOK is enough
    #[arg(long, value_name = "NAME")]
    pub controller: Option<String>,
    /// Also what has failed and waits for its next attempt
    #[arg(long)]
    pub retrying: bool,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum QuarantineFormat {
    /// Columns, for people; errors are cut on a terminal alone
    Table,
    /// A list of objects
    Json,
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
From now on the account's token of this id is refused. Tokens are not listed anywhere: an id that
the account never had, also that of another account's token, changes nothing and is no error.
Text that is no id at all is refused.

Examples:
  tidegate whoami --token-file robot.token                     shows the account and the token's id
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
#[command(after_help = "\
Examples:
  tidegate repo sync shop/catalogue      fetch a remote repository now
  tidegate repo verify                   do store and Git agree, in every repository?")]
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
        #[arg(value_name = "NAMESPACE/NAME", value_parser = repository)]
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
        #[arg(value_name = "NAMESPACE/NAME", value_parser = repository)]
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
    #[command(after_help = "\
Exit codes: 0 everything agrees, 1 something does not, or the store cannot be read.

Examples:
  tidegate store check
  tidegate store check --data-dir /var/lib/tidegate")]
    Check,
    /// Give back the disk that deleted rows still take
    #[command(after_help = "\
What is in the journal alone is written to the tables, too. The journal keeps its size until the
server has filled it (64 MiB), so a store from which little was deleted may take more than before.

Example:
  tidegate store compact --data-dir /var/lib/tidegate")]
    Compact,
    /// Write everything to a file, `-` for stdout; versions and epoch are kept
    #[command(after_help = "\
Copy `signing.key`, `admin.token` and `repos/` beside it: they are not part of the export.

Examples:
  tidegate store export backup.tidegate
  tidegate store export - --data-dir /var/lib/tidegate | zstd > backup.tidegate.zst")]
    Export {
        /// A new file, or `-`
        file: PathBuf,
    },
    /// Fill an empty directory from an export, `-` for stdin
    #[command(after_help = "\
Examples:
  tidegate store import backup.tidegate --data-dir ./moved             clients resume
  tidegate store import backup.tidegate --restore --data-dir ./old     they list again
  zstd -dc backup.tidegate.zst | tidegate store import -")]
    Import {
        /// What `store export` wrote, or `-`
        file: PathBuf,
        /// The export is older than what clients have seen: start a new epoch, so that they list again
        #[arg(long)]
        restore: bool,
    },
}

fn account(text: &str) -> Result<Account, String> {
    namespaced(text, "default/robot")
}

fn repository(text: &str) -> Result<Account, String> {
    namespaced(text, "shop/catalogue")
}

fn namespaced(text: &str, example: &str) -> Result<Account, String> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
            Ok(Account { namespace: namespace.into(), name: name.into() })
        }
        _ => Err(format!("write it as NAMESPACE/NAME, such as `{example}`")),
    }
}
