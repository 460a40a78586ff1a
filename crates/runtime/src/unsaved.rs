//! What of a durable index is not saved yet. Pure: plans each write and takes
//! note of its outcome.
//!
//! Invariant: a write that names positions holds every record that changed
//! before them, or those were written before. So records and positions agree,
//! or the row that names them says that they are torn. Records that this index
//! cannot account for are removed, all of them, before it writes its own.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use tidegate_model::{ObjectKey, ResourceVersion};

use crate::rows::{self, SavedIndex};
use crate::{Durable, Kind, StateChange};

/// Keys that a manager which stands by remembers: about 150 bytes each. With
/// more, it writes all records anew when it leads.
const KEYS_MAX: usize = 100_000;
/// Of the records in one write before its last, so it has at most 2 MiB.
const WRITE_BYTES_MAX: usize = rows::RECORD_BYTES_MAX;
pub(crate) struct Unsaved {
    index: Arc<dyn Durable>,
    /// Of one write.
    records_max: usize,
    kinds: Vec<Kind>,
    id: u64,
    /// Up to where each kind was applied; `None` while it is listed first.
    applied: Vec<Option<ResourceVersion>>,
    /// The id and the versions of the row; `None` if there is none of ours.
    saved: Option<Position>,
    /// The same, with the write that is on its way.
    saving: Option<Position>,
    keys: BTreeSet<ObjectKey>,
    /// Of all records: those that are still to be written.
    backlog: Vec<ObjectKey>,
    in_flight: Vec<ObjectKey>,
    /// Nobody knows what all the saved records are: they have to go first.
    is_foreign: bool,
    /// A record is too large: nothing is saved, and each start lists.
    gave_up: bool,
}

/// Which records, and up to where they go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Position {
    pub id: u64,
    pub versions: Vec<ResourceVersion>,
}

impl Position {
    /// `None` for a row of another format, or that lacks a kind.
    pub fn read(row: &SavedIndex, format: u32, kinds: &[Kind]) -> Option<Self> {
        let version = |kind: &Kind| row.versions.get(&*kind.resource.plural)?.parse().ok();
        let versions = kinds.iter().map(version).collect::<Option<_>>()?;
        (row.format == format).then_some(Self { id: row.id, versions })
    }
}

/// What became of the step before.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Before {
    /// A new term begins, and this is the row that it finds.
    Term(Option<SavedIndex>),
    Saved,
    /// No row of the index is left.
    Cleared,
}

#[derive(PartialEq, Debug)]
pub(crate) enum Step {
    Nothing,
    /// Remove the row of the index, then all records.
    Clear,
    /// One write; `more` of them follow at once.
    Write {
        changes: Vec<StateChange>,
        more: bool,
    },
}

impl Unsaved {
    /// `loaded` is what the index was loaded with.
    pub fn new(index: Arc<dyn Durable>, rows_max: usize, kinds: Vec<Kind>, loaded: Option<Position>) -> Self {
        let applied = match &loaded {
            Some(position) => position.versions.iter().copied().map(Some).collect(),
            None => vec![None; kinds.len()],
        };
        Self {
            index,
            // And the row that names their positions.
            records_max: rows_max.saturating_sub(1).max(1),
            kinds,
            applied,
            is_foreign: loaded.is_none(),
            id: loaded.as_ref().map_or(0, |position| position.id),
            saved: loaded,
            saving: None,
            keys: BTreeSet::new(),
            gave_up: false,
            backlog: Vec::new(),
            in_flight: Vec::new(),
        }
    }

    /// Events up to `reached` are applied, and changed these records.
    pub fn applied(&mut self, kind_at: usize, reached: Option<ResourceVersion>, changed: Vec<ObjectKey>) {
        self.applied[kind_at] = reached.or(self.applied[kind_at]);
        if !self.is_foreign && !self.gave_up {
            self.keys.extend(changed);
        }
        if self.keys.len() > KEYS_MAX {
            self.disown();
        }
    }

    /// A kind was listed. What came and went while nobody watched is unknown
    /// to this index, and another manager may have written records of it.
    pub fn listed(&mut self) {
        self.disown();
    }

    fn disown(&mut self) {
        self.is_foreign = true;
        (self.keys, self.backlog, self.in_flight) = Default::default();
    }

    pub fn step(&mut self, before: Before) -> Step {
        self.settle(before);
        let Some(applied) = self.applied.iter().copied().collect::<Option<Vec<_>>>() else { return Step::Nothing };
        if self.is_foreign {
            return Step::Clear;
        }
        if self.gave_up {
            return Step::Nothing;
        }
        if self.is_behind(&applied) {
            return Step::Nothing;
        }
        let (taken, mut changes) = self.take();
        if self.is_foreign {
            return Step::Clear;
        }
        let more = !(self.keys.is_empty() && self.backlog.is_empty());
        let is_saved = self.saved.as_ref().is_some_and(|saved| saved.versions == applied);
        if taken.is_empty() && is_saved {
            return Step::Nothing;
        }
        self.saving = match more {
            true => self.saved.clone(),
            false => Some(Position { id: self.id, versions: applied }),
        };
        changes.extend(self.saving.as_ref().map(|position| self.row(position, more)));
        self.in_flight = taken;
        Step::Write { changes, more }
    }

    /// What another manager saved is newer than what this one has seen.
    fn is_behind(&self, applied: &[ResourceVersion]) -> bool {
        let saved = self.saved.iter().flat_map(|saved| &saved.versions);
        applied.iter().zip(saved).any(|(applied, saved)| applied < saved)
    }

    fn settle(&mut self, before: Before) {
        match before {
            Before::Term(row) => {
                self.keys.extend(std::mem::take(&mut self.in_flight));
                self.saving = None;
                self.adopt(row);
            }
            Before::Saved => {
                self.in_flight.clear();
                self.saved = self.saving.take().or(self.saved.take());
            }
            Before::Cleared => {
                self.is_foreign = false;
                self.id = rand::random();
                self.saved = None;
                if self.gave_up {
                    return;
                }
                self.backlog = self.kinds.iter().flat_map(|kind| self.index.keys(kind)).collect();
            }
        }
    }

    /// Another manager may have saved since: this one has seen the same events
    /// and knows which records changed, if they are the same records.
    fn adopt(&mut self, row: Option<SavedIndex>) {
        let position =
            row.filter(|row| !row.torn).and_then(|row| Position::read(&row, self.index.format(), &self.kinds));
        match position.filter(|position| position.id == self.id) {
            Some(position) => self.saved = Some(position),
            None => self.disown(),
        }
    }

    /// Keys for one write, and what it says of them.
    fn take(&mut self) -> (Vec<ObjectKey>, Vec<StateChange>) {
        let (mut taken, mut changes, mut bytes) = (Vec::new(), Vec::new(), 0);
        while taken.len() < self.records_max && bytes < WRITE_BYTES_MAX {
            let Some(key) = self.next_key() else { break };
            let record = self.index.record(&key);
            let size = record.as_ref().map_or(0, Bytes::len);
            if size > rows::RECORD_BYTES_MAX {
                self.give_up(&key, size);
                break;
            }
            bytes += size;
            changes.push(rows::record(&key, record));
            taken.push(key);
        }
        (taken, changes)
    }

    /// One object must not keep the controllers from working.
    fn give_up(&mut self, key: &ObjectKey, size: usize) {
        let (index, limit) = (self.index.name(), rows::RECORD_BYTES_MAX);
        tracing::error!(index, %key, size, limit, "too much to save of one object: the index is not saved from here on, and a restart lists");
        self.gave_up = true;
        self.disown();
    }

    /// What changed goes before what is written because everything is.
    fn next_key(&mut self) -> Option<ObjectKey> {
        self.keys.pop_first().or_else(|| self.backlog.pop())
    }

    fn row(&self, position: &Position, torn: bool) -> StateChange {
        let named = self.kinds.iter().zip(&position.versions);
        let versions = named.map(|(kind, version)| (kind.resource.plural.to_string(), version.to_string())).collect();
        let row =
            SavedIndex { format: self.index.format(), id: position.id, versions, torn, summary: self.index.summary() };
        rows::put(rows::INDEX.into(), serde_json::to_vec(&row).unwrap_or_default())
    }
}

#[cfg(test)]
#[path = "unsaved_tests.rs"]
mod tests;
