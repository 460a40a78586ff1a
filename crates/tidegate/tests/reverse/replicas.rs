//! Two replicas, one of which stands still for longer than its lease lasts: a
//! machine that slept, a node that was cut off. The other works meanwhile, and
//! what the first remembers goes nowhere.

use rustix::process::Signal;
use serde_json::json;
use tidegate_testkit::place::{Place, wait};

use crate::kinds::{Kind, is_in_step};
use crate::people::{People, check_history, write_foreign};
use crate::rig::plane;

const ROUNDS: u64 = 2;

#[test]
fn one_that_stood_still_pushes_nothing_of_what_it_remembers() {
    let number = u64::from(rand::random::<u32>());
    println!("seed {number}");
    let plane = plane();
    let place = plane.place("replicas");
    write_foreign(&place);
    place.rule("maps", "live", json!({"resources": ["configmaps"]}));
    // An API server that waits for a webhook that stands still would hold up
    // whoever changes something.
    let start = |folder: &str| plane.operator(folder).waited_for(1).in_pod().with(&["--git-batch-silence=50ms"]);
    let (mut works, mut waits) = (start("replica-a").ready(), start("replica-b").start());
    for round in 0..ROUNDS {
        let people = People::start(&place, Kind::CONFIG_MAPS, number + round);
        wait_push(&place);
        works.process.signal(Signal::STOP);
        waits.wait_ready();
        wait_push(&place);
        works.process.signal(Signal::CONT);
        wait("its insight", || (!works.is_ready()).then_some(()));
        wait_push(&place);
        people.stop();
        wait("Git as the cluster", || is_in_step(&place, Kind::CONFIG_MAPS).then_some(()));
        std::mem::swap(&mut works, &mut waits);
    }
    works.stop();
    waits.stop();
    check_history(&place);
}

/// Until there is a commit more.
fn wait_push(place: &Place<'_>) {
    let commits = place.commits("live").len();
    wait("a push", || (place.commits("live").len() > commits).then_some(()));
}
