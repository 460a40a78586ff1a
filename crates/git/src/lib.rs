//! Bare repositories, read and served through the `git` program.
//!
//! Invariants: no kind and no HTTP is known here; every call runs without the
//! user's configuration; a ref moves only inside git's own receive-pack, which
//! names the value that it expects.

mod blobs;
mod diff;
mod error;
mod pack;
mod program;
mod repository;

pub use blobs::{Blob, BlobLimits, Blobs};
pub use diff::{Changed, EntryKind, Side};
pub use error::GitError;
pub use pack::{Pack, PackRequest, Service};
pub use program::Program;
pub use repository::{ObjectId, Quarantine, Repository};
