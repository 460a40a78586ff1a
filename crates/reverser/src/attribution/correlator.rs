//! Records of admissions, waiting to be claimed by the event that they caused.
//!
//! The strong key is (uid, the version that the write starts from, operation):
//! the API server lets one attempt on a base win, and the content tells the
//! winner from a refused rival. Identity and content alone are asked only
//! where the watch skipped events, so that the base is not known.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::{Duration, Instant};

use super::attempt::{Attempt, Content, Identity, Operation};
use super::person::Person;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    pub time_to_live: Duration,
    /// About 400 bytes each, so 4 MiB.
    pub keys_max: usize,
    /// Attempts on one base: the oldest goes first.
    pub rivals_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { time_to_live: Duration::from_secs(60), keys_max: 10_000, rivals_max: 16 }
    }
}

/// What the watch knows of the version before an event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Base {
    /// A creation: there was none.
    None,
    Exact(String),
    /// Events may have been skipped since this one.
    Since(Option<String>),
}

/// A change that the watch saw.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Observed {
    pub identity: Identity,
    pub version: String,
    pub uid: String,
    pub base: Base,
    pub operation: Operation,
    pub hash: u64,
    pub replicas: Option<i64>,
}

/// What the records say of a change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    By(Person),
    /// One attempt fits but for content that cannot be compared: believed
    /// unless a better one comes.
    Perhaps,
    Nothing,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct Strong {
    uid: String,
    base: Option<String>,
    operation: u8,
}

#[derive(Debug)]
struct Record {
    attempt: Attempt,
    at: Instant,
    order: u64,
}

#[derive(Debug, Default)]
struct Slot {
    records: VecDeque<Record>,
    /// Its place in `ages`.
    age: u64,
}

#[derive(Debug)]
pub struct Correlator {
    limits: Limits,
    slots: HashMap<Strong, Slot>,
    /// The least recently written first.
    ages: BTreeMap<u64, Strong>,
    identities: HashMap<Identity, BTreeSet<Strong>>,
    clock: u64,
    evictions: u64,
}

impl Correlator {
    pub fn new(limits: Limits) -> Self {
        let (slots, ages, identities) = Default::default();
        Self { limits, slots, ages, identities, clock: 0, evictions: 0 }
    }

    pub fn record(&mut self, attempt: Attempt, now: Instant) {
        self.expire(now);
        self.clock += 1;
        let key = Strong::of(&attempt.uid, attempt.base.clone(), attempt.operation);
        self.identities.entry(attempt.identity.clone()).or_default().insert(key.clone());
        let slot = self.slots.entry(key.clone()).or_default();
        self.ages.remove(&std::mem::replace(&mut slot.age, self.clock));
        self.ages.insert(self.clock, key);
        slot.records.push_back(Record { attempt, at: now, order: self.clock });
        if slot.records.len() > self.limits.rivals_max {
            slot.records.pop_front();
            self.evictions += 1;
        }
        while self.slots.len() > self.limits.keys_max {
            self.evictions += self.drop_oldest();
        }
    }

    /// Claims the record that caused `observed`, if it is known.
    pub fn claim(&mut self, observed: &Observed, now: Instant) -> Answer {
        self.expire(now);
        let strong = observed.base.version().map(|base| Strong::of(&observed.uid, base, observed.operation));
        let on_base = strong.as_ref().and_then(|key| self.slots.get(key));
        if let Some(at) = on_base.and_then(|slot| winner(slot, observed)) {
            return strong.map_or(Answer::Nothing, |key| self.take(&key, at));
        }
        let is_perhaps = on_base.is_some_and(|slot| only_incomparable(slot, observed).is_some());
        if let Base::Since(_) = observed.base
            && let Some((key, at)) = self.by_content(observed)
        {
            return self.take(&key, at);
        }
        if is_perhaps { Answer::Perhaps } else { Answer::Nothing }
    }

    /// The end of the grace: what was `Perhaps` is now the best answer.
    pub fn claim_last(&mut self, observed: &Observed, now: Instant) -> Answer {
        let answer = self.claim(observed, now);
        if answer != Answer::Perhaps {
            return answer;
        }
        let Some(base) = observed.base.version() else { return Answer::Nothing };
        let key = Strong::of(&observed.uid, base, observed.operation);
        match self.slots.get(&key).and_then(|slot| only_incomparable(slot, observed)) {
            Some(at) => self.take(&key, at),
            None => Answer::Nothing,
        }
    }

    pub fn keys(&self) -> usize {
        self.slots.len()
    }

    /// Records that left before anybody claimed them, for want of room.
    pub fn evictions(&self) -> u64 {
        self.evictions
    }

    /// The latest attempt on this object with this outcome, on any base.
    fn by_content(&self, observed: &Observed) -> Option<(Strong, usize)> {
        let keys = self.identities.get(&observed.identity)?.iter();
        let is_delete = |operation| operation == Operation::Delete;
        let candidates = keys.flat_map(|key| {
            let records = self.slots.get(key).into_iter().flat_map(|slot| slot.records.iter().enumerate());
            records.map(move |(at, record)| (record, key, at))
        });
        candidates
            .filter(|(record, ..)| {
                let attempt = &record.attempt;
                is_delete(attempt.operation) == is_delete(observed.operation)
                    && (attempt.uid == observed.uid || is_delete(observed.operation))
                    && fits(&attempt.content, observed) == Fit::Same
            })
            .max_by_key(|(record, ..)| record.order)
            .map(|(_, key, at)| (key.clone(), at))
    }

    fn take(&mut self, key: &Strong, at: usize) -> Answer {
        let Some(slot) = self.slots.get_mut(key) else { return Answer::Nothing };
        let Some(record) = slot.records.remove(at) else { return Answer::Nothing };
        // The base is used up: no other attempt on it can have won.
        self.forget(key, &record.attempt.identity);
        Answer::By(record.attempt.person)
    }

    fn expire(&mut self, now: Instant) {
        while let Some(slot) = self.ages.values().next().and_then(|key| self.slots.get(key)) {
            let newest = slot.records.back().map(|record| record.at);
            if newest.is_some_and(|at| now.saturating_duration_since(at) < self.limits.time_to_live) {
                return;
            }
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) -> u64 {
        let Some(key) = self.ages.values().next().cloned() else { return 0 };
        let identity = self.slots.get(&key).and_then(|slot| Some(slot.records.front()?.attempt.identity.clone()));
        let count = self.slots.get(&key).map_or(0, |slot| slot.records.len());
        match identity {
            Some(identity) => self.forget(&key, &identity),
            None => _ = self.ages.pop_first(),
        }
        count as u64
    }

    fn forget(&mut self, key: &Strong, identity: &Identity) {
        if let Some(slot) = self.slots.remove(key) {
            self.ages.remove(&slot.age);
        }
        if let Some(keys) = self.identities.get_mut(identity) {
            keys.remove(key);
            if keys.is_empty() {
                self.identities.remove(identity);
            }
        }
    }
}

impl Strong {
    fn of(uid: &str, base: Option<String>, operation: Operation) -> Self {
        Self { uid: uid.to_owned(), base, operation: operation as u8 }
    }
}

impl Base {
    /// The base to look for, as a record has it.
    #[allow(clippy::option_option, reason = "no base to look for, against the base of a creation")]
    fn version(&self) -> Option<Option<String>> {
        match self {
            Self::None => Some(None),
            Self::Exact(version) => Some(Some(version.clone())),
            Self::Since(version) => version.clone().map(Some),
        }
    }
}

#[derive(PartialEq, Eq)]
enum Fit {
    Same,
    Different,
    /// Another version of the API: the same state may look different.
    Incomparable,
}

fn fits(content: &Content, observed: &Observed) -> Fit {
    match content {
        Content::Nothing => Fit::Same,
        Content::Replicas(replicas) if observed.replicas == Some(*replicas) => Fit::Same,
        Content::Object { hash, .. } if *hash == observed.hash => Fit::Same,
        Content::Object { version, .. } if *version != observed.version => Fit::Incomparable,
        Content::Replicas(_) | Content::Object { .. } => Fit::Different,
    }
}

/// Of several equal attempts the first won. Of several deletions the last
/// did: the earlier ones were refused, or the object would have been gone.
fn winner(slot: &Slot, observed: &Observed) -> Option<usize> {
    let mut same = (0..slot.records.len()).filter(|at| fits(&slot.records[*at].attempt.content, observed) == Fit::Same);
    if observed.operation == Operation::Delete { same.next_back() } else { same.next() }
}

fn only_incomparable(slot: &Slot, observed: &Observed) -> Option<usize> {
    let fit = |at: &usize| fits(&slot.records[*at].attempt.content, observed) == Fit::Incomparable;
    let mut candidates = (0..slot.records.len()).filter(fit);
    candidates.next().filter(|_| candidates.next().is_none())
}
