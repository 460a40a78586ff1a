//! What runs until it is stopped.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tidegate_model::terminal::is_unprintable;

use super::ConnectionArgs;
use crate::config::LogFormat;
use crate::units::parse_duration;

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

/// With the word that is added to it, a lease has room for 253 bytes.
fn holder(text: &str) -> Result<String, String> {
    match text.len() {
        // It is shown in logs, on terminals.
        1..=200 if !text.contains(is_unprintable) => Ok(text.to_owned()),
        1..=200 => Err("a name has no control characters".into()),
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
