//! Logs: for people on a terminal, JSON lines otherwise; always on stderr,
//! because stdout is for what was asked for.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;

use crate::config::{LOG_FILTER, Log, LogFormat};

/// For `serve`, whose configuration has been checked. Says who reads it.
pub fn start(Log { format, filter }: &Log) -> Reader {
    let is_human = match format {
        LogFormat::Human => true,
        LogFormat::Json => false,
        LogFormat::Auto => io::stderr().is_terminal(),
    };
    init(is_human, EnvFilter::new(filter));
    if is_human && io::stderr().is_terminal() { Reader::Person } else { Reader::Program }
}

/// `RUST_LOG`, or what is logged without it.
pub fn filter() -> String {
    std::env::var("RUST_LOG").ok().filter(|filter| !filter.is_empty()).unwrap_or_else(|| LOG_FILTER.into())
}

/// Who reads stderr.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reader {
    Person,
    Program,
}

/// For the commands that answer on stdout: warnings alone, unless asked.
pub fn start_quiet() {
    start_default("warn");
}

/// For long work on the store, whose progress is a log line.
pub fn start_tool() {
    start_default(LOG_FILTER);
}

fn start_default(filter: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(filter));
    init(io::stderr().is_terminal(), filter);
}

fn init(is_human: bool, filter: EnvFilter) {
    // Why a certificate is refused, or a request to a cluster failed, is said
    // by whoever asked.
    let silent = ["rustls_platform_verifier=off", "kube_client::client::builder=off"];
    let filter = silent.iter().filter_map(|of| of.parse().ok()).fold(filter, EnvFilter::add_directive);
    // Whoever reads the log may be gone. To say so on stderr too would panic in
    // whatever was being logged.
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).log_internal_errors(false);
    if is_human {
        logs.with_target(false).with_ansi(io::stderr().is_terminal()).init();
    } else {
        logs.json().flatten_event(true).init();
    }
}
