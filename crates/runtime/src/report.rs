//! What a controller says of itself.

use serde::{Deserialize, Serialize};

use crate::Fence;

/// Saved with the checkpoint, so that it is known wherever the manager runs.
#[derive(Clone, Default, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ControllerReport {
    pub controller: String,
    pub api_version: String,
    pub kind: String,
    /// Who runs it.
    pub leader: String,
    /// Under which term of which lease.
    #[serde(default)]
    pub lease_namespace: String,
    #[serde(default)]
    pub lease_name: String,
    #[serde(default)]
    pub lease_transitions: i64,
    /// Keys that wait for a worker.
    pub queue_depth: usize,
    /// Since when the longest of them waits, in milliseconds since 1970.
    pub oldest_waiting_ms: Option<u64>,
    pub in_flight: usize,
    /// Keys in a backoff or waiting for their time.
    pub delayed: usize,
    /// Those of them whose last attempt failed.
    #[serde(default)]
    pub retrying: usize,
    pub quarantined: usize,
    /// Since the manager took the lease.
    pub reconciles: u64,
    pub failures: u64,
    pub panics: u64,
    /// Everything up to this version was reconciled or is unfinished.
    pub checkpoint: Option<String>,
    /// Everything up to this version has been received.
    pub received: Option<String>,
    /// Since when the oldest change waits that the checkpoint has not passed,
    /// in milliseconds since 1970; `None` if there is none.
    pub behind_since_ms: Option<u64>,
    /// Why it does not run although its leader could run it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
}

impl ControllerReport {
    /// As it is while somebody who could run it does not.
    pub(crate) fn stopped(self, fence: &Fence, why: &str) -> Self {
        Self {
            leader: fence.holder.to_string(),
            lease_namespace: fence.namespace.to_string(),
            lease_name: fence.name.to_string(),
            lease_transitions: fence.transitions,
            queue_depth: 0,
            oldest_waiting_ms: None,
            in_flight: 0,
            stopped: Some(why.to_owned()),
            ..self
        }
    }
}
