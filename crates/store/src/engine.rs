//! The seam between the store's rules and what keeps the bytes.
//!
//! Invariant: an engine knows rows, not objects. Everything that makes the
//! store a store (versions, expectations, events, the window) is above it, so
//! one contract suite holds for every engine.

use std::sync::Arc;

use bytes::Bytes;
use tidegate_model::ResourceVersion;

use crate::StoreError;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Table {
    /// Key of an object → its newest state.
    Objects,
    /// Head, segments, counters and marks.
    Meta,
    /// Version → event; a segment is created, filled, and dropped as a whole.
    Log(SegmentId),
}

pub type SegmentId = u64;

/// One row of a batch; a batch names each row of a table at most once.
#[derive(Clone, Debug)]
pub struct Change {
    pub table: Table,
    pub key: Bytes,
    /// `None` removes the row.
    pub value: Option<Bytes>,
}

pub trait Engine: Send + Sync {
    /// Applies all changes or none. When it returns, they are durable, and only
    /// then does a snapshot see them. `newest` is the version that the caller
    /// is about to acknowledge.
    fn write(&self, changes: Vec<Change>, newest: ResourceVersion) -> Result<(), StoreError>;

    fn snapshot(&self) -> Result<Arc<dyn Snapshot>, StoreError>;

    /// Called before the first write to the segment; an existing one stays.
    fn segment_create(&self, id: SegmentId) -> Result<(), StoreError>;

    /// The segment gets no more rows.
    fn segment_seal(&self, id: SegmentId) -> Result<(), StoreError>;

    /// Snapshots that were taken before go on reading the segment.
    fn segment_drop(&self, id: SegmentId) -> Result<(), StoreError>;

    /// Those that exist, whether the store's rows name them or not.
    fn segment_list(&self) -> Vec<SegmentId>;

    fn disk_bytes(&self) -> u64;
}

/// A consistent state of all tables.
pub trait Snapshot: Send + Sync {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Bytes>, StoreError>;

    /// The rows with `from <= key < until`, ascending.
    fn range(&self, table: Table, from: &[u8], until: &[u8]) -> Rows;
}

pub type Rows = Box<dyn Iterator<Item = Result<(Bytes, Bytes), StoreError>> + Send>;
