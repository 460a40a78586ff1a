//! The configuration, handed to those it concerns.
//!
//! Destructured whole: a key that nobody uses does not compile.

use std::ffi::OsString;

use tidegate_server::graphql::limits::Limits as GraphqlLimits;
use tidegate_server::http::{self, Listen, Plaintext, TlsFiles};
use tidegate_server::{repos, server};
use tidegate_store::{OnLoss, WindowLimits};

use crate::config::{Config, Git, Graphql, Http, List, Log, Remote, Secrets, Store, Tls, Watch, Window};

pub fn options(config: Config, search_path: OsString) -> server::Options {
    let Config {
        data_dir,
        listen,
        tls,
        allow_plaintext,
        manifests,
        // `serve` looks at it itself.
        controllers: _,
        drain_time,
        window,
        list,
        watch,
        graphql,
        http,
        git,
        secrets,
        remote,
        store,
        log,
    } = config;
    // Telemetry has them already.
    let Log { format: _, filter: _ } = log;
    let Tls { cert, key } = tls;
    let Http {
        connections_max,
        header_bytes_max,
        header_read_timeout,
        body_bytes_max,
        body_read_timeout,
        write_stall_timeout,
    } = http;
    server::Options {
        data_dir,
        listen: Listen {
            address: listen,
            tls: cert.zip(key).map(|(cert, key)| TlsFiles { cert, key, ca: None }),
            plaintext: if allow_plaintext { Plaintext::Allowed } else { Plaintext::LoopbackOnly },
        },
        store: store_options(window, &list, &watch, store),
        graphql: graphql_limits(graphql, &list, &watch, body_bytes_max.as_usize()),
        http: http::Limits {
            connections_max,
            header_bytes_max: u32::try_from(header_bytes_max.0).unwrap_or(u32::MAX),
            header_read_timeout,
            body_bytes_max: body_bytes_max.as_usize(),
            body_read_timeout,
            write_stall_timeout,
            drain_time,
        },
        manifests,
        repos: repos::Options {
            git: "git".into(),
            search_path,
            remote: remote_options(secrets, remote),
            limits: hosted_limits(git),
        },
    }
}

fn hosted_limits(git: Git) -> repos::HostedLimits {
    let Git { pack_bytes_max, changed_files_max, stall_timeout, deleted_grace } = git;
    repos::HostedLimits { pack_bytes_max: pack_bytes_max.0, changed_files_max, stall_max: stall_timeout, deleted_grace }
}

fn remote_options(secrets: Secrets, remote: Remote) -> repos::RemoteOptions {
    let Remote { allow_http, fetch_timeout, stall_timeout, pack_bytes_max } = remote;
    repos::RemoteOptions {
        secrets_dir: secrets.dir,
        plain_http: if allow_http { repos::PlainHttp::Allowed } else { repos::PlainHttp::LoopbackOnly },
        limits: repos::RemoteLimits {
            time_max: fetch_timeout,
            stall_max: stall_timeout,
            pack_bytes_max: pack_bytes_max.0,
        },
    }
}

fn store_options(window: Window, list: &List, watch: &Watch, store: Store) -> tidegate_store::Options {
    let Window { age, events, bytes } = window;
    let Store { cache_bytes, memtable_bytes, transaction_writes_max, transaction_bytes_max, accept_loss } = store;
    tidegate_store::Options {
        window: WindowLimits { age, events, bytes: bytes.0 },
        bookmark_interval: watch.bookmark_interval,
        watchers_max: watch.total_max,
        live_events_max: watch.live_events_max,
        live_bytes_max: watch.live_bytes_max.as_usize(),
        list_snapshots_max: list.snapshots_max,
        list_snapshot_ttl: list.snapshot_ttl,
        transaction_writes_max,
        transaction_bytes_max: transaction_bytes_max.as_usize(),
        cache_bytes: cache_bytes.0,
        memtable_bytes: memtable_bytes.0,
        on_loss: if accept_loss { OnLoss::NewEpoch } else { OnLoss::Refuse },
        ..tidegate_store::Options::default()
    }
}

fn graphql_limits(graphql: Graphql, list: &List, watch: &Watch, body_bytes_max: usize) -> GraphqlLimits {
    let Graphql { depth_max, complexity_max, recursion_max, directives_max, init_timeout, prepared_max } = graphql;
    // What the store takes of them is `store_options`' part.
    let List { snapshot_ttl: _, snapshots_max: _, page_objects_max, page_bytes_max, at_once_max } = list;
    let Watch {
        total_max: _,
        per_identity_max,
        per_connection_max,
        bookmark_interval: _,
        live_events_max: _,
        live_bytes_max: _,
    } = watch;
    GraphqlLimits {
        depth_max,
        complexity_max,
        recursion_max,
        directives_max,
        body_bytes_max,
        page_objects_max: *page_objects_max,
        page_bytes_max: page_bytes_max.as_usize(),
        lists_at_once_max: *at_once_max,
        watches_per_identity_max: *per_identity_max,
        subscriptions_per_connection_max: *per_connection_max,
        init_timeout,
        prepared_max,
        // No key sets them: what they bound is never useful.
        ..GraphqlLimits::default()
    }
}
