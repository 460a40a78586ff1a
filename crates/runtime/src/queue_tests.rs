//! The queue, by cases and against a model.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::Kind;

fn key(name: u8) -> ObjectKey {
    Kind::new("v1", "Thing", "things").key(None, &name.to_string())
}

fn at(offset: u64) -> Position {
    Some(ResourceVersion::from_raw(ResourceVersion::line_start(1_763_240_000).raw() + offset))
}

fn trigger(priority: Priority, owed: Option<Position>, cause: Cause) -> Trigger {
    Trigger { priority, owed, cause }
}

const SAME: Cause = Cause::State { generation: 1 };

fn taken(queue: &mut Queue, now: Millis) -> Option<(ObjectKey, u32)> {
    queue.take(now).map(|taken| (taken.key, taken.failures))
}

#[test]
fn a_live_change_overtakes_the_list_and_a_run_is_never_doubled() {
    let mut queue = Queue::default();
    for name in [1, 2, 3] {
        queue.add(&key(name), trigger(Priority::Low, Some(None), SAME), 0);
    }
    queue.add(&key(3), trigger(Priority::High, Some(at(1)), SAME), 0);
    assert_eq!(taken(&mut queue, 0), Some((key(3), 0)));
    queue.add(&key(3), trigger(Priority::High, Some(at(2)), SAME), 0);
    assert_eq!(taken(&mut queue, 0), Some((key(1), 0)));
    assert_eq!(taken(&mut queue, 0), Some((key(2), 0)));
    assert_eq!(taken(&mut queue, 0), None, "3 runs, and runs again only afterwards");
    for name in [1, 2, 3] {
        queue.done(&key(name), Done::Success, 0);
    }
    assert_eq!(queue.owed_without([].iter()), Some(at(2)));
    assert_eq!(taken(&mut queue, 0), Some((key(3), 0)));
    queue.done(&key(3), Done::Success, 0);
    assert_eq!((queue.owed_without([].iter()), queue.counts()), (None, Counts::default()));
}

#[test]
fn a_backoff_holds_the_key_and_no_worker() {
    let mut queue = Queue::default();
    queue.add(&key(1), trigger(Priority::High, Some(at(1)), SAME), 0);
    queue.take(0);
    queue.done(&key(1), Done::Retry { due: 500 }, 0);
    queue.add(&key(1), trigger(Priority::High, Some(at(5)), SAME), 1);
    assert_eq!((taken(&mut queue, 499), queue.next_due()), (None, Some(500)));
    assert_eq!(queue.owed_without([].iter()), Some(at(1)));
    assert_eq!(queue.owed_without([key(1)].iter()), None, "a record would cover it");
    assert_eq!(taken(&mut queue, 500), Some((key(1), 1)));
    queue.done(&key(1), Done::Retry { due: 1500 }, 500);
    queue.add(&key(1), trigger(Priority::High, None, Cause::State { generation: 2 }), 501);
    assert_eq!(taken(&mut queue, 501), Some((key(1), 0)), "a new generation does not wait, and begins anew");
    queue.done(&key(1), Done::Again { due: 9000 }, 502);
    queue.add(&key(1), trigger(Priority::Low, None, SAME), 503);
    assert_eq!(taken(&mut queue, 503), Some((key(1), 0)), "a change does not wait for a timer");
}

#[test]
fn a_parked_key_waits_for_its_release() {
    let mut queue = Queue::default();
    queue.add(&key(1), trigger(Priority::High, Some(at(1)), SAME), 0);
    queue.take(0);
    queue.done(&key(1), Done::Park, 0);
    queue.recorded(&key(1));
    queue.add(&key(1), trigger(Priority::High, Some(at(2)), Cause::Touch), 1);
    assert_eq!((taken(&mut queue, u64::MAX), queue.owed_without([].iter())), (None, None));
    queue.add(&key(1), trigger(Priority::High, Some(at(3)), Cause::State { generation: 2 }), 2);
    assert_eq!(taken(&mut queue, 3), Some((key(1), 0)));
    assert_eq!(queue.owed_without([].iter()), Some(at(3)));
}

#[test]
fn a_record_covers_only_a_key_that_is_where_it_says() {
    let owed = |queue: &mut Queue| {
        let without = queue.owed_without([key(1)].iter());
        queue.recorded(&key(1));
        (without, queue.owed_without([].iter()))
    };
    let mut queue = Queue::default();
    queue.add(&key(1), trigger(Priority::High, Some(at(1)), SAME), 0);
    queue.take(0);
    queue.done(&key(1), Done::Park, 0);
    assert_eq!(owed(&mut queue), (None, None));
    queue.add(&key(1), trigger(Priority::High, Some(at(2)), Cause::State { generation: 2 }), 0);
    assert_eq!(owed(&mut queue), (Some(at(2)), Some(at(2))), "the record says quarantined, and no longer so");
    queue.take(0);
    queue.add(&key(1), trigger(Priority::High, Some(at(3)), SAME), 0);
    queue.done(&key(1), Done::Success, 0);
    assert_eq!(owed(&mut queue), (Some(at(3)), Some(at(3))), "the record went with the success");
}

/// Its own status write comes back as an event of the generation it is in.
#[test]
fn a_new_or_released_object_that_is_parked_stays_so() {
    let mut queue = Queue::default();
    for cause in [Cause::Came { generation: 1 }, Cause::Renewed, Cause::Came { generation: 1 }] {
        queue.add(&key(1), trigger(Priority::High, Some(at(1)), cause), 0);
        assert_eq!(queue.take(0), Some(Taken { key: key(1), failures: 0, generation: 1 }), "{cause:?}");
        queue.done(&key(1), Done::Park, 0);
        queue.add(&key(1), trigger(Priority::High, Some(at(2)), SAME), 0);
        assert_eq!(taken(&mut queue, 0), None, "{cause:?}");
    }
}

#[test]
fn what_comes_during_a_failing_run_is_not_parked_with_it() {
    for (cause, expected) in [
        (SAME, None),
        (Cause::Touch, None),
        (Cause::State { generation: 2 }, Some((key(1), 0))),
        (Cause::Renewed, Some((key(1), 0))),
        (Cause::Came { generation: 1 }, Some((key(1), 0))),
        (Cause::Went, Some((key(1), 0))),
    ] {
        let mut queue = Queue::default();
        queue.add(&key(1), trigger(Priority::High, None, SAME), 0);
        queue.take(0);
        queue.add(&key(1), trigger(Priority::High, None, cause), 0);
        queue.done(&key(1), Done::Park, 0);
        assert_eq!(taken(&mut queue, 0), expected, "{cause:?}");
    }
}

/// What a queue promises, said as plainly as possible: sets, no lines.
#[derive(Default)]
struct Model {
    waiting: BTreeSet<u8>,
    /// With the generation of the run, and the causes that came meanwhile.
    running: BTreeMap<u8, Vec<Cause>>,
    /// The newest generation heard of, and that of the last run.
    seen: BTreeMap<u8, (i64, i64)>,
    delayed: BTreeMap<u8, (Millis, bool)>,
    parked: BTreeSet<u8>,
    /// Positions that are not covered, of waiting keys and of running ones.
    owed: BTreeMap<u8, BTreeSet<Position>>,
    owed_running: BTreeMap<u8, BTreeSet<Position>>,
}

impl Model {
    fn is_news(&self, name: u8, cause: Cause) -> bool {
        let (_, tried) = self.seen.get(&name).copied().unwrap_or_default();
        !matches!(cause, Cause::State { generation } if generation <= tried)
    }

    fn add(&mut self, name: u8, trigger: Trigger) {
        let is_news = self.is_news(name, trigger.cause);
        let seen = self.seen.entry(name).or_default();
        match trigger.cause {
            Cause::State { generation } => seen.0 = seen.0.max(generation),
            Cause::Came { generation } => *seen = (generation, 0),
            Cause::Went => *seen = (0, 0),
            Cause::Touch | Cause::Renewed => {}
        }
        if self.parked.contains(&name) && (!is_news || trigger.cause == Cause::Touch) {
            return;
        }
        self.owed.entry(name).or_default().extend(trigger.owed);
        match (self.running.get_mut(&name), self.delayed.get(&name)) {
            (Some(causes), _) => causes.push(trigger.cause),
            (_, Some((_, true))) if !is_news => {}
            _ => {
                self.parked.remove(&name);
                self.delayed.remove(&name);
                self.waiting.insert(name);
            }
        }
    }

    fn wake_due(&mut self, now: Millis) {
        let due: Vec<u8> = self.delayed.iter().filter(|(_, (due, _))| *due <= now).map(|(name, _)| *name).collect();
        for name in due {
            self.delayed.remove(&name);
            self.waiting.insert(name);
        }
    }

    fn take(&mut self, name: u8) {
        assert!(self.waiting.remove(&name), "{name} was not waiting");
        self.running.insert(name, Vec::new());
        let seen = self.seen.entry(name).or_default();
        seen.1 = seen.0;
        self.owed_running.insert(name, self.owed.remove(&name).unwrap_or_default());
    }

    fn done(&mut self, name: u8, done: Done) {
        let Some(causes) = self.running.remove(&name) else { return };
        let owed = self.owed_running.remove(&name).unwrap_or_default();
        let news: Vec<Cause> = causes.iter().copied().filter(|cause| self.is_news(name, *cause)).collect();
        let is_other = news.iter().any(|cause| *cause != Cause::Touch);
        match done {
            Done::Success | Done::Again { .. } if !causes.is_empty() => drop(self.waiting.insert(name)),
            Done::Retry { .. } if !news.is_empty() => drop(self.waiting.insert(name)),
            Done::Park if is_other => drop(self.waiting.insert(name)),
            Done::Success => drop(self.seen.remove(&name)),
            Done::Again { due } => drop(self.delayed.insert(name, (due, false))),
            Done::Retry { due } => drop(self.delayed.insert(name, (due, true))),
            Done::Park => drop(self.parked.insert(name)),
        }
        if matches!(done, Done::Retry { .. } | Done::Park) {
            self.owed.entry(name).or_default().extend(owed);
        }
    }

    /// A record says what became of the last run. It covers a key that waits
    /// for its time or its release, and nothing that has come since to another.
    fn record(&mut self, name: u8) {
        if self.delayed.contains_key(&name) || self.parked.contains(&name) {
            self.owed.remove(&name);
        }
    }

    fn oldest(&self) -> Option<Position> {
        self.owed.values().chain(self.owed_running.values()).flatten().min().copied()
    }
}

#[derive(Clone, Debug)]
enum Step {
    Add(u8, bool, Option<u64>, i64),
    Take,
    TakeThis(u8),
    Done(u8, u8, u64),
    Record(u8),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..4u8, any::<bool>(), prop::option::of(0..9u64), 0..7i64).prop_map(|(k, h, o, w)| Step::Add(k, h, o, w)),
        Just(Step::Take),
        (0..4u8).prop_map(Step::TakeThis),
        (0..4u8, 0..4u8, 0..50u64).prop_map(|(k, d, t)| Step::Done(k, d, t)),
        (0..4u8).prop_map(Step::Record),
        (0..30u64).prop_map(Step::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn it_does_what_the_model_says(steps in prop::collection::vec(step(), 0..60)) {
        let (mut queue, mut model, mut now) = (Queue::default(), Model::default(), 0);
        for step in steps {
            match step {
                Step::Add(name, high, owed, wake) => {
                    let priority = if high { Priority::High } else { Priority::Low };
                    let cause = match wake {
                        0 => Cause::Touch,
                        1 => Cause::Went,
                        2 => Cause::Renewed,
                        3 => Cause::Came { generation: 2 },
                        generation => Cause::State { generation: generation - 2 },
                    };
                    let owed = owed.map(|offset| if offset == 0 { None } else { at(offset) });
                    queue.add(&key(name), trigger(priority, owed, cause), now);
                    model.add(name, trigger(priority, owed, cause));
                }
                Step::Take => {
                    model.wake_due(now);
                    match queue.take(now) {
                        Some(Taken { key, .. }) => model.take(key.name.parse().unwrap()),
                        None => prop_assert!(model.waiting.is_empty(), "{:?} wait", model.waiting),
                    }
                }
                Step::TakeThis(name) => {
                    prop_assert_eq!(queue.is_running(&key(name)), model.running.contains_key(&name));
                    let taken = queue.take_this(&key(name)).map(|taken| taken.key);
                    prop_assert_eq!(taken, model.waiting.contains(&name).then(|| key(name)));
                    if model.waiting.contains(&name) {
                        model.take(name);
                    }
                }
                Step::Done(name, done, delay) => {
                    let due = now + delay;
                    let done = [Done::Success, Done::Again { due }, Done::Retry { due }, Done::Park][usize::from(done)];
                    queue.done(&key(name), done, now);
                    model.done(name, done);
                }
                Step::Record(name) => {
                    queue.recorded(&key(name));
                    model.record(name);
                }
                Step::Wait(time) => now += time,
            }
            prop_assert_eq!(queue.owed_without([].iter()), model.oldest());
            let counts = queue.counts();
            prop_assert_eq!(counts.running, model.running.len());
            prop_assert_eq!(counts.parked, model.parked.len());
            prop_assert_eq!(counts.ready + counts.delayed, model.waiting.len() + model.delayed.len());
        }
    }
}
