//! How many branches are worked on at once.

use std::time::Duration;

use serde_json::json;
use tidegate_testkit::bare;
use tidegate_testkit::git_http::Mode;
use tidegate_testkit::place::wait;

use crate::rig::plane;

/// Two GitRepoConfigs may name one repository, and spell it differently.
#[test]
fn a_repository_has_its_turns_whoever_names_it() {
    let plane = plane();
    let place = plane.place("turns");
    place.foreign_commit(&[("README.md".to_owned(), "ours".to_owned())]);
    bare::git(&place.repository, &["branch", "other", "main"]);
    place.repo_config("twin", place.url().trim_end_matches(".git"), Some("git"));
    place.destination_with("second", "second", json!({"repoRef": {"name": "twin"}, "branch": "other"}));
    place.rule("first", "live", json!({"resources": ["configmaps"]}));
    place.rule("second", "second", json!({"resources": ["configmaps"]}));
    place.apply(&place.config_map("a", "1"));
    plane.git.set(Mode::Held);
    let operator = plane.operator("turns").with(&["--workers-max-per-repo=1"]).ready();
    let second = format!("other:{}", place.config_map_path("a").replacen("live", "second", 1));
    // Of ours alone: other tests have repositories in the same cluster.
    let repository = place.url();
    let repository = repository.trim_end_matches(".git");
    let active = || operator.metrics("gitopsreverser_repo_branch_active_workers", repository).unwrap_or_default();
    let mut most = wait("one at work", || Some(active()).filter(|active| *active > 0.0));
    plane.git.set(Mode::Slow(Duration::from_millis(200)));
    wait("both files", || {
        most = most.max(active());
        let is_second =
            bare::command(&place.repository).args(["cat-file", "-e", &second]).output().ok()?.status.success();
        place.file(&place.config_map_path("a")).filter(|_| is_second)
    });
    plane.git.set(Mode::Up);
    assert!((most - 1.0).abs() < f64::EPSILON, "{most} at once");
    place.kubectl_as(tidegate_testkit::cluster::ADMIN, &["delete", "watchrules", "--all"]);
    operator.stop();
}
