//! Rules, destinations, repositories: what they start and what they say.

use serde_json::json;
use tidegate_testkit::cluster::ALICE;
use tidegate_testkit::place::wait;

use crate::rig::shared;

#[test]
fn what_was_there_before_is_written_and_goes_with_the_rule() {
    let place = shared().place("backfill");
    for name in ["a", "b", "c"] {
        place.apply(&place.config_map(name, "old"));
    }
    place.rule("maps", "live", json!({"resources": ["configmaps"]}));
    place.wait_ready(&["maps"]);
    for name in ["a", "b", "c"] {
        place.wait_file(&place.config_map_path(name), |text| text.contains("value: old"));
    }
    place.kubectl_as("admin", &["delete", "watchrule", "maps"]);
    for name in ["a", "b", "c"] {
        place.wait_no_file(&place.config_map_path(name));
    }
}

#[test]
fn two_rules_to_two_destinations() {
    let place = shared().place("two");
    place.destination("second", "second");
    place.rule("maps", "live", json!({"resources": ["configmaps"]}));
    place.rule("both", "second", json!({"resources": ["configmaps", "services"]}));
    place.wait_ready(&["maps", "both"]);
    place.apply_as(ALICE, &place.config_map("shared", "1"));
    place.wait_file(&place.config_map_path("shared"), |_| true);
    place.wait_file(&format!("second/v1/configmaps/{}/shared.yaml", place.namespace), |_| true);
}

#[test]
fn overlapping_folders_are_refused_by_a_condition() {
    let place = shared().place("overlap");
    place.destination("inner", "live/inner");
    // Made in the same second, the name decides: one of the two is refused.
    let message = wait("FolderOverlaps of one of them", || {
        let conditions = ["inner", "live"].into_iter().filter_map(|name| place.ready("gitdestination", name));
        let refused = conditions.into_iter().find(|condition| condition["reason"] == "FolderOverlaps")?;
        Some(refused["message"].to_string())
    });
    assert!(message.contains("which is older"), "{message}");
}

#[test]
fn a_rule_that_cannot_be_meant_says_so() {
    let place = shared().place("bad");
    place.rule("sub", "live", json!({"resources": ["pods/log"]}));
    let message = place.wait_reason("watchrule", "sub", "InvalidRule");
    assert!(message.contains("pods/log"), "{message}");
    // The chart allows what the preset selects.
    place.rule("pods", "live", json!({"resources": ["pods"]}));
    let message = place.wait_reason("watchrule", "pods", "WatchFailed");
    assert!(message.contains("pods") && message.contains("forbidden"), "{message}");
    place.rule("nowhere", "missing", json!({"resources": ["configmaps"]}));
    place.wait_reason("watchrule", "nowhere", "DestinationNotFound");
}
