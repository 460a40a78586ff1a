//! Secrets on their way to Git.
//!
//! Invariant: a Secret reaches a tree encrypted, or because its destination
//! asked for plaintext in so many words, or not at all.

mod memory;
mod sops;

use std::sync::Arc;

use bytes::Bytes;

pub(crate) use memory::SecretMemory;
pub use sops::{RecipientError, Sops};

use crate::change::State;

#[derive(Clone, Debug)]
pub enum SecretPolicy {
    /// Nothing was said: Secrets are left out, and that is reported.
    Skip,
    /// `secrets: plaintext`.
    Plaintext,
    /// `encryption: {provider: sops-age}`.
    Encrypt(Arc<Sops>),
}

/// What to write for one Secret.
pub(crate) enum Written {
    Refused,
    /// The file there says the same already.
    Current,
    Content(Bytes),
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum SecretError {
    #[error("failed to encrypt a Secret: {0}")]
    Encrypt(String),
}

impl SecretPolicy {
    /// `existing` is the file at `path`, if there is one.
    pub(crate) fn write(
        &self,
        memory: &mut SecretMemory,
        path: &str,
        existing: Option<&[u8]>,
        state: &State,
    ) -> Result<Written, SecretError> {
        let sops = match self {
            Self::Skip => return Ok(Written::Refused),
            Self::Plaintext => return Ok(Written::Content(state.yaml.clone())),
            Self::Encrypt(sops) => sops,
        };
        // An encryption is never the same twice, so the file is asked which
        // state it was made of. Where only the version moved, memory knows.
        if let Some(origin) = existing.and_then(|content| sops.origin(content)) {
            let is_version =
                origin.uid == *state.version.uid && origin.resource_version == *state.version.resource_version;
            if is_version || memory.knows(path, &state.yaml, &origin.checksum) {
                memory.note(path, &state.yaml, origin.checksum);
                return Ok(Written::Current);
            }
        }
        let (content, checksum) = sops.encrypt(&state.yaml, &state.version)?;
        memory.note(path, &state.yaml, checksum);
        Ok(Written::Content(content.into()))
    }
}

#[cfg(test)]
mod tests;
