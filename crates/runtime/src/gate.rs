//! Which of the keys that wait may run: none before every index is filled, but
//! for those that the preview of an index can answer for.

use std::collections::VecDeque;

use tidegate_model::ObjectKey;

use crate::Touched;
use crate::index::Stage;
use crate::queue::{Millis, Queue, Taken};

pub(crate) struct Gate {
    /// Indexes that have not been audited.
    audits_missing: usize,
    /// Those that may run meanwhile; `None` for a controller of several
    /// indexes: one of them cannot answer for the others.
    ahead: Option<VecDeque<ObjectKey>>,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use crate::queue::{Cause, Done, Priority, Trigger};

    fn key(name: &str) -> ObjectKey {
        Kind::new("v1", "Thing", "things").key(None, name)
    }

    fn named(stage: Stage, names: &[&str]) -> Touched {
        let mut touched = Touched::of(stage);
        touched.extend(names.iter().map(|name| key(name)));
        touched
    }

    fn add(queue: &mut Queue, name: &str) {
        queue.add(&key(name), Trigger { priority: Priority::High, owed: None, cause: Cause::Touch }, 0);
    }

    fn take(gate: &mut Gate, queue: &mut Queue) -> Option<ObjectKey> {
        gate.take(queue, 0).map(|taken| taken.key)
    }

    #[test]
    fn only_what_is_answered_for_runs_before_the_audit() {
        let (mut gate, mut queue) = (Gate::new(1), Queue::default());
        ["a", "b", "c"].iter().for_each(|name| add(&mut queue, name));
        assert_eq!(take(&mut gate, &mut queue), None);
        gate.hear(&named(Stage::Preview, &["b"]));
        assert_eq!(take(&mut gate, &mut queue), Some(key("b")));
        assert_eq!(take(&mut gate, &mut queue), None);
        // Answered for once more while it runs.
        add(&mut queue, "b");
        gate.hear(&named(Stage::Preview, &["b"]));
        assert_eq!(take(&mut gate, &mut queue), None, "it runs");
        queue.done(&key("b"), Done::Success, 0);
        assert_eq!(take(&mut gate, &mut queue), Some(key("b")));
        gate.hear(&named(Stage::Audit, &[]));
        assert_eq!([take(&mut gate, &mut queue), take(&mut gate, &mut queue)], [Some(key("a")), Some(key("c"))]);
    }

    #[test]
    fn one_of_several_indexes_does_not_answer_for_the_others() {
        let (mut gate, mut queue) = (Gate::new(2), Queue::default());
        add(&mut queue, "a");
        gate.hear(&named(Stage::Preview, &["a"]));
        gate.hear(&named(Stage::Audit, &[]));
        assert_eq!(take(&mut gate, &mut queue), None);
        gate.hear(&named(Stage::Audit, &[]));
        assert_eq!(take(&mut gate, &mut queue), Some(key("a")));
    }
}
