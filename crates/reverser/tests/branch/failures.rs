//! What does not work, for as long as it does not.

use std::time::Duration;

use tidegate_reverser::branch::{Branch, BranchConfig, BranchStatus, FailureReason, GitMetrics};
use tidegate_reverser::lease::Term;
use tidegate_reverser::secrets::SecretPolicy;
use tidegate_testkit::git_http::{Mode, PASSWORD};

use crate::rig::{REPOSITORY, Rig, config, destination, git, id, pushed, seed, submit, until};

#[tokio::test]
async fn a_server_that_is_down_loses_nothing() {
    let rig = Rig::new();
    let branch = rig.branch();
    pushed(&branch, seed(&branch, &[("a", "1")])).await;
    rig.http.set(Mode::Down);
    let ticket = submit(&branch, &[("a", "alice", "2"), ("a", "bob", "3"), ("b", "alice", "1")]);
    until(&branch, |status| status.failure.as_ref().is_some_and(|failure| failure.attempts > 1)).await;
    let status = branch.status().borrow().clone();
    assert_eq!(status.failure.unwrap().reason, FailureReason::ConnectionFailed);
    assert!(status.acknowledged < ticket);
    assert_eq!(status.queue_depth, 3);
    let ticket = submit(&branch, &[("c", "alice", "1")]);
    rig.http.set(Mode::Up);
    pushed(&branch, ticket).await;
    assert_eq!(branch.status().borrow().failure, None);
    assert_eq!(
        rig.log()[1..],
        [
            "alice: [UPDATE] v1/configmaps/default/a by user/alice",
            "bob: [UPDATE] v1/configmaps/default/a by user/bob",
            "alice: [CREATE] 2 objects by user/alice",
        ]
    );
}

#[tokio::test]
async fn a_new_secret_ends_the_wait() {
    let rig = Rig::new();
    let branch = rig.branch();
    pushed(&branch, seed(&branch, &[("a", "1")])).await;
    branch.set_remote(rig.access("wrong"));
    let ticket = submit(&branch, &[("a", "alice", "2")]);
    until(&branch, |status| status.failure.is_some()).await;
    let failure = branch.status().borrow().failure.clone().unwrap();
    assert_eq!(failure.reason, FailureReason::AuthenticationFailed, "{failure:?}");
    assert!(failure.message.contains("secretRef") && !failure.message.contains("wrong"), "{failure:?}");
    branch.set_remote(rig.access(PASSWORD));
    pushed(&branch, ticket).await;
}

#[tokio::test]
async fn a_hook_that_refuses_is_quoted() {
    let rig = Rig::new();
    let branch = rig.branch();
    pushed(&branch, seed(&branch, &[("a", "1")])).await;
    rig.http.refuse_pushes(REPOSITORY, Some("no pushes on Friday"));
    let ticket = submit(&branch, &[("a", "alice", "2")]);
    until(&branch, |status| status.failure.is_some()).await;
    let failure = branch.status().borrow().failure.clone().unwrap();
    assert_eq!(failure.reason, FailureReason::PushRejected, "{failure:?}");
    assert!(failure.message.contains("no pushes on Friday"), "{failure:?}");
    rig.http.refuse_pushes(REPOSITORY, None);
    pushed(&branch, ticket).await;
    assert_eq!(rig.log().len(), 2);
}

#[tokio::test]
async fn a_host_that_refuses_for_long_costs_no_disk() {
    let rig = Rig::new();
    let branch = rig.branch();
    pushed(&branch, seed(&branch, &[("a", "1")])).await;
    let packs = || git(&rig.home.path().join("clone/objects/pack"), "ls");
    let before = packs();
    rig.http.refuse_pushes(REPOSITORY, Some("no"));
    let ticket = submit(&branch, &[("a", "alice", "2")]);
    until(&branch, |status| status.failure.as_ref().is_some_and(|failure| failure.attempts > 2)).await;
    assert_eq!(packs(), before, "each attempt writes a pack");
    rig.http.refuse_pushes(REPOSITORY, None);
    pushed(&branch, ticket).await;
}

#[tokio::test]
async fn a_host_without_room_loses_nothing() {
    let rig = Rig::new();
    let branch = rig.branch();
    pushed(&branch, seed(&branch, &[("a", "1")])).await;
    // Some of its answers break off, and leave git waiting for itself.
    let mut remote = rig.access(PASSWORD);
    remote.limits.stall_max = Duration::from_secs(5);
    branch.set_remote(remote);
    rig.http.set(Mode::Full);
    let large: String = (0..20_000).map(|_| rand::random_range('a'..='z')).collect();
    let ticket = submit(&branch, &[("a", "alice", &large), ("b", "bob", "1")]);
    let is_full = |status: &BranchStatus| {
        status.failure.as_ref().is_some_and(|failure| failure.reason == FailureReason::DiskFull)
    };
    until(&branch, is_full).await;
    let status = branch.status().borrow().clone();
    let failure = status.failure.unwrap();
    assert!(failure.message.contains("the Git server has no room: make some there"), "{failure:?}");
    assert!(status.acknowledged < ticket && status.queue_depth == 2);
    rig.http.set(Mode::Up);
    pushed(&branch, ticket).await;
    assert_eq!(rig.log().len(), 3);
    rig.git("git fsck --strict");
}

/// The push arrived, and nobody said so: on top of itself, the batch would say
/// again what alice made of an object, and then what bob made of that.
#[tokio::test]
async fn a_push_that_is_not_answered_is_not_repeated() {
    for is_followed in [false, true] {
        let rig = Rig::new();
        let branch = rig.branch();
        pushed(&branch, seed(&branch, &[("a", "1")])).await;
        let mut remote = rig.access(PASSWORD);
        remote.limits.stall_max = Duration::from_secs(1);
        branch.set_remote(remote);
        if is_followed {
            // Somebody else's commit is on top of it before we look.
            let hook = "#!/bin/sh\nmkdir once || exit 0\nc=$(GIT_AUTHOR_NAME=eve git commit-tree -p main -m foreign main^{tree})\ngit update-ref refs/heads/main $c\n";
            std::fs::write(rig.remote.join("hooks/post-receive"), hook).unwrap();
            rig.git("chmod +x hooks/post-receive");
        }
        rig.http.set(Mode::Mute);
        seed(&branch, &[("a", "1"), ("b", "1")]);
        let ticket = submit(&branch, &[("a", "alice", "2"), ("a", "bob", "3"), ("b", "alice", "2")]);
        branch.flush();
        pushed(&branch, ticket).await;
        let mut expected = vec![
            "unknown: [CREATE] v1/configmaps/default/b by unknown",
            "alice: [UPDATE] v1/configmaps/default/a by user/alice",
            "bob: [UPDATE] v1/configmaps/default/a by user/bob",
            "alice: [UPDATE] v1/configmaps/default/b by user/alice",
        ];
        expected.extend(is_followed.then_some("eve: foreign"));
        assert_eq!(rig.log()[1..], expected);
        assert_eq!(branch.status().borrow().destinations[&id()].disturbed, 0, "nobody else changed it");
        rig.http.set(Mode::Up);
        pushed(&branch, submit(&branch, &[("a", "alice", "4")])).await;
        assert_eq!(rig.log().len(), expected.len() + 2);
    }
}

/// What a host that died in the middle of a push may leave.
#[tokio::test]
async fn a_lock_that_a_host_left_is_named() {
    let rig = Rig::new();
    let branch = rig.branch();
    pushed(&branch, seed(&branch, &[("a", "1")])).await;
    rig.git("touch refs/heads/main.lock");
    let ticket = submit(&branch, &[("a", "alice", "2")]);
    until(&branch, |status| status.failure.is_some()).await;
    let failure = branch.status().borrow().failure.clone().unwrap();
    assert_eq!(failure.reason, FailureReason::PushRejected, "{failure:?}");
    assert!(failure.message.contains("main.lock"), "{failure:?}");
    rig.git("rm refs/heads/main.lock");
    pushed(&branch, ticket).await;
}

#[tokio::test]
async fn a_branch_that_is_not_there_is_named() {
    let rig = Rig::new();
    rig.foreign("echo 1 > a");
    rig.git("git branch -m main trunk");
    let branch = rig.branch();
    until(&branch, |status| status.failure.is_some()).await;
    let failure = branch.status().borrow().failure.clone().unwrap();
    assert_eq!(failure.reason, FailureReason::BranchNotFound, "{failure:?}");
    assert!(failure.message.contains("`main`"), "{failure:?}");
    rig.git("git branch -m trunk main");
    pushed(&branch, seed(&branch, &[("a", "1")])).await;
}

/// Another replica may work: what this one remembers goes nowhere any more.
#[tokio::test]
async fn nothing_is_pushed_after_the_lease_is_lost() {
    let rig = Rig::new();
    let term = Term::endless();
    let config = BranchConfig { term: term.clone(), ..config(rig.home.path(), rig.limits()) };
    let branch = Branch::start(config, rig.access(PASSWORD), rig.cluster.clone(), GitMetrics::default());
    branch.set_destination(&id(), destination(SecretPolicy::Skip));
    pushed(&branch, seed(&branch, &[("a", "1")])).await;
    let head = rig.git("git rev-parse main");
    term.end();
    let ticket = submit(&branch, &[("a", "alice", "2")]);
    until(&branch, |status| status.failure.as_ref().is_some_and(|failure| failure.attempts > 2)).await;
    let status = branch.status().borrow().clone();
    let failure = status.failure.unwrap();
    assert!(failure.message.contains("another replica may work"), "{failure:?}");
    assert!(status.acknowledged < ticket && status.queue_depth == 1);
    assert_eq!(rig.git("git rev-parse main"), head);
}
