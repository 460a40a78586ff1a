//! What an accepted push does.

use super::super::process::Site;
use super::super::watch::metrics;
use super::{CONTROL, CRD, Hosted, Tree, admin, widget};

#[test]
fn a_kind_and_its_object_in_one_push_are_there_when_it_returns() {
    let hosted = Hosted::start();
    hosted.tree.write("kinds/widgets.yaml", CRD).write("a.yaml", &widget("a", 1)).commit();
    let told = hosted.tree.pushed();
    assert_eq!(hosted.site.say("get widgets -o name").good(), "widgets.example.com/a\n");
    let version = hosted.field("widget a", "/metadata/resourceVersion");
    assert!(told.contains(&format!("remote: +2 ~0 -0 objects, resourceVersion {version}")), "{told}");
    for (annotation, expected) in
        [("repository", CONTROL.to_owned()), ("path", "a.yaml".to_owned()), ("commit", hosted.tree.head())]
    {
        let pointer = format!("/metadata/annotations/tidegate.dev~1source-{annotation}");
        assert_eq!(hosted.field("widget a", &pointer), expected);
    }
}

#[test]
fn a_moved_file_is_the_same_object_a_deleted_one_is_gone() {
    let hosted = Hosted::start();
    hosted.tree.write("crd.yaml", CRD).write("a.yaml", &widget("a", 1)).commit().pushed();
    let identity = || (hosted.field("widget a", "/metadata/uid"), hosted.field("widget a", "/metadata/generation"));
    let before = identity();
    hosted.tree.write("b/placeholder.txt", "").git(&["mv", "a.yaml", "b/c.yaml"]).good();
    let told = hosted.tree.commit().pushed();
    assert!(told.contains("+0 ~1 -0 objects"), "{told}");
    assert_eq!(identity(), before);
    assert_eq!(hosted.field("widget a", "/metadata/annotations/tidegate.dev~1source-path"), "b/c.yaml");

    hosted.tree.write("b/c.yaml", &widget("a", 2)).commit().pushed();
    assert_eq!(identity(), (before.0, "2".into()), "a change of spec is a new generation");

    hosted.tree.git(&["rm", "-q", "b/c.yaml"]).good();
    let told = hosted.tree.commit().pushed();
    assert!(told.contains("+0 ~0 -1 objects"), "{told}");
    assert_eq!(hosted.site.say("get widgets -o name").good(), "");
}

#[test]
fn another_branch_is_stored_and_not_projected() {
    let hosted = Hosted::start();
    hosted.tree.write("crd.yaml", CRD).write("broken.yaml", "a: [").commit();
    let said = hosted.tree.git(&["push", "origin", "HEAD:draft"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.err.contains("stored; only main is projected"), "{}", said.err);
    assert!(!hosted.site.say("kinds").good().contains("widgets"));
    let other = Tree::clone(&hosted.site, CONTROL, "other");
    other.git(&["fetch", "-q", "origin", "draft"]).good();
    // It may be rewritten and deleted as its authors like.
    hosted.tree.git(&["commit", "-q", "--amend", "-m", "again"]).good();
    hosted.tree.git(&["push", "-q", "--force", "origin", "HEAD:draft"]).good();
    hosted.tree.git(&["push", "-q", "origin", ":draft"]).good();
}

#[test]
fn a_repository_comes_with_its_object_and_keeps_to_its_rules() {
    let hosted = Hosted::start();
    let repository = "apiVersion: tidegate.dev/v1\nkind: Repository\nmetadata: {name: goods, namespace: default}\n\
                      spec: {branch: trunk, path: deploy, allowForce: true}\n";
    hosted.tree.write("goods.yaml", repository).write("crd.yaml", CRD).commit().pushed();
    let goods = Tree::clone(&hosted.site, "default/goods", "goods");
    goods.write("deploy/a.yaml", &widget("a", 1)).write("elsewhere/b.yaml", "a: [").commit();
    let push = |args: &[&str]| goods.git(&[&["push", "origin", "HEAD:trunk"], args].concat());
    assert_eq!(push(&[]).code, Some(0));
    assert_eq!(hosted.site.say("get widgets -o name").good(), "widgets.example.com/a\n");

    // Its own namespace alone, and nothing of the cluster.
    let elsewhere = widget("b", 1).replace("default", "system");
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: more}\n";
    goods.write("deploy/b.yaml", &elsewhere).write("deploy/c.yaml", namespace).commit();
    let refused = push(&[]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.err.contains("deploy/b.yaml:3") && refused.err.contains("deploy/c.yaml"), "{}", refused.err);

    // A forced push is allowed here, and projects the difference of the trees.
    goods.git(&["reset", "-q", "--hard", "HEAD~1"]).good();
    goods.git(&["rm", "-q", "deploy/a.yaml"]).good();
    goods.write("deploy/d.yaml", &widget("d", 1)).git(&["add", "-A"]).good();
    goods.git(&["commit", "-q", "--amend", "-m", "another start"]).good();
    let forced = push(&["--force"]);
    assert!(forced.err.contains("+1 ~0 -1 objects"), "{}", forced.err);
    assert_eq!(hosted.site.say("get widgets -o name").good(), "widgets.example.com/d\n");
}

#[test]
fn another_folder_is_projected_when_the_object_says_so() {
    let hosted = Hosted::start();
    let define = |path: &str| {
        let repository = format!(
            "apiVersion: tidegate.dev/v1\nkind: Repository\nmetadata: {{name: goods, namespace: default}}\nspec: {{path: {path}}}\n"
        );
        hosted.tree.write("goods.yaml", &repository).write("crd.yaml", CRD).commit().pushed();
    };
    define("one");
    let goods = Tree::clone(&hosted.site, "default/goods", "goods");
    goods.write("one/a.yaml", &widget("a", 1)).write("two/b.yaml", &widget("b", 1)).commit().pushed();
    assert_eq!(hosted.site.say("get widgets -o name").good(), "widgets.example.com/a\n");
    let since = hosted.field("widget a", "/metadata/resourceVersion");
    define("two");
    let seen = hosted.site.say(&format!("watch widgets -o name --count 2 --timeout 1m --since {since}")).good();
    let mut seen: Vec<&str> = seen.lines().collect();
    seen.sort_unstable();
    assert_eq!(seen, ["ADDED widgets.example.com/b", "DELETED widgets.example.com/a"]);
}

#[test]
fn the_examples_are_pushed() {
    let hosted = Hosted::start();
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut copy = std::process::Command::new("cp");
    copy.arg("-r").args([examples.join("shop"), examples.join("sites"), hosted.tree.dir.clone()]);
    assert!(copy.status().unwrap().success());
    let told = hosted.tree.commit().pushed();
    assert!(told.contains("~0 -0 objects"), "{told}");
    assert!(hosted.site.say("get products -n shop -o name").good().contains("/desk-lamp"));
    assert!(hosted.site.say("get sites -n system -o name").good().contains("/blog"));
}

#[test]
fn of_two_pushers_at_once_one_wins() {
    let hosted = Hosted::start();
    hosted.tree.write("crd.yaml", CRD).commit().pushed();
    let trees: Vec<Tree> =
        ["x", "y", "z"].map(|name| Tree::clone(&hosted.site, CONTROL, &format!("clone-{name}"))).into();
    for (index, tree) in trees.iter().enumerate() {
        tree.write(&format!("{index}.yaml"), &widget(&format!("w{index}"), 1)).commit();
    }
    let codes: Vec<Option<i32>> = std::thread::scope(|scope| {
        let pushes: Vec<_> = trees.iter().map(|tree| scope.spawn(|| tree.push(&[]).code)).collect();
        pushes.into_iter().map(|push| push.join().unwrap()).collect()
    });
    assert_eq!(codes.iter().filter(|code| **code == Some(0)).count(), 1, "{codes:?}");
    assert_eq!(hosted.site.say("get widgets -o name").good().lines().count(), 1);
    // The others do what they always do.
    for tree in &trees {
        if tree.push(&[]).code != Some(0) {
            tree.git(&["pull", "-q", "--rebase", "origin", "main"]).good();
            tree.pushed();
        }
    }
    assert_eq!(hosted.site.say("get widgets -o name").good().lines().count(), 3);
}

#[test]
fn pushes_are_counted() {
    let hosted = Hosted::start();
    hosted.tree.write("crd.yaml", CRD).write("a.yaml", &widget("a", 1)).commit().pushed();
    hosted.tree.write("a.yaml", &widget("a", 2)).commit().pushed();
    hosted.tree.write("a.yaml", &widget("a", 101)).commit().refused();
    let text = metrics(hosted.site.port, &admin(&hosted.site));
    for line in [
        "tidegate_git_pushes_total{outcome=\"accepted\"} 2",
        "tidegate_git_pushes_total{outcome=\"refused\"} 1",
        "tidegate_git_projected_objects_total{effect=\"created\"} 2",
        "tidegate_git_projected_objects_total{effect=\"updated\"} 1",
        "tidegate_git_projected_objects_total{effect=\"deleted\"} 0",
    ] {
        assert!(text.lines().any(|found| found == line), "no {line} in {text}");
    }
    let received = text.lines().find_map(|line| line.strip_prefix("tidegate_git_received_bytes_total "));
    assert!(received.unwrap().parse::<u64>().unwrap() > 500, "{text}");
}

/// The second builds on the first: git has to find what is there.
#[test]
fn the_folder_may_have_any_name() {
    for name in ["a:b", "\"a\"", "a\nb", "a\\:\"b c;'$d"] {
        let hosted = Hosted::start_at(Site::in_folder(name), &[]);
        let many: String = (0..50).map(|at| format!("# {at}\n")).collect();
        hosted.tree.write("crd.yaml", CRD).write("a.yaml", &(many.clone() + &widget("a", 1))).commit().pushed();
        hosted.tree.write("a.yaml", &(many + &widget("a", 2))).commit();
        let told = hosted.tree.pushed();
        assert!(told.contains("+0 ~1 -0 objects"), "{name:?}: {told}");
        assert_eq!(hosted.field("widget a", "/spec/size"), "2", "{name:?}");
    }
}
