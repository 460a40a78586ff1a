//! Everything at once: `kill -9` at any moment while people go on, the Git
//! server is slow, mute, full or away, the API server is cut off, and others
//! push to the same branch. At the end Git says what the cluster says.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::json;
use tidegate_testkit::gate::Gate;
use tidegate_testkit::git_http::{GitHttp, Mode};
use tidegate_testkit::place::{Place, wait};

use crate::kinds::{AllKinds, Kind, is_in_step};
use crate::people::{People, check_history, check_repository, write_foreign};
use crate::rig::{Plane, plane};

const LIVES: usize = 10;
/// What happens during a life, and how far apart.
const EVENTS: std::ops::Range<usize> = 1..5;
const EVENT_MS: std::ops::Range<u64> = 0..1_200;
const MODES: [Mode; 8] = [
    Mode::Up,
    Mode::Up,
    Mode::Slow(Duration::from_millis(300)),
    Mode::Down,
    Mode::Held,
    Mode::Mute,
    Mode::Full,
    Mode::Unauthorized,
];

/// What others do to the branch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Others {
    /// They leave our files alone: then nothing is said twice, either.
    Beside,
    /// They change and remove our files, too.
    Inside,
}

#[test]
fn killed_while_git_is_slow_or_away() {
    let plane = plane();
    let git = GitHttp::start();
    let place = Place::create(&plane.cluster, &git, "storm");
    let all = AllKinds::mirror(&place);
    storm(&plane, &place, Kind::ALL, Others::Beside);
    check_history(&place);
    all.check_secrets(&place);
    all.remove(&place);
}

#[test]
fn killed_while_others_destroy_what_is_ours() {
    let plane = plane();
    let git = GitHttp::start();
    let place = Place::create(&plane.cluster, &git, "storm");
    place.rule("maps", "live", json!({"resources": ["configmaps"]}));
    storm(&plane, &place, Kind::CONFIG_MAPS, Others::Inside);
    check_repository(&place);
}

fn storm(plane: &Plane, place: &Place<'_>, kinds: &'static [Kind], others: Others) {
    let number = rand::random();
    println!("seed {number}");
    let mut random = StdRng::seed_from_u64(number);
    write_foreign(place);
    let mut gate = Gate::new(plane.cluster.port());
    let kubeconfig = plane.cluster.kubeconfig_through(gate.port());
    let people = People::start(place, kinds, number);
    let start =
        || plane.operator("storm").of(kubeconfig.clone()).with(&["--leader-elect=false", "--git-batch-silence=50ms"]);
    for life in 0..LIVES {
        let (mut operator, commits) = (start().start(), place.commits("live").len());
        // On a machine where a start takes longer than these lives none would
        // push, so each other one has the time to.
        if life % 2 == 1 {
            place.git.set(Mode::Up);
            gate.open();
            wait("a push", || (place.commits("live").len() > commits).then_some(()));
        }
        for _ in 0..random.random_range(EVENTS) {
            place.git.set(MODES[random.random_range(0..MODES.len())]);
            if random.random_range(0..3) == 0 {
                push_as_another(place, others, &mut random);
            }
            if random.random_range(0..4) == 0 {
                gate.shut()
            } else {
                gate.open()
            }
            // Where it strikes is the point, not when: any moment will do.
            std::thread::sleep(Duration::from_millis(random.random_range(EVENT_MS)));
        }
        operator.process.kill();
    }
    people.stop();
    place.git.set(Mode::Up);
    gate.open();
    let operator = start().ready();
    wait("Git as the cluster", || is_in_step(place, kinds).then_some(()));
    operator.stop();
}

fn push_as_another(place: &Place<'_>, others: Others, random: &mut StdRng) {
    let name = format!("n{}", random.random_range(0..25));
    let change = match (others, random.random_range(0..3)) {
        (Others::Beside, _) | (_, 0) => format!("M 100644 inline others/{name}.md\ndata 1\nx\n"),
        (Others::Inside, 1) => format!("M 100644 inline {}\ndata 1\nx\n", place.config_map_path(&name)),
        (Others::Inside, _) => format!("D {}\n", place.config_map_path(&name)),
    };
    // The operator may be faster; then there is nothing of this one.
    place.try_foreign(&change);
}
