//! A cluster with several people who write at once, whose two streams arrive
//! shuffled against each other, with losses. Prints its seed.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::attempt::{Attempt, Content, Identity, Operation};
use super::correlator::{Base, Limits, Observed};
use super::person::Person;
use super::waiting::Waiting;

const PEOPLE: [&str; 5] = ["alice", "bob", "carol", "dave", "erin"];
const OBJECTS: usize = 12;
const STEPS: usize = 400;
const GRACE: Duration = Duration::from_millis(200);

/// One change that the store accepted: who, and whether admission was heard.
#[derive(Clone, Debug)]
struct Truth {
    object: usize,
    number: usize,
    by: &'static str,
    heard: bool,
}

struct World {
    random: StdRng,
    now: Instant,
    /// Version, value and incarnation of each object that exists.
    objects: HashMap<usize, (u64, u64, u64)>,
    version: u64,
    incarnation: u64,
    truths: Vec<Truth>,
    /// What is on its way to the operator, by when it arrives.
    admissions: Vec<(Instant, Attempt)>,
    events: Vec<(Instant, Observed, usize)>,
    /// Order holds per object on one watch.
    last_event: HashMap<usize, Instant>,
}

fn identity(object: usize) -> Identity {
    Identity {
        group: String::new(),
        resource: "configmaps".into(),
        namespace: Some("a".into()),
        name: format!("o{object}"),
    }
}

impl World {
    fn new(seed: u64) -> Self {
        let (objects, truths, admissions, events, last_event) = Default::default();
        let (random, now) = (StdRng::seed_from_u64(seed), Instant::now());
        Self { random, now, objects, version: 100, incarnation: 0, truths, admissions, events, last_event }
    }

    fn attempt(
        &mut self,
        object: usize,
        uid: u64,
        operation: Operation,
        base: Option<u64>,
        value: u64,
        who: &str,
    ) -> Attempt {
        let content = match operation {
            Operation::Delete => Content::Nothing,
            _ => Content::Object { hash: value, version: "v1".into() },
        };
        let person = Person { name: who.into(), email: format!("{who}@x").into() };
        let base = base.map(|base| base.to_string());
        Attempt { identity: identity(object), uid: uid.to_string(), base, operation, content, person }
    }

    fn hear(&mut self, attempt: Attempt) {
        let delay = Duration::from_millis(self.random.random_range(0..150));
        self.admissions.push((self.now + delay, attempt));
    }

    /// One write that wins, with a refused rival now and then.
    fn step(&mut self) {
        self.now += Duration::from_millis(self.random.random_range(0..40));
        let object = self.random.random_range(0..OBJECTS);
        let by = PEOPLE[self.random.random_range(0..PEOPLE.len())];
        let (operation, base, uid, value) = self.choose(object);
        if operation == Operation::Update && self.random.random_bool(0.3) {
            // Refused later: a conflict, or another plugin. Other content on the same base.
            let rival = PEOPLE[self.random.random_range(0..PEOPLE.len())];
            let refused = self.attempt(object, uid, operation, base, value + 1_000, rival);
            self.hear(refused);
        }
        let heard = self.random.random_bool(0.97);
        if heard {
            let attempt = self.attempt(object, uid, operation, base, value, by);
            self.hear(attempt);
        }
        self.persist(object, operation, base, uid, value, by, heard);
    }

    fn choose(&mut self, object: usize) -> (Operation, Option<u64>, u64, u64) {
        match self.objects.get(&object).copied() {
            None => {
                self.incarnation += 1;
                (Operation::Create, None, self.incarnation, self.random.random_range(0..3))
            }
            Some((version, _, uid)) if self.random.random_bool(0.1) => (Operation::Delete, Some(version), uid, 0),
            // Three values: they flip back and forth all the time.
            Some((version, value, uid)) => {
                (Operation::Update, Some(version), uid, (value + self.random.random_range(1..3)) % 3)
            }
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn persist(
        &mut self,
        object: usize,
        operation: Operation,
        base: Option<u64>,
        uid: u64,
        value: u64,
        by: &'static str,
        heard: bool,
    ) {
        self.version += self.random.random_range(1..4);
        match operation {
            Operation::Delete => _ = self.objects.remove(&object),
            _ => _ = self.objects.insert(object, (self.version, value, uid)),
        }
        let number = self.truths.len();
        self.truths.push(Truth { object, number, by, heard });
        let base = base.map_or(Base::None, |base| Base::Exact(base.to_string()));
        let observed = Observed {
            identity: identity(object),
            version: "v1".into(),
            uid: uid.to_string(),
            base,
            operation,
            hash: value,
            replicas: None,
        };
        let earliest = self.last_event.get(&object).copied().unwrap_or(self.now);
        let at = earliest.max(self.now + Duration::from_millis(self.random.random_range(0..150)));
        self.last_event.insert(object, at);
        self.events.push((at, observed, number));
    }
}

enum Arrival {
    Admission(Attempt),
    Event(Observed, usize),
}

fn run(seed: u64) -> (Vec<Truth>, Vec<(usize, Option<String>)>) {
    let mut world = World::new(seed);
    (0..STEPS).for_each(|_| world.step());
    let mut arrivals: Vec<(Instant, Arrival)> = Vec::new();
    arrivals.extend(world.admissions.drain(..).map(|(at, attempt)| (at, Arrival::Admission(attempt))));
    arrivals.extend(world.events.drain(..).map(|(at, observed, number)| (at, Arrival::Event(observed, number))));
    arrivals.sort_by_key(|(at, _)| *at);
    let mut waiting = Waiting::new(Limits::default(), GRACE);
    let mut out = Vec::new();
    let mut take = |released: Vec<super::Attributed<usize>>| {
        out.extend(released.into_iter().map(|done| (done.change, done.by.map(|person| person.name.to_string()))));
    };
    for (at, arrival) in arrivals {
        while let Some(until) = waiting.deadline().filter(|until| *until <= at) {
            take(waiting.tick(until));
        }
        match arrival {
            Arrival::Admission(attempt) => take(waiting.admitted(attempt, at)),
            Arrival::Event(observed, number) => take(waiting.observed(observed, number, at)),
        }
    }
    while let Some(until) = waiting.deadline() {
        take(waiting.tick(until));
    }
    (world.truths, out)
}

#[test]
fn every_heard_author_is_right_and_nobody_is_invented() {
    for seed in 0..200 {
        let (truths, out) = run(seed);
        assert_eq!(out.len(), truths.len(), "seed {seed}: every change leaves once");
        let mut last: HashMap<usize, usize> = HashMap::new();
        for (number, by) in &out {
            let truth = &truths[*number];
            let expected = truth.heard.then(|| truth.by.to_owned());
            assert_eq!(*by, expected, "seed {seed}, change {truth:?}");
            let before = last.insert(truth.object, truth.number);
            assert!(before.is_none_or(|before| before < truth.number), "seed {seed}: {truth:?} overtook {before:?}");
        }
    }
}

fn record(
    waiting: &mut Waiting<u32>,
    base: Option<&str>,
    content: Content,
    operation: Operation,
    who: &str,
    now: Instant,
) {
    let person = Person { name: who.into(), email: "e".into() };
    let base = base.map(Into::into);
    let attempt = Attempt { identity: identity(1), uid: "u".into(), base, operation, content, person };
    assert!(waiting.admitted(attempt, now).is_empty());
}

fn observe(
    waiting: &mut Waiting<u32>,
    base: Base,
    operation: Operation,
    hash: u64,
    now: Instant,
) -> Option<Option<String>> {
    let observed = Observed {
        identity: identity(1),
        version: "v1".into(),
        uid: "u".into(),
        base,
        operation,
        hash,
        replicas: Some(3),
    };
    let mut released = waiting.observed(observed, 0, now);
    released.pop().map(|done| done.by.map(|person| person.name.to_string()))
}

fn of(hash: u64, version: &str) -> Content {
    Content::Object { hash, version: version.into() }
}

#[test]
fn rivals_are_told_apart_by_content() {
    let (mut waiting, now) = (Waiting::new(Limits::default(), GRACE), Instant::now());
    record(&mut waiting, Some("5"), of(1, "v1"), Operation::Update, "alice", now);
    record(&mut waiting, Some("5"), of(2, "v1"), Operation::Update, "bob", now);
    assert_eq!(observe(&mut waiting, Base::Exact("5".into()), Operation::Update, 2, now), Some(Some("bob".into())));
    // Claimed once, and the refused rival with it.
    assert_eq!(observe(&mut waiting, Base::Exact("5".into()), Operation::Update, 1, now), None);
}

#[test]
fn a_scale_is_known_by_its_replicas() {
    let (mut waiting, now) = (Waiting::new(Limits::default(), GRACE), Instant::now());
    record(&mut waiting, Some("5"), Content::Replicas(2), Operation::Update, "alice", now);
    record(&mut waiting, Some("5"), Content::Replicas(3), Operation::Update, "bob", now);
    assert_eq!(observe(&mut waiting, Base::Exact("5".into()), Operation::Update, 9, now), Some(Some("bob".into())));
}

#[test]
fn another_version_is_believed_when_nobody_better_comes() {
    let (mut waiting, now) = (Waiting::new(Limits::default(), GRACE), Instant::now());
    record(&mut waiting, Some("5"), of(1, "v1beta1"), Operation::Update, "alice", now);
    assert_eq!(observe(&mut waiting, Base::Exact("5".into()), Operation::Update, 9, now), None);
    let released = waiting.tick(now + GRACE);
    assert_eq!(released[0].by.as_ref().unwrap().name.as_ref(), "alice");
}

#[test]
fn skipped_events_are_found_by_content() {
    let (mut waiting, now) = (Waiting::new(Limits::default(), GRACE), Instant::now());
    record(&mut waiting, Some("5"), of(1, "v1"), Operation::Update, "alice", now);
    record(&mut waiting, Some("6"), of(2, "v1"), Operation::Update, "bob", now);
    assert_eq!(
        observe(&mut waiting, Base::Since(Some("4".into())), Operation::Update, 2, now),
        Some(Some("bob".into()))
    );
    // With the base known, an old attempt of the same content is nobody's proof.
    assert_eq!(observe(&mut waiting, Base::Exact("9".into()), Operation::Update, 1, now), None);
}

#[test]
fn records_have_a_time_and_a_number() {
    let limits = Limits { keys_max: 3, ..Limits::default() };
    let (mut waiting, now) = (Waiting::<u32>::new(limits, GRACE), Instant::now());
    for base in 0..5 {
        record(&mut waiting, Some(&base.to_string()), of(base, "v1"), Operation::Update, "alice", now);
    }
    assert_eq!((waiting.correlator().keys(), waiting.correlator().evictions()), (3, 2));
    let later = now + Limits::default().time_to_live;
    assert_eq!(observe(&mut waiting, Base::Exact("4".into()), Operation::Update, 4, later), None);
    assert_eq!((waiting.correlator().keys(), waiting.correlator().evictions()), (0, 2));
}
