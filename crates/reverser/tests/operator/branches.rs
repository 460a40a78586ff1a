//! Repositories and their branches.

use serde_json::json;
use tidegate_testkit::bare;
use tidegate_testkit::cluster::ALICE;
use tidegate_testkit::place::wait;

use crate::rig::shared;

#[test]
fn two_branches_of_one_repository_at_the_same_time() {
    let place = shared().place("branches");
    place.rule("maps", "live", json!({"resources": ["configmaps"]}));
    place.wait_ready(&["maps"]);
    place.apply_as(ALICE, &place.config_map("first", "1"));
    place.wait_file(&place.config_map_path("first"), |_| true);
    bare::git(&place.repository, &["branch", "other", "main"]);
    let spec = json!({"repoRef": {"name": "repo"}, "branch": "other", "baseFolder": "second"});
    place.configure("GitDestination", "second", spec);
    place.rule("more", "second", json!({"resources": ["configmaps"]}));
    place.wait_reason("gitdestination", "second", "Mirroring");
    place.apply_as(ALICE, &place.config_map("both", "1"));
    place.wait_file(&place.config_map_path("both"), |_| true);
    let path = format!("other:second/v1/configmaps/{}/both.yaml", place.namespace);
    wait("the file of the other branch", || {
        bare::command(&place.repository).args(["cat-file", "-e", &path]).status().unwrap().success().then_some(())
    });
}

#[test]
fn a_repository_that_nobody_uses_is_asked_all_the_same() {
    let place = shared().place("unused");
    let url = place.git.url(&format!("{}.git", place.namespace));
    place.repo_config("empty", &url, Some("git"));
    let message = place.wait_reason("gitrepoconfig", "empty", "BranchFound");
    assert!(message.contains("empty"), "{message}");
    let tree = bare::git(&place.repository, &["mktree", "--missing"]);
    let commit = bare::git(&place.repository, &["commit-tree", "-m", "c", &tree]);
    bare::git(&place.repository, &["update-ref", "refs/heads/trunk", &commit]);
    place.repo_config("missing", &url, Some("git"));
    let message = place.wait_reason("gitrepoconfig", "missing", "BranchNotFound");
    assert!(message.contains("`main`, `other`"), "{message}");
    let spec = json!({"repoUrl": url, "allowedBranches": ["tr?nk"], "secretRef": {"name": "git"}});
    place.configure("GitRepoConfig", "pattern", spec);
    let message = place.wait_reason("gitrepoconfig", "pattern", "BranchFound");
    assert!(message.contains("trunk"), "{message}");
    place.repo_config("nowhere", "http://127.0.0.1:1/x.git", Some("git"));
    place.wait_reason("gitrepoconfig", "nowhere", "ConnectionFailed");
    place.repo_config("secretless", &url, Some("nobody"));
    place.wait_reason("gitrepoconfig", "secretless", "SecretNotFound");
}

#[test]
fn the_important_moments_are_events() {
    let place = shared().place("events");
    place.rule("maps", "live", json!({"resources": ["configmaps"]}));
    place.wait_ready(&["maps"]);
    place.rule("sub", "live", json!({"resources": ["pods/log"]}));
    place.wait_reason("watchrule", "sub", "InvalidRule");
    let said = |args: &[&str]| place.kubectl_as("admin", args);
    for (kind, name, reason, level) in [
        ("GitRepoConfig", "repo", "BranchFound", "Normal"),
        ("GitDestination", "live", "Mirroring", "Normal"),
        ("WatchRule", "maps", "Watching", "Normal"),
        ("WatchRule", "sub", "InvalidRule", "Warning"),
    ] {
        let of = format!("involvedObject.kind={kind},involvedObject.name={name},reason={reason},type={level}");
        wait(&format!("the Event {reason} of {kind} {name}"), || {
            Some(said(&["get", "events", "-o", "name", "--field-selector", &of]))
                .filter(|found| !found.trim().is_empty())
        });
    }
}
