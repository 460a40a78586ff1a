//! What a driver hears becomes work in its queue.
//!
//! Invariant: a key is known, durably, before it is reconciled: what a crash
//! leaves behind is found.

use tidegate_model::ObjectKey;

use super::Driver;
use crate::index::{Stage, Touched};
use crate::queue::{Cause, Position, Priority, Trigger};
use crate::reader::{Feed, Happened, Listed, Seen};

impl Driver {
    pub(super) fn take_feed(&mut self, feed: Feed) {
        if self.fresh(&feed).next().is_some() {
            self.held = Some(feed);
            self.save_known();
        } else {
            self.take_known_feed(feed);
        }
    }

    /// Keys that must be known before they are reconciled. Of those in events
    /// not only what came: an earlier term may have seen its end already, and
    /// forgotten it, without having saved that it did.
    pub(super) fn fresh<'f>(&'f self, feed: &'f Feed) -> Box<dyn Iterator<Item = &'f ObjectKey> + 'f> {
        match feed {
            Feed::Listed { fresh, .. } | Feed::Touched { fresh, .. } => Box::new(fresh.iter()),
            Feed::Swept { fresh, .. } => Box::new(fresh.iter().filter(|key| !self.known.contains(key))),
            Feed::Events { events, .. } => {
                Box::new(events.iter().map(|seen| &seen.key).filter(|key| !self.known.contains(key)))
            }
            Feed::ListEnd { .. } => Box::new(std::iter::empty()),
        }
    }

    /// An index may know an object before our own reader does, and an object
    /// that is reconciled must be known.
    pub(super) fn hear_touched(&mut self, touched: Touched) {
        let fresh = touched.keys().iter().filter(|key| !self.known.contains(key)).cloned().collect();
        self.take_feed(Feed::Touched { touched, fresh });
    }

    pub(super) fn take_known_feed(&mut self, feed: Feed) {
        match feed {
            Feed::Touched { touched, fresh } => {
                fresh.iter().for_each(|key| self.known.insert(key));
                self.take_touched(&touched);
            }
            Feed::Listed { keys, gone, fresh: _ } => self.take_list(&keys, &gone),
            // Perhaps before the reader has come to it.
            Feed::Swept { keys, fresh } => {
                fresh.iter().for_each(|key| self.known.insert(key));
                self.take_sweep(&keys);
            }
            Feed::ListEnd { version } => self.received = Some(version),
            Feed::Events { events, reached } => {
                events.iter().for_each(|seen| self.take_event(seen));
                self.received = Some(reached);
            }
        }
    }

    fn take_list(&mut self, keys: &[Listed], gone: &[ObjectKey]) {
        for Listed { key, generation } in keys {
            self.ledger.came(key);
            self.ledger.doubt_stalled(key);
            self.known.insert(key);
            self.add(key, Priority::Low, Some(None), Cause::State { generation: *generation });
        }
        for key in gone {
            self.ledger.went(key);
            self.known.insert(key);
            self.add(key, Priority::Low, Some(None), Cause::Went);
        }
    }

    fn take_event(&mut self, Seen { key, what, after }: &Seen) {
        self.known.insert(key);
        let cause = match *what {
            Happened::Changed { generation } => {
                self.ledger.doubt_stalled(key);
                Cause::State { generation }
            }
            Happened::Came { generation } => {
                self.ledger.came(key);
                Cause::Came { generation }
            }
            Happened::Went => {
                self.ledger.went(key);
                Cause::Went
            }
        };
        self.add(key, Priority::High, Some(Some(*after)), cause);
    }

    fn take_touched(&mut self, touched: &Touched) {
        self.gate.hear(touched);
        if touched.is_everything() {
            self.sweep.begin();
        }
        // Found again by the next audit, so nothing is owed.
        let priority = if touched.stage() == Stage::Audit { Priority::Low } else { Priority::High };
        for key in touched.keys() {
            self.ledger.touched(key);
            self.add(key, priority, None, Cause::Touch);
        }
        for key in touched.renewed_keys() {
            self.add(key, priority, None, Cause::Renewed);
        }
    }

    fn take_sweep(&mut self, keys: &[Listed]) {
        for Listed { key, generation } in keys {
            self.add(key, Priority::Low, None, Cause::State { generation: *generation });
        }
    }

    pub(super) fn add(&mut self, key: &ObjectKey, priority: Priority, owed: Option<Position>, cause: Cause) {
        self.queue.add(key, Trigger { priority, owed, cause }, self.clock.now());
        // A backoff that what came does not end would hold up the checkpoint.
        if self.ledger.is_recorded(key) {
            self.queue.recorded(key);
        }
    }
}
