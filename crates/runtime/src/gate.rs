//! Which of the keys that wait may run: none before every index is filled, but
//! for those that the preview of an index can answer for.

use std::collections::VecDeque;

use crate::Touched;
use crate::index::Stage;
use crate::queue::{Millis, Queue, Taken};

pub(crate) struct Gate {
    /// Indexes that have not been audited.
    audits_missing: usize,
    /// Those that may run meanwhile; `None` for a controller of several
    /// indexes: one of them cannot answer for the others.
    ahead: Option<VecDeque<tidegate_model::ObjectKey>>,
}

impl Gate {
    pub fn new(indexes: usize) -> Self {
        Self { audits_missing: indexes, ahead: (indexes == 1).then(VecDeque::new) }
    }

    pub fn is_open(&self) -> bool {
        self.audits_missing == 0
    }

    pub fn hear(&mut self, touched: &Touched) {
        match touched.stage() {
            Stage::Change => {}
            Stage::Audit => {
                self.audits_missing -= 1;
                self.ahead = None;
            }
            Stage::Preview => self.ahead.iter_mut().for_each(|ahead| ahead.extend(touched.keys().iter().cloned())),
        }
    }

    /// The next key to run.
    pub fn take(&mut self, queue: &mut Queue, now: Millis) -> Option<Taken> {
        if self.is_open() {
            return queue.take(now);
        }
        let ahead = self.ahead.as_mut()?;
        for _ in 0..ahead.len() {
            let key = ahead.pop_front()?;
            if let Some(taken) = queue.take_this(&key) {
                return Some(taken);
            }
            // It may have to run once more; so it keeps its turn.
            if queue.is_running(&key) {
                ahead.push_back(key);
            }
        }
        None
    }
}
