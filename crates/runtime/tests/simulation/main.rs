//! Managers and a world that fails them, by seed: slow and cut calls, streams
//! that break off and repeat, an expired window, crashes at any `.await`, two
//! managers of which one freezes. In the end every object's status speaks of
//! its last generation and of its buddy's, which a durable index knows, and
//! nothing is left of what was deleted. What is quarantined shows it, also
//! after others have taken it away, and what is not does not.
//!
//! `SEED=17 cargo test -p tidegate-runtime --test simulation` runs one, as it
//! ran before: time, chance and order come from the seed alone. `SEEDS=50000`
//! runs more of them.

#![allow(clippy::unwrap_used)]

mod backoff;
mod buddies;
mod world;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use buddies::{Buddies, buddy_of};
use rand::Rng;
use serde_json::json;
use tidegate_model::ObjectKey;
use tidegate_runtime::{
    Backoff, Controller, ControllerOptions, Manager, ManagerOptions, Next, Plane, ReconcileError, Reconciler,
};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use world::{Way, World, kind};

const SEEDS: u64 = 2_000;
const NAMES: u8 = 6;
const CONTROLLER: &str = "things";

#[test]
fn nothing_is_lost_whatever_happens() {
    let number = |name| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let seeds = match number("SEED") {
        Some(only) => only..only + 1,
        None => 0..number("SEEDS").unwrap_or(SEEDS),
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let seeds = seeds.clone();
            scope.spawn(move || seeds.filter(|seed| seed % threads == thread).for_each(|seed| drop(run(seed))));
        }
    });
}

#[test]
fn a_seed_tells_the_same_story_again() {
    for seed in SEEDS..SEEDS + 200 {
        assert_eq!(run(seed), run(seed), "seed {seed}");
    }
}

fn run(seed: u64) -> String {
    let caught = std::panic::catch_unwind(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(simulate(seed))
    });
    match caught {
        Ok(story) => story,
        Err(panic) => {
            eprintln!("the seed was {seed}");
            std::panic::resume_unwind(panic);
        }
    }
}

thread_local! {
    static STARTED: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Goes with the paused clock of the seed that this thread runs.
fn wall_ms() -> u64 {
    let elapsed = STARTED.get().map(|started| started.elapsed()).unwrap();
    1_763_240_000_000 + u64::try_from(elapsed.as_millis()).unwrap()
}

/// Returns how it ended.
async fn simulate(seed: u64) -> String {
    STARTED.set(Some(Instant::now()));
    let world = Arc::new(Mutex::new(World::new(seed)));
    let mut managers = [Living::new(&world, "a"), Living::new(&world, "b")];
    for _ in 0..60 {
        let (what, name, pause) = {
            let mut world = world.lock().unwrap();
            // Often so soon that what came before is still being saved.
            let pause_max = if world.rng.random_bool(0.5) { 100 } else { 1_500 };
            (world.rng.random_range(0..100), world.rng.random_range(0..NAMES), world.rng.random_range(0..pause_max))
        };
        let key = kind().key(Some("ns"), &format!("t{name}"));
        match what {
            0..40 => world.lock().unwrap().push(&key),
            40..55 => world.lock().unwrap().delete(&key),
            55..60 => world.lock().unwrap().expire(),
            60..80 => managers[what % 2].crash_and_start(),
            80..84 => managers[what % 2].stop().await,
            84..88 => {
                let until = Instant::now() + Duration::from_secs(20);
                world.lock().unwrap().frozen.insert(["a", "b"][what % 2].into(), until);
            }
            88..90 => world.lock().unwrap().release_all(CONTROLLER),
            90..93 => world.lock().unwrap().write_status(&key, |status| status["conditions"] = json!([])),
            _ => {}
        }
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }
    settle(seed, &world, &mut managers[0]).await;
    let mut world = world.lock().unwrap();
    // All but the identity of the index, which is drawn anew on purpose.
    let rows: Vec<String> = world.rows().into_iter().filter(|row| !row.starts_with("index ")).collect();
    // Chance has been asked as often, and everything took as long.
    format!("{} {} {rows:#?}", world.rng.random::<u64>(), wall_ms())
}

/// Without further faults, one manager brings everything in line.
async fn settle(seed: u64, world: &Arc<Mutex<World>>, manager: &mut Living) {
    world.lock().unwrap().faults = false;
    manager.crash_and_start();
    for _ in 0..600 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let mut world = world.lock().unwrap();
        // Whatever is quarantined comes to show it, and is released then. A
        // new generation needs no release.
        let quarantined = world.quarantined();
        let shows = |(key, thing): (&ObjectKey, &world::Thing)| {
            let tried = quarantined.get(&format!("unfinished/ns {}", key.name));
            tried.is_none_or(|tried| thing.is_stalled() && (*tried == 0 || *tried >= thing.generation))
        };
        if !quarantined.is_empty() && world.objects.iter().all(shows) {
            world.release_all(CONTROLLER);
        }
        if is_settled(&world, &manager.buddies) {
            return;
        }
    }
    let world = world.lock().unwrap();
    eprintln!("index {:#?}, due {:#?}", manager.buddies.entries(), manager.buddies.due());
    let objects: Vec<String> =
        world.objects.iter().map(|(key, thing)| format!("{key} {} {}", thing.generation, thing.status)).collect();
    panic!("seed {seed}: objects {objects:#?}\noutside {:#?}\nrows {:#?}", world.outside, world.rows());
}

fn is_settled(world: &World, index: &Buddies) -> bool {
    let generation = |key: &ObjectKey| world.objects.get(key).map_or(0, |thing| thing.generation);
    let is_current = |(key, thing): (&ObjectKey, &world::Thing)| {
        thing.status["observedGeneration"] == thing.generation
            && !thing.is_stalled()
            && thing.status["buddy"] == generation(&buddy_of(key))
            && world.outside.get(key) == Some(&thing.generation)
    };
    let indexed = index.entries();
    world.objects.iter().all(is_current)
        && world.outside.keys().all(|key| world.objects.contains_key(key))
        && index.due().is_empty()
        && indexed.len() == world.objects.len()
        && indexed.iter().all(|(key, entry)| entry.generation == generation(key))
}

/// A manager that can be killed and started again.
struct Living {
    way: Way,
    buddies: Arc<Buddies>,
    running: Option<(JoinHandle<()>, watch::Sender<bool>)>,
}

impl Living {
    fn new(world: &Arc<Mutex<World>>, holder: &str) -> Self {
        let way = Way { world: world.clone(), holder: holder.into() };
        let mut living = Self { way, buddies: Arc::default(), running: None };
        living.crash_and_start();
        living
    }

    fn crash_and_start(&mut self) {
        if let Some((task, _)) = self.running.take() {
            task.abort();
        }
        let manager = Manager::new(Arc::new(self.way.clone()), {
            let mut options = ManagerOptions::sole("system", "simulation", &self.way.holder);
            options.drain = Duration::from_secs(5);
            // So few that most saves take several writes.
            options.save_rows_max = 3;
            options.wall_ms = wall_ms;
            options
        });
        self.buddies = Arc::default();
        let index = manager.durable_index(self.buddies.clone());
        let (way, buddies) = (self.way.clone(), self.buddies.clone());
        let things = Things { way, buddies, manager: manager.clone(), running: Mutex::default() };
        // Some lives sweep all the time, most of them never.
        let resync = if self.way.world().rng.random_bool(0.2) { 3 } else { 36_000 };
        let options = ControllerOptions {
            // With one, what waits is there when others are saved.
            concurrency: self.way.world().rng.random_range(1..4),
            backoff: Backoff { first: Duration::from_millis(100), max: Duration::from_secs(5) },
            deadline: Duration::from_secs(10),
            attempts_max: 6,
            resync: Duration::from_secs(resync),
        };
        manager.add(Controller::new(CONTROLLER, kind(), things).index(&index).options(options)).unwrap();
        let (stop, stopped) = watch::channel(false);
        self.running = Some((tokio::spawn(async move { manager.run(stopped).await }), stop));
    }

    async fn stop(&mut self) {
        if let Some((task, stop)) = self.running.take() {
            stop.send_replace(true);
            task.await.unwrap();
        }
    }
}

/// Makes something outside for each object, and reports it.
struct Things {
    way: Way,
    buddies: Arc<Buddies>,
    manager: Manager,
    running: Mutex<BTreeSet<ObjectKey>>,
}

impl Reconciler for Things {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let _alone = Alone::new(self, key);
        self.misbehave().await?;
        let Some(item) = self.way.get(&kind(), key).await? else {
            self.way.world().outside.remove(key);
            return Ok(Next::AwaitChange);
        };
        let generation = item.object()?.generation();
        // Under the lease: a manager that was replaced must not reach out.
        let client = self.manager.client();
        let buddy = self.buddies.generation(&buddy_of(key));
        let buddy = buddy.ok_or_else(|| ReconcileError::Unavailable("the index is not loaded".into()))?;
        let patch = json!({"observedGeneration": generation, "buddy": buddy});
        self.way.world().outside.insert(key.clone(), generation);
        self.misbehave().await?;
        client.patch_status(&kind(), key, item.version, patch).await?;
        let timer = self.way.world().rng.random_bool(0.1);
        Ok(if timer { Next::After(Duration::from_secs(3)) } else { Next::AwaitChange })
    }
}

impl Things {
    async fn misbehave(&self) -> Result<(), ReconcileError> {
        let what = {
            let mut world = self.way.world();
            if world.faults { world.rng.random_range(0..100) } else { 100 }
        };
        match what {
            0..6 => Err(ReconcileError::retryable("bad luck")),
            6..9 => Err(ReconcileError::terminal("hopeless")),
            // Without the hook, which would print it.
            9 => std::panic::resume_unwind(Box::new("a reconciler that panics")),
            10 => {
                tokio::time::sleep(Duration::from_secs(60)).await;
                Ok(())
            }
            11..40 => {
                tokio::time::sleep(Duration::from_millis(300)).await;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Fails the test if a key runs twice at once in one manager.
struct Alone<'t>(&'t Things, ObjectKey);

impl<'t> Alone<'t> {
    fn new(things: &'t Things, key: &ObjectKey) -> Self {
        assert!(things.running.lock().unwrap().insert(key.clone()), "{key} runs twice at once");
        Self(things, key.clone())
    }
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        self.0.running.lock().unwrap().remove(&self.1);
    }
}
