//! Bare repositories, served through the `git` program and read in this
//! process; commits built in memory.
//!
//! Invariants: no kind and no HTTP is known here; every call runs without the
//! user's configuration; a ref moves only inside git's own fetch, in
//! `move_refs`, or by a push (`refs`), which name the value that they expect.

mod authors;
mod bases;
mod beside;
mod blobs;
pub mod credentials;
mod diff;
mod draft;
mod error;
mod fetch;
mod idle;
mod leftovers;
mod objects;
mod orphans;
mod pack;
#[cfg(test)]
mod packing;
mod program;
mod receive;
mod refs;
mod remote;
mod remote_error;
mod remote_url;
mod repository;
mod sync;

pub use authors::Authors;
pub use blobs::{Blob, BlobLimits, Blobs};
pub use credentials::Access;
pub use diff::{Changed, EntryKind, Side, TreeError};
pub use draft::{CommitText, Draft, DraftError, FolderState, Person, Put, SignError, Signer, blob_id};
pub use error::GitError;
pub use fetch::FetchError;
pub use orphans::end_orphans;
pub use pack::{Pack, PackRequest, Service};
pub use program::Program;
pub use receive::{
    Moved, PushRequest, Received, RefUpdate, Report, RequestError, RequestReader, Unpacked, Unpacking, Verdict,
};
pub use refs::{PushError, Pushed};
pub use remote::{Ended, Remote, RemoteLimits};
pub use remote_error::RemoteError;
pub use remote_url::{PlainHttp, RemoteUrl, Scheme, UrlError};
pub use repository::{ObjectId, Quarantine, Repository};
