//! Ordered durable history: atomic commits with expectations, snapshot lists,
//! and watches that resume.
//!
//! Invariant: only a commit mints versions. A reader sees whole, durable
//! transactions; a watcher sees each event once and in order, or is told that
//! its cursor has expired. Nothing here knows Git, HTTP, or what an object means.

mod committer;
mod engine;
mod error;
mod event;
mod fjall_engine;
mod head;
mod hub;
mod hub_index;
mod journal;
mod last_change;
mod line_start;
mod list;
mod maintenance;
mod open;
mod options;
mod recovery;
mod replay;
mod row;
#[cfg(test)]
mod row_properties;
mod selection;
mod shared;
mod stage;
mod stats;
mod store;
mod table_lists;
mod tools;
mod transaction;
mod view;
mod watch;

pub use engine::{Change, Engine, Rows, SegmentId, Snapshot, Table};
pub use error::{CommitError, ListError, OpenError, StoreError, WatchError};
pub use event::{Event, EventParts};
pub use fjall_engine::OPEN_TABLES_MAX;
pub use head::Window;
pub use last_change::LastChange;
pub use list::{ContinueToken, ListRequest, Page};
pub use options::{Clock, OnLoss, Options, WindowLimits};
pub use selection::Selection;
pub use stats::{Stats, WRITE_BUCKETS_MS};
pub use store::Store;
pub use tools::{
    CheckReport, Exported, Imported, Progress, Restore, ToolError, check, check_engine, compact, export, import,
};
pub use transaction::{Committed, Expect, Op, Rebase, Rebased, StoredObject, Transaction, Write};
pub use view::View;
pub use watch::{Start, WATCH_BATCH_ITEMS_MAX, WatchItem, Watcher};
