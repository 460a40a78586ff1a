//! The batch machine under random people, objects, sizes, pauses, slow pushes
//! and failed ones, against a model that remembers everything. Prints its seed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tidegate_model::mirror::ResourceKey;
use tokio::time::Instant;

use super::handle::DestinationId;
use super::limits::Limits;
use super::queue::{Item, Pending, Queue, Ticket, Wanted};
use super::window::{Due, Window};
use crate::change::{Author, Change, State, Version, What};

const SEEDS: u64 = 40;
const STEPS: usize = 400;
const PEOPLE: [&str; 3] = ["alice", "bob", "carol"];
/// Few, so that people meet; many, so that a batch fills.
const OBJECTS: [usize; 3] = [3, 30, 1_000];
/// The longest pause and the largest object of a run.
const PAUSES_MS: [u64; 3] = [20, 700, 1_500];
const SIZES: [usize; 2] = [200, 30_000];

/// One submission, as the model remembers it.
#[derive(Clone, PartialEq, Debug)]
struct Told {
    ticket: u64,
    name: usize,
    who: &'static str,
    content: String,
    at: Instant,
    /// What comes during a push waits from the start of the push.
    from: Instant,
}

struct World {
    random: StdRng,
    now: Instant,
    limits: Limits,
    objects: usize,
    pause_ms: u64,
    size: usize,
    queue: Queue,
    window: Window,
    /// Everything that is not in the remote.
    model: Vec<Told>,
    /// The remote.
    git: BTreeMap<usize, String>,
    told: u64,
    newest: HashMap<usize, String>,
    /// Why a batch was due.
    causes: BTreeSet<&'static str>,
}

/// Both halves of the machine and nothing of its shell: what `Shared` does
/// under its lock.
impl World {
    fn new(seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let objects = OBJECTS[random.random_range(0..OBJECTS.len())];
        let pause_ms = PAUSES_MS[random.random_range(0..PAUSES_MS.len())];
        let size = SIZES[random.random_range(0..SIZES.len())];
        let limits = Limits::default();
        let (queue, window, now) = (Queue::new(limits.pending_bytes_max), Window::default(), Instant::now());
        let (model, git, newest, causes) = Default::default();
        Self { random, now, limits, objects, pause_ms, size, queue, window, model, git, told: 0, newest, causes }
    }

    fn submit(&mut self, pushing_since: Option<Instant>) {
        let name = self.random.random_range(0..self.objects);
        let who = PEOPLE[self.random.random_range(0..PEOPLE.len())];
        self.told += 1;
        let size = self.random.random_range(1..self.size);
        let content = format!("{}:{}", self.told, "x".repeat(size));
        let version = Version { uid: "u".into(), resource_version: "1".into(), field_manager: None };
        let what = What::Put(State { version, yaml: content.clone().into() });
        let change = Change { key: key(name), what, author: author(who), seen_at: self.now };
        let ticket = self.queue.change(DestinationId("d".into()), change);
        self.window.note(self.now);
        assert_eq!(ticket, Ticket(self.told), "tickets follow each other");
        self.newest.insert(name, content.clone());
        let from = pushing_since.unwrap_or(self.now);
        self.model.push(Told { ticket: self.told, name, who, content, at: self.now, from });
    }

    /// What must wait: of each object, the last of each run of one person.
    fn expected(&self) -> Vec<&Told> {
        let mut next = HashMap::new();
        let is_last_of_run = |told: &&Told| next.insert(told.name, told.who) != Some(told.who);
        let mut expected: Vec<_> = self.model.iter().rev().filter(is_last_of_run).collect();
        expected.reverse();
        expected
    }

    fn check_waiting(&self) {
        let expected = self.expected();
        let (batch, last) = self.queue.batch();
        let waiting: Vec<_> = batch.iter().map(read).collect();
        let wanted: Vec<_> =
            expected.iter().map(|told| (told.name, told.who.to_owned(), told.content.clone())).collect();
        assert!(waiting == wanted, "what waits is not what was told: {} and {}", waiting.len(), wanted.len());
        assert_eq!(last, Ticket(self.told));
        let bytes: usize = expected.iter().map(|told| told.content.len()).sum();
        assert_eq!((self.queue.files(), self.queue.bytes()), (expected.len(), bytes));
    }

    /// When the oldest and the newest thing that waits say that it is time.
    fn expected_due(&mut self) -> Due {
        let (Some(first), Some(last)) = (self.model.first(), self.model.last()) else { return Due::Never };
        let (oldest, silence) = (first.from + Duration::from_secs(20), last.at + Duration::from_secs(1));
        let is_so = [
            ("files", self.queue.files() >= 200),
            ("bytes", self.queue.bytes() >= 1 << 20),
            ("wait", oldest <= self.now),
            ("silence", silence <= self.now),
        ];
        let causes: Vec<_> = is_so.into_iter().filter(|(_, is_so)| *is_so).map(|(cause, _)| cause).collect();
        if let [cause] = causes.as_slice() {
            self.causes.insert(cause);
        }
        if causes.is_empty() { Due::At(oldest.min(silence)) } else { Due::Now }
    }

    fn due(&self) -> Due {
        self.window.due(self.now, self.queue.files(), self.queue.bytes(), &self.limits)
    }

    /// A push, during which people go on, and which may fail.
    fn push(&mut self) {
        let started = self.now;
        let (batch, ticket) = self.queue.batch();
        for _ in 0..self.random.random_range(0..4) {
            self.now += Duration::from_millis(self.random.random_range(0..3_000));
            self.submit(Some(started));
        }
        if self.random.random_bool(0.2) {
            return; // Nothing is forgotten, and it stays due or becomes so again.
        }
        for pending in &batch {
            let (name, _, content) = read(pending);
            self.git.insert(name, content);
        }
        self.queue.acknowledge(ticket);
        self.window.restart(started, self.queue.is_empty());
        self.model.retain(|told| Ticket(told.ticket) > ticket);
    }

    fn step(&mut self) {
        match self.due() {
            Due::Now => self.push(),
            Due::At(at) if self.random.random_bool(0.01) => self.now = at,
            _ => {
                self.now += Duration::from_millis(self.random.random_range(0..self.pause_ms));
                self.submit(None);
            }
        }
        self.check_waiting();
        let expected = self.expected_due();
        assert_eq!(self.due(), expected);
    }
}

fn key(name: usize) -> ResourceKey {
    ResourceKey::new("", "v1", "configmaps", Some("n"), &name.to_string())
}

fn author(who: &str) -> Author {
    Author::User { name: who.into(), email: "".into() }
}

fn read(pending: &Pending) -> (usize, String, String) {
    match &pending.item {
        Item::Change { key, wanted: Wanted::State(state), author: Author::User { name: who, .. }, .. } => {
            let content = String::from_utf8(state.yaml.to_vec()).unwrap();
            (key.name.parse().unwrap(), who.to_string(), content)
        }
        other => panic!("nobody told {other:?}"),
    }
}

#[test]
fn a_batch_is_what_people_did_when_it_is_time() {
    let mut causes = BTreeSet::new();
    for seed in 0..SEEDS {
        println!("seed {seed}");
        let mut world = World::new(seed);
        (0..STEPS).for_each(|_| world.step());
        while !world.queue.is_empty() {
            world.push();
        }
        let newest: BTreeMap<_, _> = world.newest.into_iter().collect();
        assert!(world.git == newest, "Git is not what was told last");
        causes.extend(world.causes);
    }
    assert_eq!(causes.into_iter().collect::<Vec<_>>(), ["bytes", "files", "silence", "wait"], "each alone, some time");
}
