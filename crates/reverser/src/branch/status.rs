//! What a branch did, for conditions and for whoever waits for a push.

use std::collections::BTreeMap;
use std::time::SystemTime;

use tidegate_git::ObjectId;
use tidegate_model::mirror::ResourceKey;

use super::handle::DestinationId;
use super::plan::DestinationReport;
use super::queue::Ticket;
use super::worker::Destinations;

#[derive(Clone, PartialEq, Default, Debug)]
pub struct BranchStatus {
    /// The remote's commit, as last seen or pushed.
    pub head: Option<ObjectId>,
    /// Everything submitted up to here is in the remote.
    pub acknowledged: Ticket,
    pub queue_depth: usize,
    /// Why the last attempt failed; `None` once one succeeds.
    pub failure: Option<Failure>,
    pub destinations: BTreeMap<DestinationId, DestinationStatus>,
}

impl BranchStatus {
    /// What a push did, for the destinations that are `known`.
    pub(super) fn note(&mut self, reports: BTreeMap<DestinationId, DestinationReport>, known: &Destinations) {
        self.destinations.retain(|id, _| known.contains_key(id));
        for (id, report) in reports.into_iter().filter(|(id, _)| known.contains_key(id)) {
            let status = self.destinations.entry(id).or_default();
            status.is_seeded |= report.is_seeded;
            if report.last_commit.is_some() {
                (status.last_commit, status.last_push) = (report.last_commit, Some(SystemTime::now()));
            }
            for (path, skipped) in report.skipped {
                match skipped {
                    Some(skipped) => drop(status.skipped.insert(path, skipped)),
                    None => drop(status.skipped.remove(&path)),
                }
            }
        }
    }
}

#[derive(Clone, PartialEq, Default, Debug)]
pub struct DestinationStatus {
    /// Whether a seed of the whole destination has been pushed, or was found
    /// to be there.
    pub is_seeded: bool,
    pub last_commit: Option<ObjectId>,
    pub last_push: Option<SystemTime>,
    /// How often somebody else was found to have changed its files. Each time
    /// it is to be seeded again.
    pub disturbed: u64,
    /// Objects that are not in Git, by their path.
    pub skipped: BTreeMap<String, Skipped>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Skipped {
    pub key: ResourceKey,
    pub reason: SkipReason,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SkipReason {
    #[error("a Secret is written only encrypted: set `encryption`, or `secrets: plaintext` on the destination")]
    SecretNotEncrypted,
    #[error("a foreign file is in its place: move it, or choose another base folder")]
    ForeignFile,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    pub reason: FailureReason,
    /// What happened and what to do, for a person.
    pub message: String,
    /// How many attempts failed in a row.
    pub attempts: u32,
}

/// In the form of a condition's reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FailureReason {
    ConnectionFailed,
    AuthenticationFailed,
    BranchNotFound,
    PushRejected,
    DiskFull,
    ReadFailed,
    SigningFailed,
    Internal,
}

impl FailureReason {
    pub const ALL: [Self; 8] = [
        Self::ConnectionFailed,
        Self::AuthenticationFailed,
        Self::BranchNotFound,
        Self::PushRejected,
        Self::DiskFull,
        Self::ReadFailed,
        Self::SigningFailed,
        Self::Internal,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::ConnectionFailed => "ConnectionFailed",
            Self::AuthenticationFailed => "AuthenticationFailed",
            Self::BranchNotFound => "BranchNotFound",
            Self::PushRejected => "PushRejected",
            Self::DiskFull => "DiskFull",
            Self::ReadFailed => "ReadFailed",
            Self::SigningFailed => "SigningFailed",
            Self::Internal => "Internal",
        }
    }
}
