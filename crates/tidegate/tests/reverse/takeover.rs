//! The sequence of the README: a Deployment is installed, and then somebody
//! runs an operator by hand. That one has the work, and gives it back.

use serde_json::json;
use tidegate_testkit::cluster::{ALICE, BOB};
use tidegate_testkit::place::{Place, wait};

use crate::rig::{Plane, Reverser, plane};

#[test]
fn by_hand_takes_the_work_from_a_replica_and_gives_it_back() {
    let plane = plane();
    let place = plane.place("takeover");
    place.rule("maps", "live", json!({"resources": ["configmaps"]}));
    let replica = plane.operator("replica").in_pod().ready();
    place.wait_ready(&["maps"]);
    written(&place, ALICE, "replica");
    let by_hand = plane.operator("by-hand").ready();
    assert!(!replica.is_ready(), "two work at once");
    wait_called(&plane, &by_hand);
    written(&place, BOB, "by-hand");
    by_hand.stop();
    replica.wait_ready();
    wait_called(&plane, &replica);
    written(&place, ALICE, "replica-again");
    replica.stop();
    let commits = place.commits("live");
    let subjects: std::collections::BTreeSet<_> = commits.iter().map(|commit| commit.subject.as_str()).collect();
    assert_eq!(subjects.len(), commits.len(), "a commit was repeated: {commits:?}");
}

/// Two by hand are equal: the first keeps the work until it ends.
#[test]
fn by_hand_does_not_take_it_from_by_hand() {
    let plane = plane();
    let first = plane.operator("first").ready();
    let mut second = plane.operator("second").with(&["--log-format=human"]).start();
    let line = second.process.err.until("asking the one that works to hand over");
    assert!(line.contains(" INFO ") && !line.starts_with('{'), "{line}");
    assert!(first.is_ready() && !second.is_ready());
    first.stop();
    second.wait_ready();
    second.stop();
}

/// Until the API server is told to call this one for ConfigMaps.
fn wait_called(plane: &Plane, operator: &Reverser) {
    let args = ["get", "validatingwebhookconfiguration", "tidegate-reverser", "-o", "json"];
    wait("registration of the webhook", || {
        let found: serde_json::Value = serde_json::from_str(&plane.cluster.admin(&args)).ok()?;
        let webhook = &found["webhooks"][0];
        let is_ours = webhook["clientConfig"]["url"].as_str()?.contains(&format!(":{}/", operator.webhook));
        (is_ours && webhook["rules"].to_string().contains("configmaps")).then_some(())
    });
}

/// A change by `person` is in Git under that name. The API server follows a
/// registration a moment later, so that the first ones may be nobody's.
fn written(place: &Place<'_>, person: &str, name: &str) {
    let mut attempt = 0;
    wait("a commit with its author", || {
        attempt += 1;
        let name = format!("{name}-{attempt}");
        place.apply_as(person, &place.config_map(&name, "1"));
        let path = place.config_map_path(&name);
        place.wait_file(&path, |_| true);
        let author = place.commits(&path)[0].author.clone();
        assert!(author.starts_with(person) || author.starts_with("unknown"), "{author}");
        author.starts_with(person).then_some(())
    });
}
