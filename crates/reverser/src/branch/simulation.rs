//! The batch machine under random people, objects, sizes, pauses, slow pushes
//! and failed ones, against a model that remembers everything. Prints its seed.

use std::collections::{BTreeMap, HashMap};
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

const SEEDS: u64 = 100;
const STEPS: usize = 400;
const PEOPLE: [&str; 3] = ["alice", "bob", "carol"];
/// Few, so that people meet; many, so that a batch fills.
const OBJECTS: [usize; 3] = [3, 30, 1_000];

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
    queue: Queue,
    window: Window,
    /// Everything that is not in the remote.
    model: Vec<Told>,
    /// The remote.
    git: BTreeMap<usize, String>,
    told: u64,
    newest: HashMap<usize, String>,
}

/// Both halves of the machine and nothing of its shell: what `Shared` does
/// under its lock.
impl World {
    fn new(seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let objects = OBJECTS[random.random_range(0..OBJECTS.len())];
        let limits = Limits::default();
        let (queue, window, now) = (Queue::new(limits.pending_bytes_max), Window::default(), Instant::now());
        let (model, git, newest) = Default::default();
        Self { random, now, limits, objects, queue, window, model, git, told: 0, newest }
    }

    fn submit(&mut self, pushing_since: Option<Instant>) {
        let name = self.random.random_range(0..self.objects);
        let who = PEOPLE[self.random.random_range(0..PEOPLE.len())];
        self.told += 1;
        let size = if self.random.random_bool(0.02) { 300_000 } else { self.random.random_range(1..2_000) };
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
        let is_last_of_run = |(at, told): &(usize, &Told)| {
            let next = self.model[at + 1..].iter().find(|next| next.name == told.name);
            next.is_none_or(|next| next.who != told.who)
        };
        self.model.iter().enumerate().filter(is_last_of_run).map(|(_, told)| told).collect()
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
    fn expected_due(&self) -> Due {
        let (Some(first), Some(last)) = (self.model.first(), self.model.last()) else { return Due::Never };
        let is_full = self.queue.files() >= 200 || self.queue.bytes() >= 1 << 20;
        let at = (first.from + Duration::from_secs(20)).min(last.at + Duration::from_secs(1));
        if is_full || at <= self.now { Due::Now } else { Due::At(at) }
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
            Due::At(at) if self.random.random_bool(0.3) => self.now = at,
            _ => {
                self.now += Duration::from_millis(self.random.random_range(0..1_500));
                self.submit(None);
            }
        }
        self.check_waiting();
        assert_eq!(self.due(), self.expected_due());
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
    for seed in 0..SEEDS {
        println!("seed {seed}");
        let mut world = World::new(seed);
        (0..STEPS).for_each(|_| world.step());
        while !world.queue.is_empty() {
            world.push();
        }
        let newest: BTreeMap<_, _> = world.newest.into_iter().collect();
        assert!(world.git == newest, "Git is not what was told last");
    }
}
