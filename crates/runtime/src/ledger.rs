//! What must survive the process: which keys are unfinished, which are known,
//! and the checkpoint. Pure: plans what to save and takes note of what was.
//!
//! Invariant: the checkpoint passes a position only when the key that owes it
//! has succeeded, or in the same save that records the key as unfinished. A
//! save whose outcome is not known ends the term: its successor reads what is
//! there, and the lease keeps a late write out.

use std::collections::{HashMap, HashSet};

use tidegate_model::ObjectKey;

use crate::StateChange;
use crate::queue::{Position, Queue};
use crate::rows::{self, Stalled, Unfinished};
use crate::stalled::Wanted;

#[derive(Default)]
pub(crate) struct Ledger {
    unfinished: HashMap<ObjectKey, Unfinished>,
    /// Whose row differs from what is saved.
    dirty: HashSet<ObjectKey>,
    /// Deleted, and not yet reconciled as such.
    gone: HashSet<ObjectKey>,
    /// Reconciled as deleted: no longer known.
    forget: HashSet<ObjectKey>,
    /// Requests of an operator that were acted on.
    released: HashSet<String>,
    saved_checkpoint: Position,
    saved_report: Vec<u8>,
}

/// What one save writes, in this order.
#[derive(Default, Debug)]
pub(crate) struct Save {
    pub changes: Vec<StateChange>,
    /// No longer known from here on.
    pub forgotten: Vec<ObjectKey>,
    rows: Vec<ObjectKey>,
    checkpoint: Position,
    report: Vec<u8>,
}

impl Ledger {
    pub fn restore(&mut self, key: ObjectKey, row: Unfinished) {
        self.unfinished.insert(key, row);
    }

    pub fn restore_checkpoint(&mut self, checkpoint: Position) {
        self.saved_checkpoint = checkpoint;
    }

    pub fn checkpoint(&self) -> Position {
        self.saved_checkpoint
    }

    /// `None`: the key has succeeded.
    pub fn note(&mut self, key: &ObjectKey, row: Option<Unfinished>) {
        match row {
            Some(row) => drop(self.unfinished.insert(key.clone(), row)),
            None if self.unfinished.remove(key).is_none() => return,
            None => {}
        }
        self.dirty.insert(key.clone());
    }

    pub fn came(&mut self, key: &ObjectKey) {
        self.gone.remove(key);
        self.forget.remove(key);
    }

    pub fn went(&mut self, key: &ObjectKey) {
        self.gone.insert(key.clone());
    }

    /// An index speaks of it: perhaps it is back, and our reader has not come
    /// to that yet. Its row is kept; the next list finds it if there is none.
    pub fn touched(&mut self, key: &ObjectKey) {
        self.came(key);
    }

    pub fn succeeded(&mut self, key: &ObjectKey) {
        if self.gone.remove(key) {
            self.forget.insert(key.clone());
        }
    }

    pub fn release_done(&mut self, name: String) {
        self.released.insert(name);
    }

    pub fn row(&self, key: &ObjectKey) -> Option<&Unfinished> {
        self.unfinished.get(key)
    }

    pub fn quarantined(&self) -> impl Iterator<Item = (&ObjectKey, &Unfinished)> {
        self.unfinished.iter().filter(|(_, row)| row.is_quarantined())
    }

    /// `None` if nothing is to be saved. `received` is how far events have
    /// come in.
    pub fn plan(&mut self, queue: &mut Queue, received: Position, report: Vec<u8>) -> Option<Save> {
        // A running key is written when its run is over: what it owes may be
        // done by then.
        let rows: Vec<ObjectKey> = self.dirty.iter().filter(|key| !queue.is_running(key)).cloned().collect();
        let recorded = rows.iter().filter(|key| self.unfinished.contains_key(key));
        let checkpoint = queue.owed_without(recorded).unwrap_or(received);
        let mut changes: Vec<StateChange> =
            rows.iter().map(|key| rows::unfinished(key, self.unfinished.get(key))).collect();
        changes.extend(self.forget.iter().map(rows::forgotten));
        changes.extend(self.released.iter().map(|name| rows::remove(name.clone())));
        if report != self.saved_report {
            changes.push(rows::put(rows::REPORT.into(), report.clone()));
        }
        if let Some(version) = checkpoint.filter(|_| checkpoint != self.saved_checkpoint) {
            changes.push(rows::checkpoint(version));
        }
        if changes.is_empty() {
            return None;
        }
        for key in &rows {
            self.dirty.remove(key);
        }
        let forgotten = self.forget.drain().collect();
        self.released.clear();
        Some(Save { changes, forgotten, rows, checkpoint, report })
    }

    /// Returns the keys whose condition `Stalled` may now be written.
    pub fn saved(&mut self, queue: &mut Queue, save: Save) -> Vec<ObjectKey> {
        for key in &save.rows {
            // A key that ran again meanwhile may be about to lose its record.
            if self.unfinished.contains_key(key) && !self.dirty.contains(key) {
                queue.recorded(key);
            }
        }
        if save.checkpoint.is_some() {
            self.saved_checkpoint = save.checkpoint;
        }
        self.saved_report = save.report;
        save.rows.into_iter().filter(|key| self.stalled_due(key).is_some()).collect()
    }

    /// What the object of a key should say: it is quarantined with this error,
    /// or nothing. `None` if it says so, or if what it should say is not saved.
    pub fn stalled_due(&self, key: &ObjectKey) -> Option<Wanted> {
        let row = self.unfinished.get(key).filter(|_| !self.dirty.contains(key))?;
        match row.stalled? {
            Stalled::Due | Stalled::Leaving => Some(row.is_quarantined().then(|| row.error.clone())),
            Stalled::Shown => None,
        }
    }

    /// Seen in a list: perhaps another object of this name, which shows
    /// nothing yet.
    pub fn doubt_stalled(&mut self, key: &ObjectKey) {
        let Some(row) = self.unfinished.get(key).filter(|row| row.stalled == Some(Stalled::Shown)) else { return };
        self.note(key, Some(Unfinished { stalled: Some(Stalled::Due), ..row.clone() }));
    }

    /// The object says so now.
    pub fn stalled_is(&mut self, key: &ObjectKey, shown: bool) {
        let Some(row) = self.unfinished.get(key).filter(|row| row.is_quarantined() == shown) else { return };
        let row = match row.stalled {
            Some(Stalled::Leaving) => None,
            Some(Stalled::Due) => Some(Unfinished { stalled: shown.then_some(Stalled::Shown), ..row.clone() }),
            Some(Stalled::Shown) | None => return,
        };
        self.note(key, row);
    }
}
