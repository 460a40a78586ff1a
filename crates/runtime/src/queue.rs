//! Which keys wait, run, are delayed or parked, and what they owe to the
//! checkpoint. Pure: time comes in as milliseconds.
//!
//! Invariants: a key is in one place; while it runs, whatever comes makes it
//! run once more afterwards; a position is owed until a run that began after
//! it has succeeded, or until the key is durably recorded as unfinished.

use std::collections::{BTreeMap, HashMap, VecDeque};

use tidegate_model::{ObjectKey, ResourceVersion};

pub(crate) type Millis = u64;

/// From where a watch has to resume to see an event again; `None`: a list.
pub(crate) type Position = Option<ResourceVersion>;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Priority {
    /// The initial list and the resync.
    Low,
    /// What changed just now.
    High,
}

/// Why a key is added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trigger {
    pub priority: Priority,
    /// `None` if nothing would be lost with the process.
    pub owed: Option<Position>,
    pub cause: Cause,
}

/// Decides whether a backoff or a quarantine is left early: not because of a
/// status write, which may be the failing reconcile's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cause {
    /// The object is in this generation: leaves both if it is a new one.
    State { generation: i64 },
    /// Something that it depends on changed: leaves a backoff.
    Touch,
    /// An operator, or what the last verdict was about is not the same any
    /// more: leaves both.
    Renewed,
    /// The object came, perhaps after another of its name: leaves both.
    Came { generation: i64 },
    /// The object went: leaves both.
    Went,
}

/// How a cause may change the outcome of the last run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum News {
    None,
    Touch,
    /// The count of failures begins anew.
    Reset,
}

/// What became of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Done {
    Success,
    /// Success, and again then.
    Again {
        due: Millis,
    },
    /// Failed; again then.
    Retry {
        due: Millis,
    },
    /// Failed; not again by itself.
    Park,
}

#[derive(Default)]
pub(crate) struct Queue {
    entries: HashMap<ObjectKey, Entry>,
    low: VecDeque<(Ticket, ObjectKey)>,
    high: VecDeque<(Ticket, ObjectKey)>,
    delayed: BTreeMap<(Millis, Ticket), ObjectKey>,
    owed: BTreeMap<Position, usize>,
    tickets: Ticket,
    counts: Counts,
}

/// Tells a key's place in a line from one that it has left.
type Ticket = u64;

struct Entry {
    place: Place,
    priority: Priority,
    /// The oldest that the next run is for.
    owed: Option<Position>,
    failures: u32,
    since: Millis,
    /// The newest generation heard of, and that of the last run.
    seen: i64,
    tried: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Ready(Ticket),
    Delayed { due: Millis, ticket: Ticket, failed: bool },
    Running { owed: Option<Position>, again: Option<News> },
    Parked,
}

impl Place {
    /// Whether a record of the last outcome says all that there is to do. One
    /// of a quarantine knows nothing of what has just ended it, and that of a
    /// key which runs may go with the run, although more came meanwhile.
    fn is_recordable(self) -> bool {
        matches!(self, Self::Delayed { .. } | Self::Parked)
    }
}

/// A key to run, how often it failed before, and its generation as far as
/// it is known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Taken {
    pub key: ObjectKey,
    pub failures: u32,
    pub generation: i64,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Counts {
    pub ready: usize,
    pub delayed: usize,
    /// Those of the delayed that failed.
    pub retrying: usize,
    pub running: usize,
    pub parked: usize,
}

impl Entry {
    fn news(&self, cause: Cause) -> News {
        match cause {
            Cause::State { generation } if generation <= self.tried => News::None,
            Cause::Touch => News::Touch,
            Cause::State { .. } | Cause::Renewed | Cause::Came { .. } | Cause::Went => News::Reset,
        }
    }

    fn hear(&mut self, cause: Cause) {
        match cause {
            Cause::State { generation } => self.seen = self.seen.max(generation),
            // Another object of this name counts from one.
            Cause::Came { generation } => (self.seen, self.tried) = (generation, 0),
            Cause::Went => (self.seen, self.tried) = (0, 0),
            Cause::Touch | Cause::Renewed => {}
        }
    }
}

impl Queue {
    pub fn add(&mut self, key: &ObjectKey, trigger: Trigger, now: Millis) {
        let Trigger { priority, owed, cause } = trigger;
        let mut entry = self.entries.remove(key).unwrap_or_else(|| self.entry(priority, 0, now));
        let news = entry.news(cause);
        entry.hear(cause);
        match entry.place {
            // Recorded: what comes is covered by the record.
            Place::Parked if entry.failures > 0 && news < News::Reset => {
                self.entries.insert(key.clone(), entry);
            }
            Place::Delayed { failed: true, .. } if news == News::None => {
                self.owe(&mut entry.owed, owed);
                self.entries.insert(key.clone(), entry);
            }
            Place::Running { owed: running, again } => {
                entry.place = Place::Running { owed: running, again: again.max(Some(news)) };
                entry.priority = entry.priority.max(priority);
                self.owe(&mut entry.owed, owed);
                self.entries.insert(key.clone(), entry);
            }
            Place::Ready(_) | Place::Delayed { .. } | Place::Parked => {
                if news == News::Reset {
                    entry.failures = 0;
                }
                self.ready(key, entry, priority, owed, now);
            }
        }
    }

    /// In no line yet.
    fn entry(&mut self, priority: Priority, failures: u32, now: Millis) -> Entry {
        self.counts.parked += 1;
        Entry { place: Place::Parked, priority, owed: None, failures, since: now, seen: 0, tried: 0 }
    }

    fn ready(&mut self, key: &ObjectKey, mut entry: Entry, priority: Priority, owed: Option<Position>, now: Millis) {
        self.owe(&mut entry.owed, owed);
        let was_ready = matches!(entry.place, Place::Ready(_));
        if !was_ready || priority > entry.priority {
            if !was_ready {
                entry.since = now;
            }
            self.leave(entry.place);
            entry.priority = if was_ready { priority.max(entry.priority) } else { priority };
            let ticket = self.ticket();
            entry.place = Place::Ready(ticket);
            self.counts.ready += 1;
            self.line(entry.priority).push_back((ticket, key.clone()));
        }
        self.entries.insert(key.clone(), entry);
    }

    /// The next key to run.
    pub fn take(&mut self, now: Millis) -> Option<Taken> {
        self.wake_due(now);
        loop {
            let (ticket, key) = self.high.pop_front().or_else(|| self.low.pop_front())?;
            if self.entries.get(&key).is_some_and(|entry| entry.place == Place::Ready(ticket)) {
                return self.take_this(&key);
            }
        }
    }

    /// This key, out of turn; `None` if it does not wait for a run.
    pub fn take_this(&mut self, key: &ObjectKey) -> Option<Taken> {
        let entry = self.entries.get_mut(key).filter(|entry| matches!(entry.place, Place::Ready(_)))?;
        entry.place = Place::Running { owed: entry.owed.take(), again: None };
        entry.tried = entry.seen;
        self.counts.ready -= 1;
        self.counts.running += 1;
        Some(Taken { key: key.clone(), failures: entry.failures, generation: entry.tried })
    }

    pub fn is_running(&self, key: &ObjectKey) -> bool {
        self.entries.get(key).is_some_and(|entry| matches!(entry.place, Place::Running { .. }))
    }

    fn wake_due(&mut self, now: Millis) {
        while let Some(first) = self.delayed.first_entry().filter(|first| first.key().0 <= now) {
            let key = first.get().clone();
            if let Some(entry) = self.entries.remove(&key) {
                let priority = entry.priority;
                self.ready(&key, entry, priority, None, now);
            }
        }
    }

    pub fn done(&mut self, key: &ObjectKey, done: Done, now: Millis) {
        let Some(mut entry) = self.entries.remove(key) else { return };
        let Place::Running { owed, again } = entry.place else {
            self.entries.insert(key.clone(), entry);
            return;
        };
        let failed = matches!(done, Done::Retry { .. } | Done::Park);
        if failed {
            self.owe(&mut entry.owed, owed);
        }
        if let Some(owed) = owed {
            self.release(owed);
        }
        let is_reset = again == Some(News::Reset);
        entry.failures = if failed && !is_reset { entry.failures + 1 } else { 0 };
        let priority = entry.priority;
        match done {
            Done::Success | Done::Again { .. } if again.is_some() => self.ready(key, entry, priority, None, now),
            Done::Retry { .. } if again >= Some(News::Touch) => self.ready(key, entry, priority, None, now),
            Done::Park if is_reset => self.ready(key, entry, priority, None, now),
            Done::Success => self.leave(entry.place),
            Done::Again { due } => self.delay(key, entry, due, false),
            Done::Retry { due } => self.delay(key, entry, due, true),
            Done::Park => {
                self.leave(entry.place);
                entry.place = Place::Parked;
                self.counts.parked += 1;
                self.entries.insert(key.clone(), entry);
            }
        }
    }

    fn delay(&mut self, key: &ObjectKey, mut entry: Entry, due: Millis, failed: bool) {
        self.leave(entry.place);
        let ticket = self.ticket();
        entry.place = Place::Delayed { due, ticket, failed };
        self.counts.delayed += 1;
        self.counts.retrying += usize::from(failed);
        self.delayed.insert((due, ticket), key.clone());
        self.entries.insert(key.clone(), entry);
    }

    /// Puts back what an earlier life of the controller left unfinished:
    /// parked if it is not `due`.
    pub fn restore(&mut self, key: &ObjectKey, failures: u32, generation: i64, due: Option<Millis>, now: Millis) {
        let mut entry = self.entry(Priority::High, failures, now);
        (entry.seen, entry.tried) = (generation, generation);
        match due {
            Some(due) => self.delay(key, entry, due, failures > 0),
            None => drop(self.entries.insert(key.clone(), entry)),
        }
    }

    /// The key is durably recorded as unfinished: whatever it owed is kept by
    /// the record, if it is where the record says.
    pub fn recorded(&mut self, key: &ObjectKey) {
        let entry = self.entries.get_mut(key).filter(|entry| entry.place.is_recordable());
        if let Some(owed) = entry.and_then(|entry| entry.owed.take()) {
            self.release(owed);
        }
    }

    /// The oldest position that is owed by anybody whom `recorded` would not
    /// cover.
    pub fn owed_without<'k>(&mut self, recorded: impl Iterator<Item = &'k ObjectKey>) -> Option<Position> {
        let covered = |key| self.entries.get(key).filter(|entry| entry.place.is_recordable());
        let owed: Vec<Position> = recorded.filter_map(|key| covered(key)?.owed).collect();
        owed.iter().for_each(|position| self.release(*position));
        let oldest = self.owed.keys().next().copied();
        owed.iter().for_each(|position| *self.owed.entry(*position).or_default() += 1);
        oldest
    }

    pub fn next_due(&self) -> Option<Millis> {
        self.delayed.first_key_value().map(|((due, _), _)| *due)
    }

    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Since when the key waits that has waited longest.
    pub fn oldest_waiting(&self) -> Option<Millis> {
        // A line is in order of arrival; what has left it is skipped.
        let front = |line: &VecDeque<(Ticket, ObjectKey)>| {
            line.iter().find_map(|(ticket, key)| {
                self.entries.get(key).filter(|entry| entry.place == Place::Ready(*ticket)).map(|entry| entry.since)
            })
        };
        front(&self.high).into_iter().chain(front(&self.low)).min()
    }

    fn line(&mut self, priority: Priority) -> &mut VecDeque<(Ticket, ObjectKey)> {
        match priority {
            Priority::High => &mut self.high,
            Priority::Low => &mut self.low,
        }
    }

    fn ticket(&mut self) -> Ticket {
        self.tickets += 1;
        self.tickets
    }

    fn leave(&mut self, place: Place) {
        match place {
            Place::Ready(_) => self.counts.ready -= 1,
            Place::Delayed { due, ticket, failed } => {
                self.delayed.remove(&(due, ticket));
                self.counts.delayed -= 1;
                self.counts.retrying -= usize::from(failed);
            }
            Place::Running { .. } => self.counts.running -= 1,
            Place::Parked => self.counts.parked -= 1,
        }
    }

    fn owe(&mut self, slot: &mut Option<Position>, new: Option<Position>) {
        let oldest = [*slot, new].into_iter().flatten().min();
        if oldest != *slot {
            if let Some(old) = *slot {
                self.release(old);
            }
            if let Some(oldest) = oldest {
                *self.owed.entry(oldest).or_default() += 1;
            }
            *slot = oldest;
        }
    }

    fn release(&mut self, position: Position) {
        if let Some(count) = self.owed.get_mut(&position) {
            *count -= 1;
            if *count == 0 {
                self.owed.remove(&position);
            }
        }
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
