//! The defaults: the libraries' own where they have one.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use tidegate_server::graphql::limits::Limits as GraphqlLimits;
use tidegate_server::http::Limits as HttpLimits;
use tidegate_server::repos::{HostedLimits, RemoteLimits};
use tidegate_store::{Options, WindowLimits};

use super::{
    Bytes, Config, Git, Graphql, Http, List, Log, LogFormat, Remote, Secrets, Store, Switch, Tls, Watch, Window,
};

/// Also where the client commands look for the admin token.
pub const DATA_DIR: &str = "./tidegate-data";
/// The engine tells of its own housekeeping; only its worries are ours.
pub const LOG_FILTER: &str = "info,fjall=warn,lsm_tree=warn";
const PORT: u16 = 7300;

impl Default for Config {
    fn default() -> Self {
        let (store, limits, http) = (Options::default(), GraphqlLimits::default(), HttpLimits::default());
        Self {
            data_dir: PathBuf::from(DATA_DIR),
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)),
            tls: Tls { cert: None, key: None },
            allow_plaintext: false,
            manifests: None,
            controllers: Switch::On,
            drain_time: http.drain_time,
            window: window(store.window),
            list: list(&store, &limits),
            watch: watch(&store, &limits),
            graphql: graphql(&limits),
            http: self::http(&http),
            git: git(HostedLimits::default()),
            secrets: Secrets { dir: None },
            remote: remote(RemoteLimits::default()),
            store: self::store(&store),
            log: Log { format: LogFormat::Auto, filter: LOG_FILTER.into() },
        }
    }
}

fn window(WindowLimits { age, events, bytes }: WindowLimits) -> Window {
    Window { age, events, bytes: Bytes(bytes) }
}

fn list(store: &Options, limits: &GraphqlLimits) -> List {
    List {
        snapshot_ttl: store.list_snapshot_ttl,
        snapshots_max: store.list_snapshots_max,
        page_objects_max: limits.page_objects_max,
        page_bytes_max: Bytes::new(limits.page_bytes_max),
        at_once_max: limits.lists_at_once_max,
    }
}

fn watch(store: &Options, limits: &GraphqlLimits) -> Watch {
    Watch {
        total_max: store.watchers_max,
        per_identity_max: limits.watches_per_identity_max,
        per_connection_max: limits.subscriptions_per_connection_max,
        bookmark_interval: store.bookmark_interval,
        live_events_max: store.live_events_max,
        live_bytes_max: Bytes::new(store.live_bytes_max),
    }
}

fn graphql(limits: &GraphqlLimits) -> Graphql {
    Graphql {
        depth_max: limits.depth_max,
        complexity_max: limits.complexity_max,
        recursion_max: limits.recursion_max,
        directives_max: limits.directives_max,
        init_timeout: limits.init_timeout,
        prepared_max: limits.prepared_max,
    }
}

fn http(limits: &HttpLimits) -> Http {
    Http {
        connections_max: limits.connections_max,
        header_bytes_max: Bytes(limits.header_bytes_max.into()),
        header_read_timeout: limits.header_read_timeout,
        body_bytes_max: Bytes::new(limits.body_bytes_max),
        body_read_timeout: limits.body_read_timeout,
        write_stall_timeout: limits.write_stall_timeout,
    }
}

fn git(HostedLimits { pack_bytes_max, changed_files_max, stall_max, deleted_grace }: HostedLimits) -> Git {
    Git { pack_bytes_max: Bytes(pack_bytes_max), changed_files_max, stall_timeout: stall_max, deleted_grace }
}

fn remote(RemoteLimits { time_max, stall_max, pack_bytes_max }: RemoteLimits) -> Remote {
    let (fetch_timeout, stall_timeout) = (time_max, stall_max);
    Remote { allow_http: false, fetch_timeout, stall_timeout, pack_bytes_max: Bytes(pack_bytes_max) }
}

fn store(options: &Options) -> Store {
    Store {
        cache_bytes: Bytes(options.cache_bytes),
        memtable_bytes: Bytes(options.memtable_bytes),
        transaction_writes_max: options.transaction_writes_max,
        transaction_bytes_max: Bytes::new(options.transaction_bytes_max),
        accept_loss: false,
    }
}
