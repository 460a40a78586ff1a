//! What goes away and comes back.

use serde_json::json;
use tidegate_testkit::bare;
use tidegate_testkit::cluster::{ADMIN, ALICE, BOB};
use tidegate_testkit::git_http::Mode;
use tidegate_testkit::place::{Place, wait};

use crate::rig::{ALONE, Rig};
use crate::running::Flags;

const PAGED: Flags = Flags { is_alone: false, has_controllers: false, lists_pages: true };
/// More than two pages.
const MANY: usize = 1_100;

const ALICE_IS: &str = "alice <alice@users.noreply.test>";
const BOB_IS: &str = "bob <bob@users.noreply.test>";

fn first_author(place: &Place<'_>, name: &str) -> String {
    place.commits(&place.config_map_path(name))[0].author.clone()
}

#[test]
fn git_the_api_server_and_the_operator_go_away_and_nothing_is_lost() {
    let mut rig = Rig::start(ALONE);
    let at = {
        let place = rig.place("away");
        place.rule("maps", "live", json!({"resources": ["configmaps"]}));
        place.wait_ready(&["maps"]);
        git_goes_away(&place);
        (place.namespace.clone(), place.repository.clone())
    };
    // Killed, and started again: the same cluster makes no commit. A change
    // that nobody saw is there, and nobody's.
    drop(rig.operator.take());
    let place = rig.place_again(&at);
    let commits_before = place.commits("live").len();
    place.apply_as(ALICE, &place.config_map("unseen", "1"));
    rig.start_operator(ALONE);
    let place = rig.place_again(&at);
    place.wait_file(&place.config_map_path("unseen"), |_| true);
    assert_eq!(place.commits("live").len(), commits_before + 1);
    assert!(!first_author(&place, "unseen").contains("alice"));
    // The API server restarts and has forgotten every older version.
    rig.cluster.compact();
    rig.cluster.restart_apiserver();
    let place = rig.place_again(&at);
    place.apply_as(BOB, &place.config_map("after", "1"));
    place.wait_file(&place.config_map_path("after"), |_| true);
    place.kubectl_as(ALICE, &["delete", "configmap", "unseen"]);
    place.wait_no_file(&place.config_map_path("unseen"));
}

fn git_goes_away(place: &Place<'_>) {
    place.git.set(Mode::Down);
    place.apply_as(ALICE, &place.config_map("a", "1"));
    place.apply_as(BOB, &place.config_map("b", "1"));
    place.wait_reason("gitdestination", "live", "ConnectionFailed");
    place.git.set(Mode::Up);
    place.wait_file(&place.config_map_path("a"), |_| true);
    place.wait_file(&place.config_map_path("b"), |_| true);
    assert_eq!((first_author(place, "a"), first_author(place, "b")), (ALICE_IS.into(), BOB_IS.into()));
}

#[test]
fn another_replica_takes_over_without_a_duplicate_or_a_loss() {
    let mut rig = Rig::start(PAGED);
    let second = rig.second_operator();
    let at = {
        let place = rig.place("replicas");
        make_many(&place);
        place.rule("maps", "live", json!({"resources": ["configmaps"]}));
        place.wait_ready(&["maps"]);
        place.apply_as(ALICE, &place.config_map("before", "1"));
        place.wait_file(&place.config_map_path("before"), |_| true);
        (place.namespace.clone(), place.repository.clone())
    };
    drop(rig.operator.take());
    let place = rig.place_again(&at);
    place.apply_as(BOB, &place.config_map("between", "1"));
    place.wait_file(&place.config_map_path("between"), |_| true);
    for name in ["before", "between"] {
        assert_eq!(place.commits(&place.config_map_path(name)).len(), 1, "{name}");
    }
    // The webhook leads to the one that works; the API server learns that a
    // moment later.
    let mut later = 0;
    wait("a commit of alice", || {
        later += 1;
        let name = format!("later-{later}");
        place.apply_as(ALICE, &place.config_map(&name, "1"));
        place.wait_file(&place.config_map_path(&name), |_| true);
        (first_author(&place, &name) == ALICE_IS).then_some(())
    });
    assert_eq!(place.files().len(), MANY + 2 + later);
    drop(second);
}

/// By several at once: the test is about what comes after.
fn make_many(place: &Place<'_>) {
    let writer = place.cluster.writer(ADMIN, &place.namespace);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for worker in 0..10 {
            let writer = writer.clone();
            tasks.spawn(async move {
                for at in (worker..MANY).step_by(10) {
                    writer.apply(&format!("m{at}"), &json!({"value": "1"})).await;
                }
            });
        }
        tasks.join_all().await;
    });
}

#[test]
fn a_foreign_pusher_and_foreign_files() {
    let place = crate::rig::shared().place("foreign");
    place.rule("maps", "live", json!({"resources": ["configmaps"]}));
    place.apply(&place.config_map("first", "1"));
    place.wait_file(&place.config_map_path("first"), |_| true);
    let folder = tempfile::tempdir().unwrap();
    let url = place.git.url_with_credentials(&format!("{}.git", place.namespace));
    bare::git(folder.path(), &["clone", "--quiet", &url, "work"]);
    let work = folder.path().join("work");
    for round in 0..5 {
        std::fs::write(work.join("README.md"), format!("round {round}")).unwrap();
        std::fs::write(work.join("live/kustomization.yaml"), format!("# round {round}\n")).unwrap();
        place.apply_as(BOB, &place.config_map(&format!("r{round}"), "1"));
        bare::git(&work, &["add", "--all"]);
        bare::git(&work, &["commit", "--quiet", "-m", "ours"]);
        wait("push of the foreigner", || {
            bare::command(&work).args(["pull", "--quiet", "--rebase"]).output().ok()?;
            let pushed = bare::command(&work).args(["push", "--quiet"]).output().ok()?;
            pushed.status.success().then_some(())
        });
    }
    for round in 0..5 {
        let name = format!("r{round}");
        place.wait_file(&place.config_map_path(&name), |_| true);
        assert_eq!(first_author(&place, &name), BOB_IS);
    }
    assert!(place.files().contains(&"live/kustomization.yaml".to_owned()));
    assert_eq!(place.file("README.md").as_deref(), Some("round 4"));
}

/// A commit that somebody takes out of the branch, and a file that somebody
/// deletes: what the cluster has comes back with the next push.
#[test]
fn what_somebody_takes_out_of_the_branch_comes_back() {
    let place = crate::rig::shared().place("taken");
    place.rule("maps", "live", json!({"resources": ["configmaps"]}));
    place.wait_ready(&["maps"]);
    for name in ["a", "b"] {
        place.apply_as(ALICE, &place.config_map(name, "1"));
        place.wait_file(&place.config_map_path(name), |_| true);
    }
    bare::git(&place.repository, &["update-ref", "refs/heads/main", "main~1"]);
    place.apply_as(BOB, &place.config_map("c", "1"));
    for name in ["a", "b", "c"] {
        place.wait_file(&place.config_map_path(name), |_| true);
    }
    assert_eq!(first_author(&place, "c"), BOB_IS);
    assert!(first_author(&place, "b").starts_with("unknown "), "alice wrote it once");
    // The whole branch.
    bare::git(&place.repository, &["update-ref", "-d", "refs/heads/main"]);
    place.apply_as(BOB, &place.config_map("d", "1"));
    for name in ["a", "b", "c", "d"] {
        place.wait_file(&place.config_map_path(name), |_| true);
    }
    place.wait_reason("gitdestination", "live", "Mirroring");
}
