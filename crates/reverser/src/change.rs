//! What the cluster says of one object, clean and with a name on it.

use std::sync::Arc;

use bytes::Bytes;
use tidegate_model::mirror::ResourceKey;
use tokio::time::Instant;

/// One change of one object. Whether it creates or updates its file is not
/// said here: the tree knows.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    pub key: ResourceKey,
    pub what: What,
    pub author: Author,
    /// When the event reached us: the lag is counted from here.
    pub seen_at: Instant,
}

/// An object that a complete list found.
#[derive(Clone, PartialEq, Debug)]
pub struct Listed {
    pub key: ResourceKey,
    pub state: State,
}

#[derive(Clone, PartialEq, Debug)]
pub enum What {
    Put(State),
    /// The object is gone, or somebody deleted it and finalizers hold it.
    Delete(Version),
}

/// An object as it goes into Git.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct State {
    pub version: Version,
    /// Canonical YAML of the sanitized object. Secrets too: the worker
    /// encrypts them for each destination.
    pub yaml: Bytes,
}

/// Which state of which incarnation: for the trailers of the commit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Version {
    pub uid: Arc<str>,
    pub resource_version: Arc<str>,
    /// The last field manager, where nothing better is known of the author.
    pub field_manager: Option<Arc<str>>,
}

/// Who made a change. Nobody else's name stands in for one that is lost.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Author {
    User { name: Arc<str>, email: Arc<str> },
    Unknown,
}
