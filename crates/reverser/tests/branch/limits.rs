//! What is bounded: turns, memory, disk.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tidegate_reverser::branch::{Branch, BranchConfig, GitMetrics, Limits, Scope, Turns};
use tidegate_reverser::change::Listed;
use tidegate_reverser::secrets::SecretPolicy;
use tidegate_testkit::git_http::{Mode, PASSWORD};
use tokio::sync::Semaphore;

use crate::rig::{Rig, config, destination, git, id, key, pushed, state, submit, until};

/// Much longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(120);
/// Packs at which a branch that has nothing to do joins them.
const PACKS_IDLE_MAX: usize = 64;

#[tokio::test]
async fn branches_take_turns_and_none_is_refused() {
    let (shared, all) = (tempfile::tempdir().unwrap(), Arc::new(Semaphore::new(1)));
    let rigs: Vec<_> = (0..3).map(|_| Rig::new()).collect();
    let dir = shared.path().display();
    let branches: Vec<_> = rigs
        .iter()
        .map(|rig| {
            // Two pushes at once would meet in the folder.
            rig.git(&format!(
                "printf '#!/bin/sh\\nmkdir {dir}/busy || touch {dir}/met\\nsleep 0.3\\nrmdir {dir}/busy\\n' > hooks/pre-receive
                 chmod +x hooks/pre-receive"
            ));
            let config = BranchConfig { turns: Turns::new(all.clone(), 5), ..config(rig.home.path(), rig.limits()) };
            let branch = Branch::start(config, rig.access(PASSWORD), rig.cluster.clone(), GitMetrics::default());
            branch.set_destination(&id(), destination(SecretPolicy::Skip));
            branch
        })
        .collect();
    let tickets: Vec<_> = branches.iter().map(|branch| submit(branch, &[("a", "alice", "1")])).collect();
    for (branch, ticket) in branches.iter().zip(tickets) {
        pushed(branch, ticket).await;
    }
    assert!(!shared.path().join("met").exists(), "two branches pushed at once");
    assert!(rigs.iter().all(|rig| rig.log().len() == 1));
}

#[tokio::test]
async fn without_room_for_the_states_between_nobody_is_named_for_anothers_change() {
    let rig = Rig::new();
    let branch = rig.branch_with(Limits { pending_bytes_max: 1, ..rig.limits() }, destination(SecretPolicy::Skip));
    until(&branch, |status| status.failure.is_none()).await;
    rig.http.set(Mode::Down);
    let changes = [
        ("both", "alice", "1"),
        ("both", "bob", "2"),
        ("own", "alice", "1"),
        ("since", "bob", "1"),
        ("gone", "bob", "1"),
    ];
    submit(&branch, &changes);
    let ticket = submit(&branch, &[("gone", "alice", "")]);
    until(&branch, |status| status.failure.is_some()).await;
    // As it is when it is read again: nobody has told of the last change of `since`.
    for (name, value) in [("both", "2"), ("own", "1"), ("since", "2")] {
        rig.cluster.0.lock().unwrap().insert(key(name), state(name, value));
    }
    rig.http.set(Mode::Up);
    pushed(&branch, ticket).await;
    assert_eq!(
        rig.log(),
        [
            "unknown: [CREATE] v1/configmaps/default/both by user/alice, user/bob",
            "alice: [CREATE] v1/configmaps/default/own by user/alice",
            "unknown: [CREATE] v1/configmaps/default/since by user/bob, unknown",
        ]
    );
    let trailers = rig.git("git log --format=%B main~2 | git interpret-trailers --parse | grep Co-authored-by");
    assert_eq!(trailers, "Co-authored-by: alice <alice@example.com>\nCo-authored-by: bob <bob@example.com>");
}

/// A restart beside a large branch: what there is no room for is read again
/// only where Git differs.
#[tokio::test]
async fn what_git_has_already_is_not_read_again() {
    let rig = Rig::new();
    let listed = |values: &[(&str, &str)]| {
        let states: Vec<_> = values.iter().map(|(name, value)| (key(name), state(name, value))).collect();
        rig.cluster.0.lock().unwrap().extend(states.iter().cloned());
        states.into_iter().map(|(key, state)| Listed::new(key, state))
    };
    let tight = Limits { pending_bytes_max: 1, ..rig.limits() };
    for (values, expected) in [
        (&[("a", "1"), ("b", "1"), ("c", "1")], &["a", "b", "c"][..]),
        (&[("a", "1"), ("b", "1"), ("c", "1")], &[]),
        (&[("a", "1"), ("b", "2"), ("c", "1")], &["b"]),
    ] {
        let branch = rig.branch_with(tight, destination(SecretPolicy::Skip));
        let ticket = branch.seed(&id(), Scope::Whole, listed(values));
        pushed(&branch, ticket).await;
        branch.stop().await;
        let mut read = std::mem::take(&mut *rig.cluster.1.lock().unwrap());
        read.sort();
        assert_eq!(read, expected, "{values:?}");
    }
    assert_eq!(rig.files().len(), 3);
}

/// As over months: what a push leaves behind does not add up.
#[tokio::test]
async fn the_clone_does_not_grow_with_the_number_of_pushes() {
    let rig = Rig::new();
    let limits = Limits { silence: Duration::ZERO, idle: Duration::from_millis(50), ..rig.limits() };
    let branch = rig.branch_with(limits, destination(SecretPolicy::Skip));
    for number in 0..=PACKS_IDLE_MAX {
        let ticket = submit(&branch, &[("a", "alice", &number.to_string())]);
        pushed(&branch, ticket).await;
    }
    let clone = rig.home.path().join("clone");
    tokio::time::timeout(PATIENCE, async {
        while packs(&clone) > PACKS_IDLE_MAX / 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .expect("the packs are joined");
    // It goes on from there.
    let ticket = submit(&branch, &[("a", "alice", "last")]);
    pushed(&branch, ticket).await;
    let kept: usize = git(&clone, "git rev-list --count --all").parse().unwrap();
    assert!(kept < PACKS_IDLE_MAX / 2, "{kept} commits of history");
    assert_eq!(rig.log().len(), PACKS_IDLE_MAX + 2, "the remote has them all");
    git(&clone, "git fsck --strict");
}

fn packs(clone: &Path) -> usize {
    let files = std::fs::read_dir(clone.join("objects/pack")).unwrap();
    files.filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|ending| ending == "pack")).count()
}
