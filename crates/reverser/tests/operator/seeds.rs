//! Complete lists against what is in Git already.

use serde_json::json;
use tidegate_testkit::cluster::{ADMIN, ALICE};

use crate::rig::shared;

/// More than any limit that somebody may have put on a cycle.
const ORPHANS: usize = 5_500;
const FILES_PER_COMMIT: usize = 200;

#[test]
fn more_than_five_thousand_orphans_go_in_one_cycle() {
    let place = shared().place("orphans");
    for name in ["a", "b"] {
        place.apply(&place.config_map(name, "live"));
    }
    let orphan = |at: usize| {
        let text = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: o{at}\n  namespace: {}\ndata:\n  value: old\n",
            place.namespace
        );
        (place.config_map_path(&format!("o{at}")), text)
    };
    let mut files: Vec<_> = (0..ORPHANS).map(orphan).collect();
    let foreign = [
        ("README.md".to_owned(), "hello".to_owned()),
        ("live/README.md".to_owned(), "hello".to_owned()),
        ("live/kustomization.yaml".to_owned(), "resources: []\n".to_owned()),
        // An object, but not at its own path.
        (place.config_map_path("elsewhere"), orphan(0).1),
    ];
    files.extend(foreign.clone());
    place.foreign_commit(&files);
    place.rule("maps", "live", json!({"resources": ["configmaps"]}));
    place.wait_ready(&["maps"]);
    let mut expected: Vec<_> = foreign.into_iter().map(|(path, _)| path).collect();
    expected.extend(["a", "b"].map(|name| place.config_map_path(name)));
    expected.sort();
    assert_eq!(place.files(), expected);
    // One cycle: the foreign commit, and what it takes to name them all.
    let trailers = place.trailers("X-ConfigButler-Object");
    assert_eq!(trailers.len(), ORPHANS + 2);
    let commits_max = (ORPHANS + 2).div_ceil(FILES_PER_COMMIT);
    assert!((2..=1 + commits_max).contains(&place.commits(".").len()));
    place.apply_as(ALICE, &place.config_map("a", "next"));
    place.wait_file(&place.config_map_path("a"), |text| text.contains("next"));
}

/// A rule that leaves out an operation is honoured by events and by lists.
#[test]
fn operations_are_honoured() {
    let place = shared().place("operations");
    place.apply(&place.config_map("old", "1"));
    place.destination("kept", "kept");
    place.rule("all", "live", json!({"resources": ["configmaps"]}));
    place.rule("kept", "kept", json!({"resources": ["configmaps"], "operations": ["CREATE", "UPDATE"]}));
    place.wait_ready(&["all", "kept"]);
    let kept = |name: &str| place.config_map_path(name).replacen("live", "kept", 1);
    place.wait_file(&kept("old"), |_| true);
    place.apply_as(ALICE, &place.config_map("new", "1"));
    place.wait_file(&kept("new"), |_| true);
    place.kubectl_as(ADMIN, &["delete", "configmap", "old", "new"]);
    for name in ["old", "new"] {
        place.wait_no_file(&place.config_map_path(name));
    }
    assert!(place.file(&kept("old")).is_some() && place.file(&kept("new")).is_some());
}
