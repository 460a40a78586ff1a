//! What must survive the process: which keys are unfinished, which are known,
//! and the checkpoint. Pure: plans what to save and takes note of what was.
//!
//! Invariant: the checkpoint passes a position only when the key that owes it
//! has succeeded, or in the same save that records the key as unfinished. A
//! save whose outcome is not known ends the term: its successor reads what is
//! there, and the lease keeps a late write out.

use std::collections::{BTreeSet, HashMap, HashSet};

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
    released: BTreeSet<String>,
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

    pub fn is_gone(&self, key: &ObjectKey) -> bool {
        self.gone.contains(key)
    }

    /// Reconciled as deleted, and seen to be: unless it came meanwhile.
    pub fn absent(&mut self, key: &ObjectKey) {
        if self.gone.remove(key) {
            self.forget.insert(key.clone());
        }
    }

    /// Acts on a request of an operator: the keys that have failed and that it
    /// names, which are to run now. The save that forgets the request records
    /// that they are out, so that a crash before they ran loses nothing.
    pub fn release(&mut self, request: &str, now_ms: u64) -> Vec<ObjectKey> {
        let wanted = request.strip_prefix(rows::RELEASE).unwrap_or_default();
        let is_wanted = |key: &ObjectKey, row: &Unfinished| match wanted {
            rows::RELEASE_QUARANTINED => row.is_quarantined(),
            rows::RELEASE_FAILED => row.has_failed(),
            text => row.has_failed() && text == rows::key_text(key),
        };
        let named = self.unfinished.iter().filter(|(key, row)| is_wanted(key, row));
        let mut keys: Vec<ObjectKey> = named.map(|(key, _)| key.clone()).collect();
        keys.sort_unstable();
        for key in &keys {
            let out = |row: &Unfinished| Unfinished {
                failures: 0,
                attempts: 0,
                due_ms: Some(now_ms),
                stalled: row.stalled.map(|_| Stalled::Due),
                ..row.clone()
            };
            let row = self.unfinished.get(key).map(out);
            self.note(key, row);
        }
        self.released.insert(request.to_owned());
        keys
    }

    pub fn row(&self, key: &ObjectKey) -> Option<&Unfinished> {
        self.unfinished.get(key)
    }

    /// Its row is saved, or will be by the save that runs: none that begins
    /// later outlives a failure of that one.
    pub fn is_recorded(&self, key: &ObjectKey) -> bool {
        self.unfinished.contains_key(key) && !self.dirty.contains(key)
    }

    /// `None` if nothing is to be saved. `received` is how far events have
    /// come in.
    pub fn plan(&mut self, queue: &mut Queue, received: Position, report: Vec<u8>) -> Option<Save> {
        let mut rows: Vec<ObjectKey> = self.dirty.drain().collect();
        rows.sort_unstable();
        // What is unfinished runs in the next life, too.
        let mut forgotten: Vec<ObjectKey> = self.forget.extract_if(|key| !self.unfinished.contains_key(key)).collect();
        forgotten.sort_unstable();
        let recorded = rows.iter().filter(|key| self.unfinished.contains_key(key));
        let checkpoint = queue.owed_without(recorded).unwrap_or(received);
        let mut changes: Vec<StateChange> =
            rows.iter().map(|key| rows::unfinished(key, self.unfinished.get(key))).collect();
        changes.extend(forgotten.iter().map(rows::forgotten));
        changes.extend(std::mem::take(&mut self.released).into_iter().map(rows::remove));
        if report != self.saved_report {
            changes.push(rows::put(rows::REPORT.into(), report.clone()));
        }
        if let Some(version) = checkpoint.filter(|_| checkpoint != self.saved_checkpoint) {
            changes.push(rows::checkpoint(version));
        }
        if changes.is_empty() {
            return None;
        }
        Some(Save { changes, forgotten, rows, checkpoint, report })
    }

    /// Returns the keys whose condition `Stalled` may now be written.
    pub fn saved(&mut self, queue: &mut Queue, save: Save) -> Vec<ObjectKey> {
        for key in &save.rows {
            // A key that ran again meanwhile may be about to lose its record.
            if self.is_recorded(key) {
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

    /// Perhaps another object of this name, which shows nothing yet; or
    /// somebody has taken the condition away.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    #[test]
    fn a_release_is_recorded_by_the_save_that_forgets_the_request() {
        let key = |name| Kind::new("v1", "Thing", "things").key(None, name);
        let parked = Unfinished {
            failures: 15,
            attempts: 15,
            generation: 2,
            due_ms: None,
            error: "hopeless".into(),
            since_ms: 1,
            stalled: Some(Stalled::Shown),
        };
        let retried = Unfinished { failures: 3, due_ms: Some(99), ..parked.clone() };
        let postponed = Unfinished { failures: 0, ..retried.clone() };
        for (request, expected) in [
            ("release/*", vec![key("a"), key("b")]),
            ("release/ b", vec![key("b")]),
            ("release/ c", vec![key("c")]),
            ("release/ d", vec![]),
            ("release/**", vec![key("a"), key("b"), key("c")]),
        ] {
            let mut ledger = Ledger::default();
            for (name, row) in [("a", &parked), ("b", &parked), ("c", &retried), ("d", &postponed)] {
                ledger.restore(key(name), row.clone());
            }
            let released = ledger.release(request, 77);
            assert_eq!(released, expected);
            let save = ledger.plan(&mut Queue::default(), None, Vec::new()).unwrap();
            assert!(save.changes.contains(&rows::remove(request.into())), "{save:?}");
            for key in &released {
                let row = ledger.row(key);
                assert!(row.is_some_and(|row| row.due_ms == Some(77) && row.stalled == Some(Stalled::Due)), "{row:?}");
                assert!(save.changes.contains(&rows::unfinished(key, row)), "{save:?}");
            }
        }
    }
}
