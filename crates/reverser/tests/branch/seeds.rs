//! Complete lists against the tree.

use tidegate_reverser::branch::{Limits, Scope};
use tidegate_reverser::change::{Content, Listed};
use tidegate_reverser::secrets::SecretPolicy;
use tidegate_reverser::spool::SpoolWriter;

use crate::rig::{PATIENCE, Rig, destination, id, key, pushed, seed, state, submit, version, yaml};

#[tokio::test]
async fn a_seed_writes_what_differs_and_deletes_orphans_alone() {
    let rig = Rig::new();
    let folder = "live/v1/configmaps/default";
    let two = format!("{}---\n{}", yaml("two", "1"), yaml("other", "1"));
    rig.foreign(&format!(
        "mkdir -p {folder}; echo hi > README.md; echo hi > live/README.md; echo 'resources: []' > live/kustomization.yaml
         printf '%s' '{}' > {folder}/orphan.yaml; printf '%s' '{}' > {folder}/elsewhere.yaml; printf '%s' '{two}' > {folder}/two.yaml
         echo '{{{{ broken' > {folder}/broken.yaml; printf '%s' '{}' > orphan.yaml",
        yaml("orphan", "1"),
        yaml("another-name", "1"),
        yaml("orphan", "1"),
    ));
    let branch = rig.branch();
    pushed(&branch, seed(&branch, &[("a", "1"), ("b", "1")])).await;
    let expected = [
        "README.md",
        "live/README.md",
        "live/kustomization.yaml",
        "live/v1/configmaps/default/a.yaml",
        "live/v1/configmaps/default/b.yaml",
        "live/v1/configmaps/default/broken.yaml",
        "live/v1/configmaps/default/elsewhere.yaml",
        "live/v1/configmaps/default/two.yaml",
        "orphan.yaml",
    ];
    assert_eq!(rig.names(), expected.join(" "));
    assert_eq!(rig.log().last().unwrap(), "unknown: [SYNC] 3 objects (2 created, 1 deleted) by unknown");
    assert!(branch.status().borrow().destinations[&id()].is_seeded);
}

#[tokio::test]
async fn a_seed_of_one_type_speaks_for_that_type() {
    let rig = Rig::new();
    let branch = rig.branch();
    pushed(&branch, seed(&branch, &[("a", "1"), ("b", "1")])).await;
    let scope = |resource: &str, namespace: Option<&str>| Scope::Type {
        group: "".into(),
        version: "v1".into(),
        resource: resource.into(),
        namespace: namespace.map(Into::into),
    };
    branch.seed(&id(), scope("services", None), []);
    pushed(&branch, branch.seed(&id(), scope("configmaps", Some("other")), [])).await;
    assert_eq!(rig.log().len(), 1);
    let listed = Listed::new(key("b"), state("b", "1"));
    pushed(&branch, branch.seed(&id(), scope("configmaps", Some("default")), [listed])).await;
    assert_eq!(rig.names(), "live/v1/configmaps/default/b.yaml");
    pushed(&branch, branch.seed(&id(), scope("configmaps", None), [])).await;
    assert_eq!(rig.names(), "");
}

#[tokio::test]
async fn a_seed_of_what_is_listed_deletes_nothing() {
    let rig = Rig::new();
    let branch = rig.branch();
    pushed(&branch, seed(&branch, &[("a", "1"), ("b", "1")])).await;
    let scope = Scope::Listed { group: "".into(), version: "v1".into(), resource: "configmaps".into() };
    let listed = [("b", "2"), ("c", "1")].map(|(name, value)| Listed::new(key(name), state(name, value)));
    pushed(&branch, branch.seed(&id(), scope, listed)).await;
    assert_eq!(rig.names(), ["a", "b", "c"].map(|name| format!("live/v1/configmaps/default/{name}.yaml")).join(" "));
    assert_eq!(rig.files()["live/v1/configmaps/default/b.yaml"], yaml("b", "2").trim_end());
}

/// Contents of a long list are on disk until they are written. What the disk
/// has lost is read from the cluster.
#[tokio::test]
async fn contents_that_are_not_in_memory() {
    let rig = Rig::new();
    let [mut kept, mut lost] = [(); 2].map(|()| SpoolWriter::create(rig.home.path()).unwrap());
    let mut listed = Vec::new();
    for (name, is_kept) in [("a", true), ("b", false), ("c", false), ("d", true)] {
        let writer = if is_kept { &mut kept } else { &mut lost };
        let content = Content::Spooled(writer.add(yaml(name, "1").as_bytes()).await.unwrap());
        listed.push(Listed { key: key(name), version: version("1"), content });
    }
    kept.finish().await.unwrap();
    drop(lost);
    // The other one of them is gone by now.
    rig.cluster.0.lock().unwrap().insert(key("b"), state("b", "2"));
    let branch = rig.branch();
    pushed(&branch, branch.seed(&id(), Scope::Whole, listed)).await;
    let files = rig.files();
    let expected = [("a", "1"), ("b", "2"), ("d", "1")];
    let path = |name: &str| format!("live/v1/configmaps/default/{name}.yaml");
    assert_eq!(rig.names(), expected.map(|(name, _)| path(name)).join(" "));
    expected.iter().for_each(|(name, value)| assert_eq!(files[&path(name)], yaml(name, value).trim_end()));
}

#[tokio::test]
async fn more_orphans_than_a_commit_names() {
    let rig = Rig::new();
    let branch = rig.branch();
    let names: Vec<String> = (0..5500).map(|at| format!("n{at}")).collect();
    let objects: Vec<_> = names.iter().map(|name| (name.as_str(), "1")).collect();
    pushed(&branch, seed(&branch, &objects)).await;
    assert_eq!(rig.git("git ls-tree -r --name-only main | wc -l"), "5500");
    // Commits that grow: of a fixed size they would cost the square of the list.
    let sizes = [200, 200, 200, 200, 200, 250, 312, 390, 488, 610, 762, 953, 735];
    assert_eq!(sizes.iter().sum::<usize>(), 5500);
    let subject = |size: &usize| format!("unknown: [CREATE] {size} objects by unknown");
    assert_eq!(rig.log(), sizes.iter().map(subject).collect::<Vec<_>>());
    pushed(&branch, seed(&branch, &[("kept", "1")])).await;
    assert_eq!(rig.log().len(), 2 * sizes.len(), "orphans likewise");
    assert_eq!(rig.names(), "live/v1/configmaps/default/kept.yaml");
    rig.git("git fsck --strict");
}

#[tokio::test]
async fn a_foreign_pusher_moves_the_branch_all_the_time() {
    let rig = Rig::new();
    rig.foreign("echo 0 > foreign-0");
    let branch = rig.branch();
    let mut last = submit(&branch, &[("n0", "alice", "1")]);
    for round in 1..=12 {
        rig.foreign(&format!("echo {round} > foreign-{round}"));
        let (name, author) = (format!("n{round}"), if round % 2 == 0 { "alice" } else { "bob" });
        last = submit(&branch, &[(&name, author, "1")]);
    }
    pushed(&branch, last).await;
    let files = rig.files();
    assert_eq!(files.len(), 26, "{:?}", files.keys());
    assert_eq!(rig.git("git rev-list --merges --count main"), "0");
    rig.git("git fsck --strict");
}

/// What a batch has put is read again by the same batch: to see whose a file
/// is that a list does not have.
#[tokio::test]
async fn a_list_deletes_what_came_in_the_same_batch() {
    let rig = Rig::new();
    let branch = rig
        .branch_with(Limits { silence: PATIENCE, wait_max: PATIENCE, ..rig.limits() }, destination(SecretPolicy::Skip));
    submit(&branch, &[("gone", "alice", "1")]);
    pushed(&branch, seed(&branch, &[("a", "1")])).await;
    assert_eq!(rig.names(), "live/v1/configmaps/default/a.yaml");
    assert_eq!(rig.log().len(), 2, "{:?}", rig.log());
}
