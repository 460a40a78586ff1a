//! People who change things all the time, and what is to be true of Git when
//! they stop, whatever happened to the operator meanwhile.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tidegate_testkit::bare;
use tidegate_testkit::cluster::{ALICE, BOB, Writer};
use tidegate_testkit::place::Place;

use crate::kinds::Kind;

const OBJECTS: u32 = 25;
/// Some fifty changes a second, for as long as the test runs.
const PAUSE: Duration = Duration::from_millis(20);
const FOREIGN: [(&str, &str); 2] = [("README.md", "ours"), ("live/kustomization.yaml", "resources: []\n")];

/// What somebody else has in the repository.
pub fn write_foreign(place: &Place<'_>) {
    place.foreign_commit(&FOREIGN.map(|(path, text)| (path.to_owned(), text.to_owned())));
}

/// More than an operator keeps of a list in memory, in so many objects.
pub const LARGE: usize = 4;

pub fn write_large(place: &Place<'_>) {
    for at in 0..LARGE {
        place.apply(&place.config_map(&format!("large-{at}"), &at.to_string().repeat(100 << 10)));
    }
}

/// Changes of each object by two people, for as long as they are not stopped.
pub struct People {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl People {
    pub fn start(place: &Place<'_>, kinds: &'static [Kind], number: u64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (told, people) = (stop.clone(), [ALICE, BOB].map(|who| place.cluster.writer(who, &place.namespace)));
        let writers = |of: Writer| kinds.iter().map(|kind| (*kind, kind.writer(&of, &place.namespace))).collect();
        let people = people.map(writers);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(write(people, StdRng::seed_from_u64(number + 1), &told));
        });
        Self { stop, thread }
    }

    pub fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
    }
}

async fn write(people: [Vec<(Kind, Writer)>; 2], mut random: StdRng, stop: &AtomicBool) {
    let mut count = 0_u32;
    while !stop.load(Ordering::Relaxed) {
        count += 1;
        let (who, object) = (&people[random.random_range(0..2)], random.random_range(0..OBJECTS));
        let (kind, who) = &who[object as usize % who.len()];
        let name = format!("n{object}");
        match random.random_range(0..8) {
            0 => who.delete(&name).await,
            _ => who.apply_fields(&name, &kind.fields(count)).await,
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Nothing was said twice, and what is not ours is as it was.
pub fn check_history(place: &Place<'_>) {
    // `v1/configmaps/ns/name uid=… resourceVersion=…`; what a list found to be
    // gone has neither.
    let trailers = place.trailers("X-ConfigButler-Object");
    let version = |line: &String| line.split(" fieldManager=").next().unwrap_or_default().to_owned();
    let versions: Vec<_> = trailers.iter().map(version).filter(|line| !line.contains("uid=- ")).collect();
    let distinct: BTreeSet<_> = versions.iter().collect();
    assert!(distinct.len() > OBJECTS as usize, "hardly anything happened");
    assert_eq!(distinct.len(), versions.len(), "a commit is repeated: {versions:#?}");
    check_repository(place);
}

/// What is not ours is as it was, and Git has no complaint.
pub fn check_repository(place: &Place<'_>) {
    for (path, text) in FOREIGN {
        assert_eq!(place.file(path).as_deref(), Some(text), "{path}");
    }
    assert_eq!(bare::git(&place.repository, &["rev-list", "--merges", "--count", "main"]), "0");
    bare::git(&place.repository, &["fsck", "--strict"]);
}
