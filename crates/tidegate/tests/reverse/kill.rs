//! `kill -9` at any point, again and again, while people go on: at the end Git
//! says what the cluster says, and nothing was said twice.

use std::fs;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::json;
use tidegate_testkit::place::wait;

use crate::kinds::{Kind, is_in_step};
use crate::people::{People, check_history, write_foreign, write_large};
use crate::rig::plane;

const KILLS: usize = 10;
/// From before it is connected to after its first push; and after a push.
const LIFE_MS: [std::ops::Range<u64>; 2] = [50..2_500, 0..500];

#[test]
fn killed_in_a_loop_while_objects_change() {
    let number = rand::random();
    println!("seed {number}");
    let (plane, mut random) = (plane(), StdRng::seed_from_u64(number));
    let place = plane.place("kill");
    write_foreign(&place);
    write_large(&place);
    place.rule("maps", "live", json!({"resources": ["configmaps"]}));
    let people = People::start(&place, Kind::CONFIG_MAPS, number);
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
    wait("Git as the cluster", || is_in_step(&place, Kind::CONFIG_MAPS).then_some(()));
    println!("{killed} commits by the killed, {} in the end", place.commits("live").len());
    assert!(!left.exists(), "what was left of credentials is swept");
    operator.stop();
    check_history(&place);
}
