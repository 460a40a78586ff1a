//! `Watching` says that the API server calls the webhook: the next change has
//! its author.

use serde_json::json;
use tidegate_testkit::cluster::ALICE;
use tidegate_testkit::gate::Gate;
use tidegate_testkit::place::wait;

use crate::rig::plane;

/// A plural, and how `kubectl create` makes one of it, called `a`.
const TYPES: [(&str, &[&str]); 6] = [
    ("configmaps", &["configmap", "a"]),
    ("serviceaccounts", &["serviceaccount", "a"]),
    ("resourcequotas", &["quota", "a"]),
    ("services", &["service", "clusterip", "a", "--tcp=80"]),
    ("roles", &["role", "a", "--verb=get", "--resource=pods"]),
    ("poddisruptionbudgets", &["poddisruptionbudget", "a", "--selector=a=b", "--min-available=1"]),
];

#[test]
fn from_watching_on_every_author_is_known() {
    let plane = plane();
    let place = plane.place("proof");
    let operator = plane.operator("proof").with(&["--git-batch-silence=50ms"]).ready();
    for (plural, create) in TYPES {
        place.rule(plural, "live", json!({"resources": [plural]}));
        place.wait_reason("watchrule", plural, "Watching");
        // At once: nothing is waited for.
        place.kubectl_as(ALICE, &[&["create"], create].concat());
    }
    let commits = wait("commits of all", || {
        let commits = place.commits("live");
        let is_there = |plural: &str| commits.iter().any(|commit| commit.subject.contains(&format!("/{plural}/")));
        TYPES.iter().all(|(plural, _)| is_there(plural)).then_some(commits)
    });
    let made = commits.iter().filter(|commit| commit.subject.contains("/a by "));
    for commit in made {
        assert!(commit.author.starts_with("alice "), "{commit:?}");
    }
    assert_eq!(operator.metric("gitopsreverser_webhook_called"), Some(1.0));
    operator.stop();
}

#[test]
fn a_webhook_that_is_not_called_is_told_of_and_does_not_stand_in_the_way() {
    let plane = plane();
    let place = plane.place("silent");
    place.rule("maps", "live", json!({"resources": ["configmaps"]}));
    let start = plane.operator("silent");
    let mut gate = Gate::new(start.webhook);
    gate.shut();
    let mut operator = start.called_at(gate.port()).with(&["--git-batch-silence=50ms"]).ready();
    let address = format!("https://127.0.0.1:{}", gate.port());
    let message = place.wait_reason("watchrule", "maps", "Watching");
    assert!(message.contains("authors are unknown") && message.contains(&address), "{message}");
    let line = operator.process.err.until("authors are unknown");
    assert!(line.contains("failed calling webhook"), "{line}");
    assert_eq!(operator.metric("gitopsreverser_webhook_called"), Some(0.0));
    place.apply_as(ALICE, &place.config_map("a", "1"));
    place.wait_file(&place.config_map_path("a"), |_| true);
    gate.open();
    operator.process.err.until("the API server calls the webhook");
    wait("a rule without reproach", || {
        let condition = place.ready("watchrule", "maps")?;
        (condition["message"] == "1 types are watched").then_some(())
    });
    operator.stop();
}
