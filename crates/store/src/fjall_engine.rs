//! The embedded engine: an LSM tree per table, one journal for all.
//!
//! Invariant: a batch is in the journal and synced before it is in a table that
//! a snapshot sees; fjall's batches do both in this order when they are given
//! a durability.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;
use bytes::Bytes;
use fjall::config::CompressionPolicy;
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode, Readable};
use tidegate_model::ResourceVersion;

use crate::engine::{Change, Engine, Rows, SegmentId, Snapshot, Table};
use crate::open::{DirLock, Watermark};
use crate::{Options, StoreError};

/// The journal is preallocated in pieces of this size; with two of them the
/// engine flushes tables to get rid of the older, and a restart reads at most
/// about as much.
const JOURNAL_BYTES_MAX: u64 = 128 << 20;
/// Files of tables that are kept open between two reads; at 64 MiB each, a
/// store of 24 GiB never opens one twice.
pub const OPEN_TABLES_MAX: usize = 384;
/// One flushes, one compacts.
const WORKERS: usize = 2;
const SEGMENT_NAME_PREFIX: &str = "log-";

pub(crate) struct FjallEngine {
    db: Database,
    tables: ArcSwap<Tables>,
    /// Serializes changes of `tables`.
    segments_lock: Mutex<()>,
    memtable_bytes: u64,
    watermark: Watermark,
    /// Released after the database: the last field is dropped last.
    _lock: DirLock,
}

#[derive(Clone)]
struct Tables {
    objects: Keyspace,
    meta: Keyspace,
    segments: BTreeMap<SegmentId, Keyspace>,
}

struct FjallSnapshot {
    snapshot: fjall::Snapshot,
    /// As they were: a segment that is dropped meanwhile stays readable.
    tables: Arc<Tables>,
}

impl FjallEngine {
    pub fn open(dir: &Path, options: &Options, watermark: Watermark, lock: DirLock) -> fjall::Result<Self> {
        let db = Database::builder(dir)
            .cache_size(options.cache_bytes)
            .max_journaling_size(JOURNAL_BYTES_MAX)
            .worker_threads(WORKERS)
            .max_cached_files(Some(OPEN_TABLES_MAX))
            // The journal is short-lived and the disk is not the bottleneck.
            .journal_compression(CompressionType::None)
            .open()?;
        let memtable_bytes = options.memtable_bytes;
        let table = |name: &str| db.keyspace(name, || keyspace_options(memtable_bytes));
        let mut segments = BTreeMap::new();
        for name in db.list_keyspace_names() {
            if let Some(id) = name.strip_prefix(SEGMENT_NAME_PREFIX).and_then(|id| id.parse().ok()) {
                segments.insert(id, table(&name)?);
            }
        }
        let tables = Tables { objects: table("objects")?, meta: table("meta")?, segments };
        let tables = ArcSwap::from_pointee(tables);
        Ok(Self { db, tables, segments_lock: Mutex::new(()), memtable_bytes, watermark, _lock: lock })
    }

    /// The engine's numbers for the tables that live as long as the store,
    /// its own among them.
    pub fn lasting_tables(&self) -> [u64; 3] {
        let tables = self.tables.load();
        [0, tables.objects.id(), tables.meta.id()]
    }

    /// Merges every table into its smallest form, which takes a while.
    pub fn compact(&self, mut each: impl FnMut(&str)) -> Result<(), StoreError> {
        for keyspace in self.tables.load().all() {
            each(keyspace.name());
            keyspace.rotate_memtable_and_wait().and_then(|()| keyspace.major_compact()).map_err(failed("compact"))?;
        }
        Ok(())
    }

    fn update_segments(&self, update: impl FnOnce(&mut BTreeMap<SegmentId, Keyspace>)) {
        let mut tables = Tables::clone(&self.tables.load());
        update(&mut tables.segments);
        self.tables.store(Arc::new(tables));
    }
}

impl Engine for FjallEngine {
    fn write(&self, changes: Vec<Change>, newest: ResourceVersion) -> Result<(), StoreError> {
        let tables = self.tables.load();
        let batch = OwnedWriteBatch::with_capacity(self.db.clone(), changes.len());
        let mut batch = batch.durability(Some(PersistMode::SyncData));
        for Change { table, key, value } in changes {
            let keyspace = tables.get(table)?;
            match value {
                Some(value) => batch.insert(keyspace, key, value),
                None => batch.remove(keyspace, key),
            }
        }
        batch.commit().map_err(failed("write a batch"))?;
        // After the sync and without one of its own: it may fall behind what
        // is on disk, never run ahead of it.
        self.watermark.write(newest);
        Ok(())
    }

    fn snapshot(&self) -> Result<Arc<dyn Snapshot>, StoreError> {
        Ok(Arc::new(FjallSnapshot { snapshot: self.db.snapshot(), tables: self.tables.load_full() }))
    }

    fn segment_create(&self, id: SegmentId) -> Result<(), StoreError> {
        let _lock = self.segments_lock.lock().expect("no code panics while it holds the lock");
        let name = format!("{SEGMENT_NAME_PREFIX}{id}");
        let options = || keyspace_options(self.memtable_bytes);
        let keyspace = self.db.keyspace(&name, options).map_err(failed("create a segment"))?;
        self.update_segments(|segments| drop(segments.insert(id, keyspace)));
        Ok(())
    }

    fn segment_seal(&self, id: SegmentId) -> Result<(), StoreError> {
        // Its rows leave memory, and the journal can forget them.
        let tables = self.tables.load();
        tables.get(Table::Log(id))?.rotate_memtable().map(|_| ()).map_err(failed("seal a segment"))
    }

    fn segment_drop(&self, id: SegmentId) -> Result<(), StoreError> {
        let _lock = self.segments_lock.lock().expect("no code panics while it holds the lock");
        let keyspace = self.tables.load().get(Table::Log(id))?.clone();
        self.update_segments(|segments| drop(segments.remove(&id)));
        self.db.delete_keyspace(keyspace).map_err(failed("drop a segment"))
    }

    fn segment_list(&self) -> Vec<SegmentId> {
        self.tables.load().segments.keys().copied().collect()
    }

    fn disk_bytes(&self) -> u64 {
        self.db.disk_space().unwrap_or(0)
    }
}

impl Snapshot for FjallSnapshot {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        let value = self.snapshot.get(self.tables.get(table)?, key).map_err(failed("read a row"))?;
        Ok(value.map(Bytes::from))
    }

    fn range(&self, table: Table, from: &[u8], until: &[u8]) -> Rows {
        let keyspace = match self.tables.get(table) {
            Ok(keyspace) => keyspace,
            Err(error) => return Box::new(std::iter::once(Err(error))),
        };
        let rows = self.snapshot.range(keyspace, from..until);
        Box::new(rows.map(|guard| {
            let (key, value) = guard.into_inner().map_err(failed("read a row"))?;
            Ok((key.into(), value.into()))
        }))
    }
}

impl Tables {
    fn get(&self, table: Table) -> Result<&Keyspace, StoreError> {
        match table {
            Table::Objects => Ok(&self.objects),
            Table::Meta => Ok(&self.meta),
            Table::Log(id) => self.segments.get(&id).ok_or_else(|| StoreError::Corrupt {
                place: format!("segment {id} of the log"),
                reason: "it is missing",
            }),
        }
    }

    fn all(&self) -> impl Iterator<Item = &Keyspace> {
        [&self.objects, &self.meta].into_iter().chain(self.segments.values())
    }
}

fn keyspace_options(memtable_bytes: u64) -> KeyspaceCreateOptions {
    // JSON shrinks to a third; the newest levels stay plain, they are rewritten soon.
    let compression = [CompressionType::None, CompressionType::None, CompressionType::Lz4];
    KeyspaceCreateOptions::default()
        .max_memtable_size(memtable_bytes)
        .data_block_compression_policy(CompressionPolicy::new(compression))
}

fn failed(doing: &'static str) -> impl FnOnce(fjall::Error) -> StoreError {
    move |error| {
        let reason = match &error {
            fjall::Error::Poisoned => "an earlier write failed; see the log for it, and check the disk".into(),
            other => format!("{other:?}"),
        };
        StoreError::Engine { doing, reason }
    }
}
