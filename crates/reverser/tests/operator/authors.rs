//! Who did it.

use serde_json::json;
use tidegate_testkit::cluster::{ADMIN, ALICE, BOB};

use crate::rig::shared;

const ALICE_IS: &str = "alice <alice@users.noreply.test>";
const BOB_IS: &str = "bob <bob@users.noreply.test>";

#[test]
fn create_update_and_delete_have_the_right_author() {
    let place = shared().place("authors");
    place.rule("maps", "live", json!({"resources": ["configmaps"]}));
    place.wait_ready(&["maps"]);
    let path = place.config_map_path("app");
    place.apply_as(ALICE, &place.config_map("app", "one"));
    place.wait_file(&path, |text| text.contains("value: one"));
    place.apply_as(BOB, &place.config_map("app", "two"));
    place.wait_file(&path, |text| text.contains("value: two"));
    place.kubectl_as(ALICE, &["delete", "configmap", "app"]);
    place.wait_no_file(&path);
    let commits = place.commits(&path);
    let authors: Vec<_> = commits.iter().map(|commit| commit.author.as_str()).collect();
    assert_eq!(authors, [ALICE_IS, BOB_IS, ALICE_IS], "{commits:?}");
    assert!(commits.iter().all(|commit| commit.committer == "tidegate-reverser"));
    let subject = format!("[CREATE] v1/configmaps/{}/app by user/alice", place.namespace);
    assert_eq!(commits[0].subject, subject);
}

#[test]
fn generated_names_finalizers_scale_and_collections() {
    let place = shared().place("writes");
    place.rule("maps", "live", json!({"resources": ["configmaps", "deployments"]}));
    place.wait_ready(&["maps"]);
    let generated = format!(
        "{{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {{\"generateName\": \"gen-\", \"namespace\": \"{}\"}}}}",
        place.namespace
    );
    let said = place.cluster.kubectl(ALICE, &["create", "-o", "name", "-f", "-"], &generated).unwrap();
    let name = said.trim().trim_start_matches("configmap/").to_owned();
    let path = place.config_map_path(&name);
    place.wait_file(&path, |_| true);
    assert_eq!(place.commits(&path)[0].author, ALICE_IS);
    // Bob deletes it; a finalizer holds it, and admin lets it go.
    place.kubectl_as(
        ADMIN,
        &["patch", "configmap", &name, "--type=merge", "-p", r#"{"metadata":{"finalizers":["example.com/hold"]}}"#],
    );
    place.wait_file(&path, |text| text.contains("example.com/hold"));
    place.kubectl_as(BOB, &["delete", "configmap", &name, "--wait=false"]);
    place.wait_no_file(&path);
    place
        .kubectl_as(ADMIN, &["patch", "configmap", &name, "--type=merge", "-p", r#"{"metadata":{"finalizers":null}}"#]);
    assert_eq!(place.commits(&path).last().unwrap().author, BOB_IS);
    // Scaling goes through a subresource.
    let container = json!({"name": "a", "image": "a"});
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}});
    place.apply_as(
        ALICE,
        &json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": place.namespace},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template},
        }),
    );
    let web = format!("live/apps/v1/deployments/{}/web.yaml", place.namespace);
    place.wait_file(&web, |text| text.contains("replicas: 1"));
    place.kubectl_as(BOB, &["scale", "deployment", "web", "--replicas=3"]);
    place.wait_file(&web, |text| text.contains("replicas: 3"));
    assert_eq!(place.commits(&web).last().unwrap().author, BOB_IS);
    // A collection is deleted object by object.
    for name in ["x", "y", "z"] {
        place.apply_as(ALICE, &place.config_map(name, "1"));
    }
    place.wait_file(&place.config_map_path("z"), |_| true);
    place.wait_file(&place.config_map_path("x"), |_| true);
    place.kubectl_as(BOB, &["delete", "configmap", "--all"]);
    for name in ["x", "y", "z"] {
        place.wait_no_file(&place.config_map_path(name));
        assert_eq!(place.commits(&place.config_map_path(name)).last().unwrap().author, BOB_IS);
    }
}

#[test]
fn a_dry_run_leaves_no_trace() {
    let place = shared().place("dry");
    place.rule("maps", "live", json!({"resources": ["configmaps"]}));
    place.wait_ready(&["maps"]);
    place.kubectl_as(ALICE, &["create", "configmap", "ghost", "--from-literal=a=b", "--dry-run=server"]);
    place.apply_as(BOB, &place.config_map("real", "1"));
    place.wait_file(&place.config_map_path("real"), |_| true);
    assert_eq!(place.file(&place.config_map_path("ghost")), None);
    assert_eq!(place.commits(&place.config_map_path("real"))[0].author, BOB_IS);
}
