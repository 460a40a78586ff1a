//! Git's own two services, one process a request.

use std::ffi::OsString;
use std::process::{ExitStatus, Stdio};

use tokio::process::{Child, ChildStdin, ChildStdout};

use crate::error::GitError;
use crate::repository::Repository;

/// What a hosted repository is like, whatever its own file says. History that
/// a forced push leaves behind stays: the projected commit may be part of it.
const SETTINGS: [&str; 5] = [
    "uploadpack.allowFilter=true",
    "receive.denyDeleteCurrent=ignore",
    "receive.denyCurrentBranch=ignore",
    "gc.pruneExpire=never",
    "gc.autoDetach=false",
];

/// A push of fewer objects git unpacks one by one, and looks at each.
const PACKED_OBJECTS_MIN: u32 = 100;
/// A push of more is new for the most part: git finds in its pack what its
/// objects refer to, which is fast, and to read it twice is not.
const APART_OBJECTS_MAX: u32 = 10_000;

/// Who looks at the objects of a push before they are let in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fsck {
    WhileUnpacking,
    /// Whoever started it, with [`Repository::fsck_push`], before a ref moves.
    Apart,
}

impl Fsck {
    /// By how many objects a push brings, if that is known.
    pub fn of(objects: Option<u32>) -> Self {
        match objects {
            Some(PACKED_OBJECTS_MIN..=APART_OBJECTS_MAX) => Self::Apart,
            _ => Self::WhileUnpacking,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Service {
    /// Clone and fetch.
    UploadPack,
    /// Push.
    ReceivePack,
}

impl Service {
    pub fn parse(name: &str) -> Option<Self> {
        [Self::UploadPack, Self::ReceivePack].into_iter().find(|service| service.name() == name)
    }

    /// `git-upload-pack`, as it is called on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::UploadPack => "git-upload-pack",
            Self::ReceivePack => "git-receive-pack",
        }
    }

    fn command(self) -> &'static str {
        match self {
            Self::UploadPack => "upload-pack",
            Self::ReceivePack => "receive-pack",
        }
    }
}

/// One request of the stateless protocol.
#[derive(Clone, Debug)]
pub struct PackRequest {
    pub service: Service,
    /// The first request of a conversation: what refs there are.
    pub advertise: bool,
    /// `version=2`, as the client asked.
    pub protocol: Option<String>,
    pub fsck: Fsck,
    /// Git stops reading a push beyond it.
    pub input_bytes_max: u64,
    /// Further settings, such as where hooks are.
    pub settings: Vec<OsString>,
    /// For the hooks.
    pub environment: Vec<(&'static str, OsString)>,
}

/// A running service. Dropping it ends git.
pub struct Pack {
    child: Child,
    name: &'static str,
    pub stdin: Option<ChildStdin>,
    pub stdout: Option<ChildStdout>,
}

impl Repository {
    pub fn serve(&self, request: PackRequest) -> Result<Pack, GitError> {
        let PackRequest { service, advertise, protocol, fsck, input_bytes_max, settings, environment } = request;
        let mut command = self.program.command(&self.dir);
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        for setting in [
            format!("receive.maxInputSize={input_bytes_max}"),
            format!("receive.unpackLimit={PACKED_OBJECTS_MIN}"),
            format!("receive.fsckObjects={}", fsck == Fsck::WhileUnpacking),
        ] {
            command.args(["-c", &setting]);
        }
        for setting in settings {
            command.arg("-c").arg(setting);
        }
        command.args([service.command(), "--stateless-rpc"]);
        if advertise {
            command.arg("--http-backend-info-refs");
        }
        command.envs(environment).envs(protocol.map(|protocol| ("GIT_PROTOCOL", protocol)));
        // What git has to say to the client it says in the protocol.
        let spawned = command.arg(&self.dir).stdin(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = spawned.map_err(|source| GitError::Io { command: service.command(), source })?;
        Ok(Pack { stdin: child.stdin.take(), stdout: child.stdout.take(), child, name: service.command() })
    }
}

impl Pack {
    pub async fn wait(&mut self) -> Result<ExitStatus, GitError> {
        self.child.wait().await.map_err(|source| GitError::Io { command: self.name, source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_looked_at_apart() {
        for (objects, expected) in [
            (None, Fsck::WhileUnpacking),
            (Some(0), Fsck::WhileUnpacking),
            (Some(99), Fsck::WhileUnpacking),
            (Some(100), Fsck::Apart),
            (Some(10_000), Fsck::Apart),
            (Some(10_001), Fsck::WhileUnpacking),
            (Some(u32::MAX), Fsck::WhileUnpacking),
        ] {
            assert_eq!(Fsck::of(objects), expected, "{objects:?}");
        }
    }
}
