//! An engine that keeps everything in memory, for the rules above it.
//!
//! Stricter than production: a row named twice in a batch, a write to an
//! unknown segment or to a sealed one is a panic, and it fails on request.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tidegate_model::ResourceVersion;
use tidegate_store::{Change, Engine, Rows, SegmentId, Snapshot, StoreError, Table};

#[derive(Default)]
pub struct MemoryEngine {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    tables: BTreeMap<Table, Arc<TableRows>>,
    sealed: BTreeSet<SegmentId>,
    /// Of the newest batch; a snapshot reads up to it.
    sequence: u64,
    newest: Option<ResourceVersion>,
    failure: Option<String>,
}

/// Each row with its past, so that a snapshot costs nothing.
type TableRows = Mutex<BTreeMap<Bytes, Vec<(u64, Option<Bytes>)>>>;

#[derive(Clone)]
struct MemorySnapshot {
    tables: BTreeMap<Table, Arc<TableRows>>,
    sequence: u64,
}

impl MemoryEngine {
    /// Every later write fails, as on a full disk: nothing of it is applied.
    pub fn fail_writes(&self, reason: &str) {
        self.state.lock().unwrap().failure = Some(reason.into());
    }

    /// For a test that spoils rows of a store that is closed.
    pub fn unseal(&self) {
        self.state.lock().unwrap().sealed.clear();
    }

    pub fn heal(&self) {
        self.state.lock().unwrap().failure = None;
    }
}

impl Engine for MemoryEngine {
    fn write(&self, changes: Vec<Change>, newest: ResourceVersion) -> Result<(), StoreError> {
        let mut state = self.state.lock().unwrap();
        if let Some(reason) = &state.failure {
            return Err(StoreError::Engine { doing: "write a batch", reason: reason.clone() });
        }
        assert!(state.newest <= Some(newest), "the line went back from {:?} to {newest}", state.newest);
        state.newest = Some(newest);
        let sequence = state.sequence + 1;
        let mut named = BTreeSet::new();
        for Change { table, key, value } in changes {
            assert!(named.insert((table, key.clone())), "a batch names a row of {table:?} twice");
            if let Table::Log(id) = table {
                assert!(state.tables.contains_key(&table), "segment {id} was not created");
                assert!(!state.sealed.contains(&id), "segment {id} is sealed");
            }
            let rows = state.tables.entry(table).or_default();
            rows.lock().unwrap().entry(key).or_default().push((sequence, value));
        }
        state.sequence = sequence;
        Ok(())
    }

    fn snapshot(&self) -> Result<Arc<dyn Snapshot>, StoreError> {
        let state = self.state.lock().unwrap();
        Ok(Arc::new(MemorySnapshot { tables: state.tables.clone(), sequence: state.sequence }))
    }

    fn segment_create(&self, id: SegmentId) -> Result<(), StoreError> {
        self.state.lock().unwrap().tables.entry(Table::Log(id)).or_default();
        Ok(())
    }

    fn segment_seal(&self, id: SegmentId) -> Result<(), StoreError> {
        self.state.lock().unwrap().sealed.insert(id);
        Ok(())
    }

    fn segment_drop(&self, id: SegmentId) -> Result<(), StoreError> {
        let dropped = self.state.lock().unwrap().tables.remove(&Table::Log(id));
        assert!(dropped.is_some(), "segment {id} was dropped twice");
        Ok(())
    }

    fn segment_list(&self) -> Vec<SegmentId> {
        let state = self.state.lock().unwrap();
        let id = |table: &Table| if let Table::Log(id) = table { Some(*id) } else { None };
        state.tables.keys().filter_map(id).collect()
    }

    fn disk_bytes(&self) -> u64 {
        0
    }
}

impl Snapshot for MemorySnapshot {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        let Some(rows) = self.tables.get(&table) else { return Ok(None) };
        Ok(rows.lock().unwrap().get(key).and_then(|past| self.visible(past)))
    }

    fn range(&self, table: Table, from: &[u8], until: &[u8]) -> Rows {
        let (snapshot, until) = (self.clone(), Bytes::copy_from_slice(until));
        let mut from = Bound::Included(Bytes::copy_from_slice(from));
        Box::new(std::iter::from_fn(move || {
            let row = snapshot.next(table, from.clone(), &until)?;
            from = Bound::Excluded(row.0.clone());
            Some(Ok(row))
        }))
    }
}

impl MemorySnapshot {
    fn next(&self, table: Table, from: Bound<Bytes>, until: &Bytes) -> Option<(Bytes, Bytes)> {
        let rows = self.tables.get(&table)?.lock().unwrap();
        let mut later = rows.range((from, Bound::Excluded(until.clone())));
        later.find_map(|(key, past)| Some((key.clone(), self.visible(past)?)))
    }

    fn visible(&self, past: &[(u64, Option<Bytes>)]) -> Option<Bytes> {
        let (_, value) = past.iter().rev().find(|(sequence, _)| *sequence <= self.sequence)?;
        value.clone()
    }
}
