//! Why a caller is refused, and why identity could not be set up.
//!
//! Invariant: no message holds a token or a part of one.

use std::io;
use std::path::PathBuf;

use chrono::{DateTime, Utc};
use tidegate_files::FileError;

/// What a client is told.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AuthError {
    #[error("no token: send the header `Authorization: Bearer <token>`")]
    Missing,
    #[error("the Authorization header is not `Bearer <token>`")]
    NotBearer,
    #[error("the token is not one of this server's: use the admin token or create one with `tidegate token create`")]
    Invalid,
    #[error("the token expired at {}: create a new one with `tidegate token create`", at.format("%Y-%m-%dT%H:%M:%SZ"))]
    Expired { at: DateTime<Utc> },
    #[error("the token {token_id} was revoked: create a new one with `tidegate token create`")]
    Revoked { token_id: String },
    #[error("the token's service account {namespace}/{name} is gone or was made anew: create a new token")]
    AccountGone { namespace: String, name: String },
    #[error("{user} may not {action}: bind a role that allows it to this user or one of its groups")]
    Forbidden { user: String, action: String },
}

impl AuthError {
    /// The stable code of the API.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Forbidden { .. } => "FORBIDDEN",
            _ => "UNAUTHENTICATED",
        }
    }
}

/// Identity could not be set up in the data directory.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error("failed to {action} {}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error(transparent)]
    Unread(#[from] FileError),
    #[error("{} has mode {mode:03o}, so others than its owner can read it: run `chmod 600 {}`", path.display(), path.display())]
    Permissions { path: PathBuf, mode: u32 },
    #[error("{} is damaged ({reason}): {remedy}", path.display())]
    Damaged { path: PathBuf, reason: &'static str, remedy: &'static str },
}

/// Why no token was made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum IssueError {
    #[error("a token may live from {min_seconds} s to {max_seconds} s, not {asked_seconds} s")]
    Lifetime { asked_seconds: u64, min_seconds: u64, max_seconds: u64 },
    #[error("there is no service account {namespace}/{name}: define it in Git first")]
    NoAccount { namespace: String, name: String },
    #[error("failed to sign the token: {reason}")]
    Signing { reason: String },
}
