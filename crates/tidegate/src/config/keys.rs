//! Every key of the configuration, once.

use std::ops::RangeInclusive;

use super::Config;
use super::setting::Setting;

pub struct Key {
    /// As in the file, with dots: `window.age`.
    pub path: &'static str,
    /// The flag that exists for it; every key can be given with `--set`.
    pub flag: Option<&'static str>,
    pub help: &'static str,
    pub set: fn(&mut Config, &str) -> Result<(), String>,
    pub show: fn(&Config) -> String,
}

impl Key {
    /// `TIDEGATE_WINDOW_AGE`.
    pub fn variable(&self) -> String {
        format!("TIDEGATE_{}", self.path.replace('.', "_").to_uppercase())
    }
}

pub fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}

macro_rules! key {
    ($path:literal = $($field:ident).+, $flag:expr, $range:expr, $help:literal) => {
        Key {
            path: $path,
            flag: $flag,
            help: $help,
            set: |config, text| put(&mut config.$($field).+, text, $range),
            show: |config| config.$($field).+.show(),
        }
    };
}

/// For keys that have no size.
const ANY: RangeInclusive<u64> = 0..=u64::MAX;
const SECOND: u64 = 1_000;
const HOUR: u64 = 3_600 * SECOND;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const TIB: u64 = 1 << 40;

pub const KEYS: &[Key] = &[
    key!(
        "data_dir" = data_dir,
        Some("--data-dir"),
        ANY,
        "Directory of the store, the signing key and the admin token. Created at the first start."
    ),
    key!("listen" = listen, Some("--listen"), ANY, "Address and port of the one listener."),
    key!("tls.cert" = tls.cert, Some("--tls-cert"), ANY, "PEM file with the certificate chain. Needs `tls.key`."),
    key!("tls.key" = tls.key, Some("--tls-key"), ANY, "PEM file with the private key. Needs `tls.cert`."),
    key!(
        "allow_plaintext" = allow_plaintext,
        Some("--allow-plaintext"),
        ANY,
        "Listen without TLS on more than loopback: only behind a proxy that speaks TLS."
    ),
    key!(
        "manifests" = manifests,
        Some("--manifests"),
        ANY,
        "Folder of manifests (YAML, JSON, Markdown) to admit before serving."
    ),
    key!(
        "controllers" = controllers,
        Some("--controllers"),
        ANY,
        "`on` or `off`: run the controllers in this process. `tidegate control` runs them elsewhere."
    ),
    key!(
        "drain_time" = drain_time,
        Some("--drain-time"),
        1..=HOUR,
        "How long running requests may go on after SIGTERM."
    ),
    key!(
        "window.age" = window.age,
        Some("--window-age"),
        SECOND..=10_000 * HOUR,
        "How long an event can be watched from. The first of the three window limits counts."
    ),
    key!(
        "window.events" = window.events,
        Some("--window-events"),
        16..=10_000_000_000,
        "How many events can be watched from."
    ),
    key!("window.bytes" = window.bytes, Some("--window-bytes"), MIB..=64 * TIB, "How much disk the events may take."),
    key!(
        "list.snapshot_ttl" = list.snapshot_ttl,
        None,
        SECOND..=24 * HOUR,
        "How long a paged list waits for its next page."
    ),
    key!(
        "list.snapshots_max" = list.snapshots_max,
        None,
        1..=100_000,
        "Paged lists that wait at once; the oldest gives way."
    ),
    key!(
        "list.page_objects_max" = list.page_objects_max,
        None,
        1..=1_000_000,
        "Objects on one page, also when a client asks for more."
    ),
    key!("list.page_bytes_max" = list.page_bytes_max, None, 64 * KIB..=1024 * MIB, "A page ends early at this size."),
    key!("list.at_once_max" = list.at_once_max, None, 1..=10_000, "Pages being read at the same moment; others wait."),
    key!("watch.total_max" = watch.total_max, None, 1..=10_000_000, "Open watches of all clients."),
    key!(
        "watch.per_identity_max" = watch.per_identity_max,
        None,
        1..=1_000_000,
        "Open watches of one identity, over all its connections."
    ),
    key!("watch.per_connection_max" = watch.per_connection_max, None, 1..=1_000_000, "Subscriptions of one WebSocket."),
    key!(
        "watch.bookmark_interval" = watch.bookmark_interval,
        None,
        10..=HOUR,
        "How often an idle watch is told the newest resourceVersion."
    ),
    key!(
        "watch.live_events_max" = watch.live_events_max,
        None,
        16..=100_000_000,
        "Events kept in memory for watches that are up to date; slower ones read the log."
    ),
    key!("watch.live_bytes_max" = watch.live_bytes_max, None, MIB..=TIB, "The same, by size."),
    key!("graphql.depth_max" = graphql.depth_max, None, 4..=256, "Selection sets in each other."),
    key!("graphql.complexity_max" = graphql.complexity_max, None, 16..=1_000_000, "Fields of one operation."),
    key!("graphql.recursion_max" = graphql.recursion_max, None, 16..=256, "Nesting of a query's text."),
    key!("graphql.directives_max" = graphql.directives_max, None, 1..=1_000, "Directives on one field."),
    key!(
        "graphql.init_timeout" = graphql.init_timeout,
        None,
        100..=HOUR,
        "How long a WebSocket may take to send `connection_init`."
    ),
    key!("graphql.prepared_max" = graphql.prepared_max, None, 1..=1_000_000, "Checked operations kept for reuse."),
    key!("http.connections_max" = http.connections_max, None, 1..=1_000_000, "Open connections, WebSockets included."),
    key!("http.header_bytes_max" = http.header_bytes_max, None, 8 * KIB..=MIB, "A request's line and headers."),
    key!(
        "http.header_read_timeout" = http.header_read_timeout,
        None,
        100..=HOUR,
        "How long a client may take to send them, and stay idle between requests."
    ),
    key!(
        "http.body_bytes_max" = http.body_bytes_max,
        None,
        KIB..=1024 * MIB,
        "One request body, and one WebSocket message from a client."
    ),
    key!(
        "http.body_read_timeout" = http.body_read_timeout,
        None,
        100..=HOUR,
        "How long a client may take to send a body."
    ),
    key!(
        "http.write_stall_timeout" = http.write_stall_timeout,
        None,
        100..=HOUR,
        "How long a client may read nothing of what waits for it, answers and watches alike."
    ),
    key!(
        "git.pack_bytes_max" = git.pack_bytes_max,
        None,
        64 * KIB..=TIB,
        "What one push to a hosted repository may bring."
    ),
    key!(
        "git.changed_files_max" = git.changed_files_max,
        None,
        1..=10_000_000,
        "Manifests that one push or fetch may change."
    ),
    key!(
        "git.stall_timeout" = git.stall_timeout,
        None,
        100..=HOUR,
        "How long a client may send a git request at less than 4 KiB a second before it is let go."
    ),
    key!(
        "git.deleted_grace" = git.deleted_grace,
        None,
        SECOND..=100_000 * HOUR,
        "How long the data of a deleted repository is kept in `repos/.deleted` of the data directory."
    ),
    key!(
        "secrets.dir" = secrets.dir,
        Some("--secrets-dir"),
        ANY,
        "Directory of secrets as files, `NAMESPACE/NAME/KEY`, for remote repositories and hooks. Read at each use."
    ),
    key!(
        "remote.allow_http" = remote.allow_http,
        None,
        ANY,
        "Fetch from `http://` addresses beyond loopback, where everybody in between can read and change it."
    ),
    key!(
        "remote.fetch_timeout" = remote.fetch_timeout,
        None,
        SECOND..=24 * HOUR,
        "How long one fetch from a remote repository may take."
    ),
    key!(
        "remote.stall_timeout" = remote.stall_timeout,
        None,
        SECOND..=HOUR,
        "How long a host may send less than 1,000 bytes a second before it is given up."
    ),
    key!(
        "remote.pack_bytes_max" = remote.pack_bytes_max,
        None,
        64 * KIB..=TIB,
        "What one fetch may bring. The first one brings the whole history."
    ),
    key!("store.cache_bytes" = store.cache_bytes, None, MIB..=TIB, "Memory for blocks read from disk."),
    key!(
        "store.memtable_bytes" = store.memtable_bytes,
        None,
        MIB..=1024 * MIB,
        "Memory per table for rows not yet sorted to disk."
    ),
    key!(
        "store.transaction_writes_max" = store.transaction_writes_max,
        None,
        1..=10_000_000,
        "Objects that one commit may change."
    ),
    key!("store.transaction_bytes_max" = store.transaction_bytes_max, None, MIB..=4096 * MIB, "The same, by size."),
    key!(
        "store.accept_loss" = store.accept_loss,
        Some("--accept-loss"),
        ANY,
        "Start although acknowledged writes are missing, with a new epoch, so that every client lists again."
    ),
    key!(
        "log.format" = log.format,
        Some("--log-format"),
        ANY,
        "`human`, `json`, or `auto`: human on a terminal, JSON otherwise."
    ),
    key!(
        "log.filter" = log.filter,
        None,
        ANY,
        "What is logged, as `RUST_LOG` (which overrides it) takes it: `info,tidegate_store=debug`."
    ),
];

fn put<T: Setting>(field: &mut T, text: &str, range: RangeInclusive<u64>) -> Result<(), String> {
    let value = T::parse(text)?;
    if value.measure().is_some_and(|measure| !range.contains(&measure)) {
        let (min, max) = (T::show_measure(*range.start()), T::show_measure(*range.end()));
        return Err(format!("`{text}` is out of range: choose from {min} to {max}"));
    }
    *field = value;
    Ok(())
}
