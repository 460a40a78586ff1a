//! What went wrong, as a condition says it.

use std::error::Error;
use std::io;

use tidegate_git::{DraftError, PushError, RemoteError};

use super::clone::CloneError;
use super::plan::PlanError;
use super::status::{Failure, FailureReason};
use super::worker::WorkError;

/// The one place where errors get reasons.
pub(super) fn failure(error: &WorkError, attempts: u32) -> Failure {
    let message = chain(error);
    let reason = if is_full(error, &message) { FailureReason::DiskFull } else { reason(error) };
    let remedy = match reason {
        FailureReason::DiskFull => "; make room in --work-dir, or at the Git server",
        _ => "",
    };
    Failure { reason, message: message + remedy, attempts }
}

fn reason(error: &WorkError) -> FailureReason {
    match error {
        WorkError::Clone(CloneError::Remote(error) | CloneError::Push(PushError::Remote(error))) => remote(error),
        WorkError::Clone(CloneError::Push(PushError::Rejected { .. })) => FailureReason::PushRejected,
        WorkError::Plan(PlanError::Read(_)) => FailureReason::ReadFailed,
        WorkError::Plan(PlanError::Draft(DraftError::Sign(_))) => FailureReason::SigningFailed,
        WorkError::Clone(_) | WorkError::Plan(_) | WorkError::TermOver | WorkError::Lost => FailureReason::Internal,
    }
}

pub(crate) fn remote(error: &RemoteError) -> FailureReason {
    match error {
        RemoteError::Unauthorized { .. } => FailureReason::AuthenticationFailed,
        RemoteError::NoBranch { .. } => FailureReason::BranchNotFound,
        RemoteError::HostKey { .. }
        | RemoteError::Certificate { .. }
        | RemoteError::NotFound { .. }
        | RemoteError::Unreachable { .. }
        | RemoteError::Stalled { .. }
        | RemoteError::TooSlow { .. }
        | RemoteError::TooLarge { .. }
        | RemoteError::Failed { .. } => FailureReason::ConnectionFailed,
        RemoteError::Io { .. } => FailureReason::Internal,
    }
}

/// Ours by the error, git's and the host's by what they print.
fn is_full(error: &WorkError, message: &str) -> bool {
    let mut source: Option<&dyn Error> = Some(error);
    while let Some(error) = source {
        if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::StorageFull) {
            return true;
        }
        source = error.source();
    }
    message.contains("No space left on device")
}

fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let next = error.to_string();
        // A transparent error repeats its source.
        if !text.ends_with(&next) {
            text = format!("{text}: {next}");
        }
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(error: impl Into<WorkError>, reason: FailureReason, text: &str) {
        let failure = failure(&error.into(), 3);
        assert_eq!((failure.reason, failure.attempts), (reason, 3), "{}", failure.message);
        assert!(failure.message.contains(text), "{}", failure.message);
    }

    #[test]
    fn reasons() {
        let message = || "m".to_owned();
        let remote = |error: RemoteError| CloneError::Push(PushError::Remote(error));
        check(
            remote(RemoteError::Unauthorized { message: message() }),
            FailureReason::AuthenticationFailed,
            "secretRef",
        );
        check(remote(RemoteError::Unreachable { message: message() }), FailureReason::ConnectionFailed, "m");
        check(CloneError::Remote(RemoteError::NoBranch { branch: "x".into() }), FailureReason::BranchNotFound, "`x`");
        check(CloneError::Push(PushError::Rejected { message: message() }), FailureReason::PushRejected, "hooks");
        let full = DraftError::Write(io::ErrorKind::StorageFull.into());
        check(PlanError::from(full), FailureReason::DiskFull, "make room");
        let said = RemoteError::Failed { command: "fetch", message: "write error: No space left on device".into() };
        check(remote(said), FailureReason::DiskFull, "make room");
    }
}
