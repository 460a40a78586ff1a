//! `kill -9` at any point, again and again, while people go on: at the end Git
//! says what the cluster says, and nothing was said twice.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use tidegate_testkit::bare;
use tidegate_testkit::cluster::{ADMIN, ALICE, BOB, Writer};
use tidegate_testkit::place::{Place, wait};

use crate::rig::plane;

const KILLS: usize = 10;
const OBJECTS: u32 = 25;
/// From before it is connected to after its first push; and after a push.
const LIFE_MS: [std::ops::Range<u64>; 2] = [50..2_500, 0..500];
/// Some fifty changes a second, for as long as the test runs.
const PAUSE: Duration = Duration::from_millis(20);
const FOREIGN: [(&str, &str); 2] = [("README.md", "ours"), ("live/kustomization.yaml", "resources: []\n")];

#[test]
fn killed_in_a_loop_while_objects_change() {
    let number = rand::random();
    println!("seed {number}");
    let (plane, mut random) = (plane(), StdRng::seed_from_u64(number));
    let place = plane.place("kill");
    place.foreign_commit(&FOREIGN.map(|(path, text)| (path.to_owned(), text.to_owned())));
    place.rule("maps", "live", json!({"resources": ["configmaps"]}));
    let people = People::start(&place, number);
    let start = || plane.operator("kill").with(&["--leader-elect=false", "--git-batch-silence=50ms"]);
    // What a killed process may leave of its credentials.
    let left = start().work_dir.join("home/credentials/left");
    for round in 0..KILLS {
        let (mut operator, commits) = (start().start(), place.commits("live").len());
        // On a machine where a start takes longer than these lives none would
        // push, so each other one lives until it has.
        if round % 2 == 1 {
            wait("a push of one that is to be killed", || (place.commits("live").len() > commits).then_some(()));
        }
        // Where it dies is the point, not when: any moment will do.
        std::thread::sleep(Duration::from_millis(random.random_range(LIFE_MS[round % 2].clone())));
        operator.process.kill();
        fs::create_dir_all(&left).unwrap();
        fs::write(left.join("key"), "secret").unwrap();
    }
    let killed = place.commits("live").len();
    people.stop();
    let operator = start().ready();
    wait("Git as the cluster", || (in_git(&place) == in_cluster(&place)).then_some(()));
    println!("{killed} commits by the killed, {} in the end", place.commits("live").len());
    assert!(!left.exists(), "what was left of credentials is swept");
    operator.stop();
    check_history(&place);
}

/// Changes of each object by two people, for as long as they are not stopped.
struct People {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl People {
    fn start(place: &Place<'_>, number: u64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (told, people) = (stop.clone(), [ALICE, BOB].map(|who| place.cluster.writer(who, &place.namespace)));
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(write(people, StdRng::seed_from_u64(number + 1), &told));
        });
        Self { stop, thread }
    }

    fn stop(self) {
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

fn in_cluster(place: &Place<'_>) -> BTreeMap<String, String> {
    let listed: Value = serde_json::from_str(&place.kubectl_as(ADMIN, &["get", "configmaps", "-o", "json"])).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let objects = listed["items"].as_array().unwrap().iter();
    objects.map(|object| (text(&object["metadata"]["name"]), text(&object["data"]["value"]))).collect()
}

fn in_git(place: &Place<'_>) -> BTreeMap<String, String> {
    let folder = place.config_map_path("").trim_end_matches(".yaml").to_owned();
    let read = |path: String| {
        let name = path.strip_prefix(&folder)?.strip_suffix(".yaml")?.to_owned();
        let text = place.file(&path)?;
        let value = text.lines().find_map(|line| line.trim().strip_prefix("value: "))?;
        Some((name, value.trim_matches('"').to_owned()))
    };
    place.files().into_iter().filter_map(read).collect()
}

fn check_history(place: &Place<'_>) {
    // `v1/configmaps/ns/name uid=… resourceVersion=…`; what a list found to be
    // gone has neither.
    let trailers = place.trailers("X-ConfigButler-Object");
    let version = |line: &String| line.split(" fieldManager=").next().unwrap_or_default().to_owned();
    let versions: Vec<_> = trailers.iter().map(version).filter(|line| !line.contains("uid=- ")).collect();
    let distinct: BTreeSet<_> = versions.iter().collect();
    assert!(distinct.len() > OBJECTS as usize, "hardly anything happened");
    assert_eq!(distinct.len(), versions.len(), "a commit is repeated: {versions:#?}");
    for (path, text) in FOREIGN {
        assert_eq!(place.file(path).as_deref(), Some(text), "{path}");
    }
    assert_eq!(bare::git(&place.repository, &["rev-list", "--merges", "--count", "main"]), "0");
    bare::git(&place.repository, &["fsck", "--strict"]);
}
