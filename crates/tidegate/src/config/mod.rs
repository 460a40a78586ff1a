//! The configuration of `serve`: one typed tree.
//!
//! Defaults are the libraries' own; a file, the environment and flags override
//! them, in this order of growing strength.
//!
//! Invariant: a `Config` that [`load`] returns is valid. Each key is written
//! down once, in `keys.rs`; files, variables, flags and the reference are
//! derived from there.

mod defaults;
mod file;
mod keys;
mod layers;
#[cfg(test)]
mod reference;
mod setting;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub use defaults::{DATA_DIR, LOG_FILTER};
pub use layers::{Sources, load};
pub use setting::{Bytes, LogFormat, Switch, log_format};

/// The flags that keys have of their own.
#[cfg(test)]
pub fn flags() -> impl Iterator<Item = &'static str> {
    keys::KEYS.iter().filter_map(|key| key.flag)
}

/// Each key with its value in force and its meaning.
pub fn shown(config: &Config) -> Vec<Vec<String>> {
    keys::KEYS.iter().map(|key| vec![key.path.into(), (key.show)(config), key.help.into()]).collect()
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    pub data_dir: PathBuf,
    pub listen: SocketAddr,
    pub tls: Tls,
    pub allow_plaintext: bool,
    pub manifests: Option<PathBuf>,
    pub controllers: Switch,
    pub drain_time: Duration,
    pub window: Window,
    pub list: List,
    pub watch: Watch,
    pub graphql: Graphql,
    pub http: Http,
    pub git: Git,
    pub secrets: Secrets,
    pub remote: Remote,
    pub store: Store,
    pub log: Log,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tls {
    pub cert: Option<PathBuf>,
    pub key: Option<PathBuf>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Window {
    pub age: Duration,
    pub events: u64,
    pub bytes: Bytes,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct List {
    pub snapshot_ttl: Duration,
    pub snapshots_max: usize,
    pub page_objects_max: usize,
    pub page_bytes_max: Bytes,
    pub at_once_max: usize,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Watch {
    pub total_max: usize,
    pub per_identity_max: usize,
    pub per_connection_max: usize,
    pub bookmark_interval: Duration,
    pub live_events_max: usize,
    pub live_bytes_max: Bytes,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Graphql {
    pub depth_max: usize,
    pub complexity_max: usize,
    pub recursion_max: usize,
    pub directives_max: usize,
    pub init_timeout: Duration,
    pub prepared_max: usize,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Http {
    pub connections_max: u32,
    pub header_bytes_max: Bytes,
    pub header_read_timeout: Duration,
    pub body_bytes_max: Bytes,
    pub body_read_timeout: Duration,
    pub write_stall_timeout: Duration,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Git {
    pub pack_bytes_max: Bytes,
    pub changed_files_max: usize,
    pub stall_timeout: Duration,
    pub deleted_grace: Duration,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Secrets {
    pub dir: Option<PathBuf>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Remote {
    pub allow_http: bool,
    pub fetch_timeout: Duration,
    pub stall_timeout: Duration,
    pub pack_bytes_max: Bytes,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Store {
    pub cache_bytes: Bytes,
    pub memtable_bytes: Bytes,
    pub transaction_writes_max: usize,
    pub transaction_bytes_max: Bytes,
    pub accept_loss: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Log {
    pub format: LogFormat,
    pub filter: String,
}
