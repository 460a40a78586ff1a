//! Reading an object again whose content was too much to keep.

use std::future::Future;
use std::pin::Pin;

use tidegate_model::mirror::ResourceKey;

use crate::change::State;

/// The cluster, as far as a branch has to ask it.
pub trait Reader: Send + Sync + 'static {
    /// The object as it is now, sanitized; `None` if it is gone or no longer
    /// selected. An answer in doubt is an error: an object that cannot be
    /// read is not gone.
    fn read<'r>(&'r self, key: &'r ResourceKey) -> ReadFuture<'r>;
}

pub type ReadFuture<'r> = Pin<Box<dyn Future<Output = Result<Option<State>, ReadError>> + Send + 'r>>;

#[derive(Debug, thiserror::Error)]
#[error("failed to read {key} again: {message}")]
pub struct ReadError {
    pub key: ResourceKey,
    pub message: String,
}
