//! Changes whose author may still be on the way.
//!
//! Invariant: changes of one object leave in order; no object waits for another.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::{Duration, Instant};

use super::attempt::{Attempt, Identity};
use super::correlator::{Answer, Correlator, Limits, Observed};
use super::person::Person;

/// A change with its answer; `by` is `None` where nobody is known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attributed<T> {
    pub change: T,
    pub by: Option<Person>,
}

#[derive(Debug)]
struct Pending<T> {
    observed: Observed,
    change: T,
    until: Instant,
}

#[derive(Debug)]
pub struct Waiting<T> {
    correlator: Correlator,
    grace: Duration,
    objects: HashMap<Identity, VecDeque<Pending<T>>>,
    /// When the first change of an object stops waiting.
    deadlines: BTreeSet<(Instant, u64)>,
    /// A deadline's object; numbers keep equal instants apart.
    numbers: HashMap<u64, Identity>,
    next: u64,
}

impl<T> Waiting<T> {
    pub fn new(limits: Limits, grace: Duration) -> Self {
        let (objects, deadlines, numbers) = Default::default();
        Self { correlator: Correlator::new(limits), grace, objects, deadlines, numbers, next: 0 }
    }

    /// An admission; returns the changes that waited for it.
    pub fn admitted(&mut self, attempt: Attempt, now: Instant) -> Vec<Attributed<T>> {
        let identity = attempt.identity.clone();
        self.correlator.record(attempt, now);
        self.release(&identity, now)
    }

    /// An event of the watch; returns what can be committed now.
    pub fn observed(&mut self, observed: Observed, change: T, now: Instant) -> Vec<Attributed<T>> {
        let identity = observed.identity.clone();
        let until = now + self.grace;
        self.objects.entry(identity.clone()).or_default().push_back(Pending { observed, change, until });
        self.next += 1;
        self.deadlines.insert((until, self.next));
        self.numbers.insert(self.next, identity.clone());
        self.release(&identity, now)
    }

    /// Gives up waiting where the grace is over.
    pub fn tick(&mut self, now: Instant) -> Vec<Attributed<T>> {
        let mut released = Vec::new();
        while let Some((_, number)) = self.deadlines.first().copied().filter(|(until, _)| *until <= now) {
            self.deadlines.pop_first();
            if let Some(identity) = self.numbers.remove(&number) {
                released.extend(self.release(&identity, now));
            }
        }
        released
    }

    /// When [`Self::tick`] has something to do.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(until, _)| *until)
    }

    pub fn correlator(&self) -> &Correlator {
        &self.correlator
    }

    fn release(&mut self, identity: &Identity, now: Instant) -> Vec<Attributed<T>> {
        let mut released = Vec::new();
        let Some(queue) = self.objects.get_mut(identity) else { return released };
        while let Some(first) = queue.front() {
            let is_over = first.until <= now;
            let answer = match is_over {
                true => self.correlator.claim_last(&first.observed, now),
                false => self.correlator.claim(&first.observed, now),
            };
            let by = match answer {
                Answer::By(person) => Some(person),
                _ if is_over => None,
                _ => break,
            };
            if let Some(Pending { change, .. }) = queue.pop_front() {
                released.push(Attributed { change, by });
            }
        }
        if queue.is_empty() {
            self.objects.remove(identity);
        }
        released
    }
}
