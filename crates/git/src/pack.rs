//! Clones and fetches: git's own service, one process a request.

use std::process::{ExitStatus, Stdio};

use tokio::process::{Child, ChildStdin, ChildStdout};

use crate::error::GitError;
use crate::repository::Repository;

const COMMAND: &str = "upload-pack";

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
}

/// One request of the stateless protocol.
#[derive(Clone, Debug)]
pub struct PackRequest {
    /// The first request of a conversation: what refs there are.
    pub advertise: bool,
    /// `version=2`, as the client asked.
    pub protocol: Option<String>,
}

/// A running service. Dropping it ends git.
pub struct Pack {
    child: Child,
    pub stdin: Option<ChildStdin>,
    pub stdout: Option<ChildStdout>,
}

impl Repository {
    pub fn serve(&self, request: PackRequest) -> Result<Pack, GitError> {
        let PackRequest { advertise, protocol } = request;
        let mut command = self.program.command(&self.dir);
        command.args(["-c", "uploadpack.allowFilter=true", COMMAND, "--stateless-rpc"]);
        if advertise {
            command.arg("--http-backend-info-refs");
        }
        command.envs(protocol.map(|protocol| ("GIT_PROTOCOL", protocol)));
        // What git has to say to the client it says in the protocol.
        let spawned = command.arg(&self.dir).stdin(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = spawned.map_err(|source| GitError::Io { command: COMMAND, source })?;
        Ok(Pack { stdin: child.stdin.take(), stdout: child.stdout.take(), child })
    }
}

impl Pack {
    pub async fn wait(&mut self) -> Result<ExitStatus, GitError> {
        self.child.wait().await.map_err(|source| GitError::Io { command: COMMAND, source })
    }
}
