//! Who did what, commit by commit.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tidegate_reverser::branch::{Destination, Limits};
use tidegate_reverser::secrets::SecretPolicy;
use tidegate_reverser::signing::SigningKey;

use crate::rig::{Rig, change, destination, git, id, pushed, seed, submit, until};

#[tokio::test]
async fn an_empty_repository_is_begun_by_the_first_push() {
    let rig = Rig::new();
    let branch = rig.branch();
    let ticket = submit(&branch, &[("app-config", "alice", "1")]);
    pushed(&branch, ticket).await;
    assert_eq!(rig.log(), ["alice: [CREATE] v1/configmaps/default/app-config by user/alice"]);
    assert_eq!(rig.names(), "live/v1/configmaps/default/app-config.yaml");
    assert_eq!(rig.git("git log -1 --format='%ae %cn %ce' main"), "alice@example.com tidegate tidegate@example.com");
    let trailers = rig.git("git log -1 --format=%B main | git interpret-trailers --parse");
    assert_eq!(
        trailers,
        "X-ConfigButler-ClusterUID: c-1\nX-ConfigButler-ControllerNS: system\n\
         X-ConfigButler-ControllerName: tidegate\nX-ConfigButler-InstanceID: i-1\n\
         X-ConfigButler-Object: v1/configmaps/default/app-config uid=u-1 resourceVersion=1"
    );
    rig.git("git fsck --strict");
    let status = branch.status().borrow().clone();
    assert_eq!(status.head.unwrap().as_str(), rig.git("git rev-parse main"));
    assert_eq!((status.queue_depth, status.failure), (0, None));
}

#[tokio::test]
async fn a_change_of_author_starts_the_next_commit_and_one_push_carries_them_all() {
    let rig = Rig::new();
    rig.git("printf '#!/bin/sh\\ncat >> pushes\\n' > hooks/post-receive; chmod +x hooks/post-receive");
    let limits = Limits { silence: Duration::from_secs(3600), wait_max: Duration::from_secs(3600), ..rig.limits() };
    let branch = rig.branch_with(limits, destination(SecretPolicy::Skip));
    let ticket = submit(
        &branch,
        &[
            ("a", "alice", "1"),
            ("b", "alice", "1"),
            ("a", "alice", "2"),
            ("c", "bob", "1"),
            ("c", "alice", "2"),
            ("c", "bob", "1"),
            ("gone", "bob", "1"),
            ("gone", "bob", ""),
            ("d", "", "1"),
        ],
    );
    branch.flush();
    pushed(&branch, ticket).await;
    assert_eq!(
        rig.log(),
        [
            "alice: [CREATE] 2 objects by user/alice",
            "bob: [CREATE] v1/configmaps/default/c by user/bob",
            "alice: [UPDATE] v1/configmaps/default/c by user/alice",
            "bob: [UPDATE] v1/configmaps/default/c by user/bob",
            "unknown: [CREATE] v1/configmaps/default/d by unknown",
        ]
    );
    assert_eq!(rig.git("wc -l < pushes"), "1");
    assert!(rig.files()["live/v1/configmaps/default/a.yaml"].contains("v: \"2\""));
}

#[tokio::test]
async fn nothing_new_is_no_commit() {
    let rig = Rig::new();
    let branch = rig.branch();
    pushed(&branch, submit(&branch, &[("a", "alice", "1")])).await;
    pushed(&branch, submit(&branch, &[("a", "bob", "1"), ("b", "bob", "")])).await;
    pushed(&branch, seed(&branch, &[("a", "1")])).await;
    assert_eq!(rig.log().len(), 1);
    branch.stop().await;
    // A new process, with the clone and without it.
    for _ in 0..2 {
        let branch = rig.branch();
        pushed(&branch, seed(&branch, &[("a", "1")])).await;
        branch.stop().await;
        std::fs::remove_dir_all(rig.home.path().join("clone")).unwrap();
    }
    assert_eq!(rig.log().len(), 1);
}

#[tokio::test]
async fn what_is_too_much_to_keep_is_read_again() {
    let rig = Rig::new();
    let limits = Limits { pending_bytes_max: 100, ..rig.limits() };
    let branch = rig.branch_with(limits, destination(SecretPolicy::Skip));
    {
        let mut cluster = rig.cluster.0.lock().unwrap();
        for at in 0..50 {
            let name = format!("n{at}");
            cluster.insert(crate::rig::key(&name), crate::rig::state(&name, "later"));
        }
    }
    let submit = |at| branch.submit(&id(), change(&format!("n{at}"), "alice", "1"));
    let tickets: Vec<_> = (0..60).map(submit).collect();
    pushed(&branch, tickets[59]).await;
    let files = rig.files();
    // Ten are gone by the time that they are read.
    assert_eq!(files.len(), 50, "{:?}", files.keys());
    assert!(files.values().filter(|text| text.contains("v: later") || text.contains("v: \"later\"")).count() >= 49);
}

/// A key of `ssh-keygen` with these flags.
fn generated_key(dir: &Path, flags: &str) -> String {
    git(dir, &format!("rm -f key key.pub; ssh-keygen -q {flags} -C op -f key"));
    std::fs::read_to_string(dir.join("key")).unwrap()
}

#[tokio::test]
async fn commits_are_signed() {
    for (flags, passphrase) in [
        ("-t ed25519 -N secret", Some("secret")),
        ("-t ed25519 -N ''", None),
        ("-t rsa -b 2048 -N ''", None),
        ("-t ecdsa -b 256 -N ''", None),
    ] {
        let rig = Rig::new();
        let dir = rig.home.path();
        let text = generated_key(dir, flags);
        git(dir, "(printf 'tidegate@example.com '; cat key.pub) > allowed");
        let signer = SigningKey::parse(&text, passphrase).unwrap_or_else(|why| panic!("{flags}: {why}"));
        let destination = Destination { signer: Some(Arc::new(signer)), ..destination(SecretPolicy::Skip) };
        let branch = rig.branch_with(rig.limits(), destination);
        pushed(&branch, submit(&branch, &[("a", "alice", "1"), ("b", "bob", "1")])).await;
        let allowed = dir.join("allowed");
        let verify = format!("git -c gpg.ssh.allowedSignersFile={} verify-commit -v", allowed.display());
        rig.git(&format!("{verify} main; {verify} main~1; git fsck --strict"));
    }
}

#[test]
fn keys_that_cannot_sign_are_refused_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |text: &str, passphrase| SigningKey::parse(text, passphrase).err().unwrap().to_string();
    let locked = generated_key(dir.path(), "-t ed25519 -N secret");
    assert!(refused(&locked, None).contains("passphrase"));
    assert!(refused(&locked, Some("wrong")).contains("does not open"));
    assert!(refused("x", None).contains("not an OpenSSH private key"));
    let pem = generated_key(dir.path(), "-t rsa -b 2048 -m PEM -N ''");
    assert!(refused(&pem, None).contains("not an OpenSSH private key"));
    for bits in [384, 521] {
        let why = refused(&generated_key(dir.path(), &format!("-t ecdsa -b {bits} -N ''")), None);
        assert!(why.contains("ed25519"), "{bits}: {why}");
    }
}

#[tokio::test]
async fn a_clone_that_is_damaged_is_made_again() {
    let rig = Rig::new();
    let branch = rig.branch();
    pushed(&branch, submit(&branch, &[("a", "alice", "1")])).await;
    branch.stop().await;
    let clone = rig.home.path().join("clone");
    git(&clone, "for pack in objects/pack/*.pack; do chmod u+w $pack; : > $pack; done; : > refs/heads/x.lock");
    let branch = rig.branch();
    pushed(&branch, submit(&branch, &[("b", "alice", "1")])).await;
    assert_eq!(rig.names(), "live/v1/configmaps/default/a.yaml live/v1/configmaps/default/b.yaml");
}

#[tokio::test]
async fn two_processes_do_not_share_a_clone() {
    let rig = Rig::new();
    let (first, second) = (rig.branch(), rig.branch());
    let failed = |branch: &tidegate_reverser::branch::Branch| branch.status().borrow().failure.clone();
    tokio::select! {
        () = until(&first, |status| status.failure.is_some()) => {}
        () = until(&second, |status| status.failure.is_some()) => {}
    }
    let failure = failed(&first).or(failed(&second)).unwrap();
    assert!(failure.message.contains("--work-dir"), "{failure:?}");
}
