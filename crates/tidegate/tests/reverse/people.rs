//! People who change things all the time, and what is to be true of Git when
//! they stop, whatever happened to the operator meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use tidegate_testkit::bare;
use tidegate_testkit::cluster::{ADMIN, ALICE, BOB, Writer};
use tidegate_testkit::place::Place;

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
    pub fn start(place: &Place<'_>, number: u64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (told, people) = (stop.clone(), [ALICE, BOB].map(|who| place.cluster.writer(who, &place.namespace)));
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

async fn write(people: [Writer; 2], mut random: StdRng, stop: &AtomicBool) {
    let mut count = 0_u32;
    while !stop.load(Ordering::Relaxed) {
        count += 1;
        let (who, name) = (&people[random.random_range(0..2)], format!("n{}", random.random_range(0..OBJECTS)));
        match random.random_range(0..8) {
            0 => who.delete(&name).await,
            _ => who.apply(&name, &json!({"value": count.to_string()})).await,
        }
        tokio::time::sleep(PAUSE).await;
    }
}

pub fn in_cluster(place: &Place<'_>) -> BTreeMap<String, String> {
    let listed: Value = serde_json::from_str(&place.kubectl_as(ADMIN, &["get", "configmaps", "-o", "json"])).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let objects = listed["items"].as_array().unwrap().iter();
    objects.map(|object| (text(&object["metadata"]["name"]), text(&object["data"]["value"]))).collect()
}

pub fn in_git(place: &Place<'_>) -> BTreeMap<String, String> {
    let folder = place.config_map_path("").trim_end_matches(".yaml").to_owned();
    let read = |path: String| {
        let name = path.strip_prefix(&folder)?.strip_suffix(".yaml")?.to_owned();
        let text = place.file(&path)?;
        let value = text.lines().find_map(|line| line.trim().strip_prefix("value: "))?;
        Some((name, value.trim_matches('"').to_owned()))
    };
    place.files().into_iter().filter_map(read).collect()
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
