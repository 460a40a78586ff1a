//! What others do to the branch, and to our files on it.

use std::time::Duration;

use tidegate_reverser::branch::{Branch, Limits};
use tidegate_reverser::secrets::SecretPolicy;
use tidegate_testkit::bare;

use crate::rig::{Rig, destination, id, pushed, seed, submit, until};

const FOLDER: &str = "live/v1/configmaps/default";
/// Deeper than a walk by recursion has stack for.
const DEPTH: usize = 10_000;

async fn disturbed(branch: &Branch, times: u64) {
    until(branch, |status| status.destinations.get(&id()).is_some_and(|own| own.disturbed == times)).await;
}

/// Looks at the remote all the time.
fn curious(rig: &Rig) -> Branch {
    let limits = Limits { refresh: Duration::from_millis(20), ..rig.limits() };
    rig.branch_with(limits, destination(SecretPolicy::Skip))
}

#[tokio::test]
async fn a_branch_that_was_set_back_is_not_forced_and_is_to_be_compared() {
    let rig = Rig::new();
    let branch = rig.branch();
    pushed(&branch, seed(&branch, &[("a", "1")])).await;
    pushed(&branch, submit(&branch, &[("b", "alice", "1")])).await;
    let taken_out = rig.git("git rev-parse main");
    rig.git("git update-ref refs/heads/main main~1");
    pushed(&branch, submit(&branch, &[("c", "alice", "1")])).await;
    assert_eq!(rig.log().len(), 2);
    assert!(!rig.git("git rev-list main").contains(&taken_out));
    disturbed(&branch, 1).await;
    pushed(&branch, seed(&branch, &[("a", "1"), ("b", "1"), ("c", "1")])).await;
    assert_eq!(rig.files().len(), 3);
    disturbed(&branch, 1).await;
}

#[tokio::test]
async fn what_others_do_is_noticed_although_nothing_changes_in_the_cluster() {
    let rig = Rig::new();
    let branch = curious(&rig);
    let objects = [("a", "1"), ("b", "1")];
    pushed(&branch, seed(&branch, &objects)).await;
    for (times, script) in [
        (1, format!("rm {FOLDER}/a.yaml")),
        (2, format!("echo edited >> {FOLDER}/b.yaml")),
        (3, format!("sed 's/name: a$/name: z/' {FOLDER}/a.yaml > {FOLDER}/z.yaml")),
    ] {
        rig.foreign(&script);
        disturbed(&branch, times).await;
        pushed(&branch, seed(&branch, &objects)).await;
        assert_eq!(rig.names(), format!("{FOLDER}/a.yaml {FOLDER}/b.yaml"));
        assert!(rig.files()[&format!("{FOLDER}/b.yaml")].ends_with("v: \"1\""));
    }
    // The only branch is deleted: the next seed begins it again.
    rig.git("git update-ref -d refs/heads/main");
    disturbed(&branch, 4).await;
    pushed(&branch, seed(&branch, &objects)).await;
    assert_eq!(rig.log().len(), 1);
    assert_eq!(rig.files().len(), 2);
}

#[tokio::test]
async fn files_that_are_not_ours_are_no_reason_to_compare() {
    let rig = Rig::new();
    let branch = curious(&rig);
    pushed(&branch, seed(&branch, &[("a", "1")])).await;
    rig.foreign(&format!("echo hi > README.md; echo hi > live/README.md; echo '{{}}' > live/kustomization.yaml; echo x > {FOLDER}/notes.txt; mkdir other; cp {FOLDER}/a.yaml other"));
    let head = rig.git("git rev-parse main");
    until(&branch, |status| status.head.as_ref().is_some_and(|own| own.as_str() == head)).await;
    // On top of it, and told after it.
    pushed(&branch, submit(&branch, &[("b", "alice", "1")])).await;
    assert_eq!(branch.status().borrow().destinations[&id()].disturbed, 0);
}

/// Whoever may push can make a tree of any depth, and files of any size.
#[tokio::test]
async fn a_tree_that_is_very_deep_and_a_file_that_is_very_large() {
    let rig = Rig::new();
    let deep = format!("live/{}x.yaml", "a/".repeat(DEPTH));
    let large = 17 << 20;
    let import = format!(
        "commit refs/heads/main\ncommitter eve <eve@example.com> 0 +0000\ndata 0\n\
         M 100644 inline {deep}\ndata 1\nx\nM 100644 inline {FOLDER}/large.yaml\ndata {large}\n{}\n",
        "#".repeat(large)
    );
    bare::feed(&rig.remote, &["fast-import", "--quiet"], &import);
    let branch = curious(&rig);
    pushed(&branch, seed(&branch, &[("a", "1")])).await;
    assert_eq!(rig.git("git ls-tree -r --name-only main | wc -l"), "3");
    rig.git("git update-ref refs/heads/main main~1");
    disturbed(&branch, 1).await;
    pushed(&branch, seed(&branch, &[("a", "1")])).await;
    assert_eq!(rig.git("git ls-tree -r --name-only main | wc -l"), "3");
}
