//! The operator at work: configuration and discovery become watches, watches
//! become changes, changes go to branches.
//!
//! Invariants: one task owns the state and decides; the rest carry messages.
//! Nothing is planned before every configuration object and the catalogue are
//! known. A file is deleted only after a complete list of every claim that
//! could own it.

mod answers;
mod claims;
mod configs;
mod destinations;
mod discover;
mod list;
mod reader;
mod report;
mod repos;
mod seed;
mod signers;
mod state;
mod writer;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tidegate_git::{PlainHttp, Program};
use tokio::sync::Notify;

use crate::attribution::Attempt;
use crate::branch::{GitMetrics, Limits, Operator};
use crate::claims::{Desired, Exclusion, PlanOptions};
use crate::cluster::Api;
use crate::lease::Term;
use crate::metrics::Metrics;
use crate::proof::Proof;

pub use state::{Ending, run};

/// Admissions that wait for the engine, which takes them within milliseconds;
/// as many as attribution would keep.
const INBOX_MAX: usize = 10_000;

/// What the flags say.
#[derive(Clone, Debug)]
pub struct Options {
    pub plan: PlanOptions,
    pub exclusions: Vec<Exclusion>,
    pub discovery_refresh: Duration,
    pub program: Program,
    pub work_dir: PathBuf,
    pub limits: Limits,
    pub operator: Operator,
    /// How long a change waits for its admission.
    pub grace: Duration,
    pub workers_max: usize,
    pub workers_per_repo_max: usize,
    pub plain_http: PlainHttp,
}

/// What the engine and the webhook share.
#[derive(Default)]
pub struct Shared {
    /// What is wanted right now; the webhook ignores what nobody claims.
    pub desired: ArcSwap<Desired>,
    inbox: Mutex<VecDeque<Attempt>>,
    woken: Notify,
    is_planned: AtomicBool,
    /// The plan changed: the webhook's registration follows it.
    pub replanned: Notify,
    /// Whether the API server calls the webhook for it.
    pub proof: Proof,
    pub metrics: Metrics,
}

impl Shared {
    /// Remembers an attempt. When this returns, no event that it causes can
    /// be looked at before it.
    pub fn admit(&self, attempt: Attempt) {
        let mut inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        if inbox.len() >= INBOX_MAX {
            inbox.pop_front();
            self.metrics.evictions.inc();
        }
        inbox.push_back(attempt);
        drop(inbox);
        self.woken.notify_one();
    }

    /// Whether `desired` is what the rules say; before, it is nothing. Ask
    /// first, read then: what is read was planned if this says so.
    pub fn is_planned(&self) -> bool {
        self.is_planned.load(Ordering::Acquire)
    }

    fn plan(&self, desired: Arc<Desired>) {
        self.desired.store(desired);
        self.is_planned.store(true, Ordering::Release);
    }

    fn take_inbox(&self) -> VecDeque<Attempt> {
        std::mem::take(&mut self.inbox.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What the engine works with.
#[derive(Clone)]
pub struct Parts {
    pub api: Api,
    /// The uid of `kube-system`, which stands for the cluster.
    pub cluster_uid: Arc<str>,
    pub options: Options,
    pub shared: Arc<Shared>,
    pub git_metrics: GitMetrics,
    /// During which this replica may push.
    pub term: Term,
}
