//! What went wrong, as a condition says it.

use std::error::Error;
use std::io;
use std::path::Path;

use rustix::fs::statvfs;
use tidegate_git::{DraftError, PushError, RemoteError};

use super::clone::CloneError;
use super::plan::PlanError;
use super::status::{Failure, FailureReason};
use super::worker::WorkError;

/// What git and a host print when there is no room, or no more than a quota or
/// a limit on files allows.
const FULL: [&str; 3] = ["No space left on device", "Disk quota exceeded", "File too large"];
/// How a line begins that the host wrote.
const HOST_PREFIX: &str = "remote: ";
/// With less than this, a failure whose reason git did not tell is for want of
/// room: it needs some ten blocks to begin with.
const ROOM_BYTES_MIN: u64 = 64 << 10;

/// Whose disk is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Full {
    Here,
    AtTheHost,
}

/// The one place where errors get reasons.
pub(super) fn failure(error: &WorkError, attempts: u32, clone_dir: &Path) -> Failure {
    let (said, place) = (chain(error), clone_dir.display());
    let (reason, message) = match full(error, &said, clone_dir) {
        Some(Full::Here) => (
            FailureReason::DiskFull,
            format!(
                "there is no room for the clone in {place}: make room there, or give --work-dir a larger volume; nothing is lost ({said})"
            ),
        ),
        Some(Full::AtTheHost) => {
            (FailureReason::DiskFull, format!("the Git server has no room: make some there; nothing is lost ({said})"))
        }
        None => (reason(error), said),
    };
    Failure { reason, message, attempts }
}

fn reason(error: &WorkError) -> FailureReason {
    match error {
        WorkError::Clone(CloneError::Remote(error) | CloneError::Push(PushError::Remote(error))) => remote(error),
        WorkError::Clone(CloneError::Push(PushError::Rejected { .. })) | WorkError::NotMoved => {
            FailureReason::PushRejected
        }
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
fn full(error: &WorkError, said: &str, clone_dir: &Path) -> Option<Full> {
    let is_full = |line: &str| FULL.iter().any(|sign| line.contains(sign));
    if matches!(error, WorkError::Clone(CloneError::Push(PushError::Rejected { .. }))) {
        return is_full(said).then_some(Full::AtTheHost);
    }
    if is_full_io(error) {
        return Some(Full::Here);
    }
    if let Some(line) = said.lines().find(|line| is_full(line)) {
        return Some(if line.contains(HOST_PREFIX) { Full::AtTheHost } else { Full::Here });
    }
    // Git does not always say why a file could not be written.
    (reason(error) == FailureReason::Internal && has_no_room(clone_dir)).then_some(Full::Here)
}

fn is_full_io(error: &WorkError) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    let mut source: Option<&dyn Error> = Some(error);
    while let Some(error) = source {
        let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
        if kind.is_some_and(|kind| matches!(kind, StorageFull | QuotaExceeded | FileTooLarge)) {
            return true;
        }
        source = error.source();
    }
    false
}

/// Of blocks or of files, where there is a number of them.
fn has_no_room(clone_dir: &Path) -> bool {
    let exists = clone_dir.ancestors().find(|path| path.exists());
    let Some(Ok(room)) = exists.map(statvfs) else { return false };
    room.f_bavail * room.f_frsize < ROOM_BYTES_MIN || (room.f_files > 0 && room.f_favail == 0)
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
    use tidegate_git::GitError;

    use super::*;

    fn check(error: impl Into<WorkError>, reason: FailureReason, text: &str) {
        let failure = failure(&error.into(), 3, Path::new("/work/clone"));
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
        check(WorkError::NotMoved, FailureReason::PushRejected, "a lock of the branch");
    }

    /// What git 2.39 prints on a file system without room.
    #[test]
    fn whose_disk_is_full() {
        let (here, there) = ("no room for the clone in /work/clone", "the Git server has no room");
        for kind in [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded, io::ErrorKind::FileTooLarge] {
            check(PlanError::from(DraftError::Write(kind.into())), FailureReason::DiskFull, here);
            check(
                CloneError::Remote(RemoteError::Io { command: "fetch", source: kind.into() }),
                FailureReason::DiskFull,
                here,
            );
        }
        let failed = |command: &'static str, message: &str| RemoteError::Failed { command, message: message.into() };
        for message in [
            "fatal: failed to write to /work/clone/shallow.lock: No space left on device",
            "fatal: unable to write loose object file: No space left on device\nfatal: unpack-objects failed",
        ] {
            check(CloneError::Remote(failed("fetch", message)), FailureReason::DiskFull, here);
        }
        let message = "error: unable to write symref for HEAD: No space left on device".to_owned();
        let dir = Path::new("/work").to_owned();
        check(CloneError::Git(GitError::Failed { command: "init", dir, message }), FailureReason::DiskFull, here);
        let message =
            "[remote rejected] (unpacker error) fatal: unable to write loose object file: No space left on device";
        check(CloneError::Push(PushError::Rejected { message: message.into() }), FailureReason::DiskFull, there);
        let said = failed("push", "remote: fatal: write error: Disk quota exceeded");
        check(CloneError::Push(PushError::Remote(said)), FailureReason::DiskFull, there);
    }
}
