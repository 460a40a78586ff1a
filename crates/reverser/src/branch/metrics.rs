//! What the branches count. The registry gives the names their prefix.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use super::plan::Report;
use super::status::FailureReason;

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
pub(super) struct BranchLabels {
    pub repository: String,
    pub branch: String,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct FailureLabels {
    repository: String,
    branch: String,
    reason: &'static str,
}

type PerBranch<M> = Family<BranchLabels, M>;
type Seconds = Family<BranchLabels, Histogram, fn() -> Histogram>;

/// Shared by all branches; cheap to clone.
#[derive(Clone, Debug)]
pub struct GitMetrics {
    objects_written: PerBranch<Counter>,
    files_deleted: PerBranch<Counter>,
    commits: PerBranch<Counter>,
    commit_bytes: PerBranch<Counter>,
    pub(super) rebase_retries: PerBranch<Counter>,
    pub(super) foreign_changes: PerBranch<Counter>,
    push_failures: Family<FailureLabels, Counter>,
    pub(super) queue_depth: PerBranch<Gauge>,
    pub(super) active_workers: PerBranch<Gauge>,
    pub(super) push_seconds: Seconds,
    lag_seconds: Seconds,
}

impl Default for GitMetrics {
    fn default() -> Self {
        // From 10 ms to 160 s in steps of two.
        let seconds =
            || Family::new_with_constructor((|| Histogram::new(exponential_buckets(0.01, 2.0, 15))) as fn() -> _);
        Self {
            objects_written: Family::default(),
            files_deleted: Family::default(),
            commits: Family::default(),
            commit_bytes: Family::default(),
            rebase_retries: Family::default(),
            foreign_changes: Family::default(),
            push_failures: Family::default(),
            queue_depth: Family::default(),
            active_workers: Family::default(),
            push_seconds: seconds(),
            lag_seconds: seconds(),
        }
    }
}

impl GitMetrics {
    pub fn register(&self, registry: &mut Registry) {
        let counters = [
            ("objects_written", "Files created or updated in Git", &self.objects_written),
            ("files_deleted", "Files deleted from Git", &self.files_deleted),
            ("commits", "Commits pushed", &self.commits),
            ("commit_bytes", "Bytes of the files in pushed commits", &self.commit_bytes),
            ("rebase_retries", "Pushes planned again because the remote had moved", &self.rebase_retries),
            ("foreign_changes", "Folders found changed by somebody else", &self.foreign_changes),
        ];
        for (name, help, counter) in counters {
            registry.register(name, help, counter.clone());
        }
        let failures = "Attempts to bring changes to the remote that failed";
        registry.register("push_failures", failures, self.push_failures.clone());
        registry.register("repo_branch_queue_depth", "Objects that wait for a push", self.queue_depth.clone());
        registry.register(
            "repo_branch_active_workers",
            "1 while the branch is written and pushed",
            self.active_workers.clone(),
        );
        registry.register_with_unit("push", "Time of one push", Unit::Seconds, self.push_seconds.clone());
        let lag = "From the event of an object to its pushed commit";
        registry.register_with_unit("lag", lag, Unit::Seconds, self.lag_seconds.clone());
    }

    /// All of a branch's, from its start: what is not there cannot be alerted on.
    pub(super) fn announce(&self, labels: &BranchLabels) {
        self.note(labels, &Report::default(), 0);
        drop(self.rebase_retries.get_or_create(labels));
        drop(self.foreign_changes.get_or_create(labels));
        drop(self.active_workers.get_or_create(labels));
        FailureReason::ALL.iter().for_each(|reason| drop(self.failures(labels, *reason)));
        drop(self.push_seconds.get_or_create(labels));
        drop(self.lag_seconds.get_or_create(labels));
    }

    pub(super) fn failed(&self, labels: &BranchLabels, reason: FailureReason) {
        self.failures(labels, reason).inc();
    }

    fn failures(&self, labels: &BranchLabels, reason: FailureReason) -> Counter {
        let BranchLabels { repository, branch } = labels.clone();
        self.push_failures.get_or_create_owned(&FailureLabels { repository, branch, reason: reason.as_str() })
    }

    pub(super) fn lag(&self, labels: &BranchLabels, lags: impl Iterator<Item = Duration>) {
        let seconds = self.lag_seconds.get_or_create(labels);
        lags.for_each(|lag| seconds.observe(lag.as_secs_f64()));
    }

    pub(super) fn note(&self, labels: &BranchLabels, report: &Report, depth: usize) {
        self.objects_written.get_or_create(labels).inc_by(report.written);
        self.files_deleted.get_or_create(labels).inc_by(report.deleted);
        self.commits.get_or_create(labels).inc_by(report.commits);
        self.commit_bytes.get_or_create(labels).inc_by(report.bytes);
        self.queue_depth.get_or_create(labels).set(i64::try_from(depth).unwrap_or(i64::MAX));
    }
}
