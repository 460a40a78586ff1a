//! Who wrote an object, and which files are nobody's.

use super::{CRD, Hosted, Tree, git, widget};
use crate::process::said;

const AUTHOR: &str = "/metadata/annotations/tidegate.dev~1source-author";

/// A commit of everything by somebody else.
fn commit_by(tree: &Tree, name: &str) {
    tree.git(&["add", "-A"]).good();
    let mut command = git(&tree.dir, &["commit", "-q", "-m", "theirs"]);
    said(command.env("GIT_AUTHOR_NAME", name).env("GIT_AUTHOR_EMAIL", "x@example.com")).good();
}

#[test]
fn the_author_is_whoever_touched_the_file_last_in_the_push() {
    let hosted = Hosted::start();
    let tree = &hosted.tree;
    let author = |name: &str| hosted.field(&format!("widget {name}"), AUTHOR);
    tree.write("crd.yaml", CRD).write("a.yaml", &widget("a", 1)).write("b.yaml", &widget("b", 1)).commit().pushed();
    assert_eq!(author("a"), "Ada <ada@example.com>");

    tree.write("a.yaml", &widget("a", 2)).write("b.yaml", &widget("b", 2));
    commit_by(tree, "Grace");
    tree.write("b.yaml", &widget("b", 3));
    commit_by(tree, "Edsger");
    tree.git(&["commit", "-q", "--allow-empty", "-m", "nothing"]).good();
    tree.pushed();
    assert_eq!((author("a"), author("b")), ("Grace <x@example.com>".into(), "Edsger <x@example.com>".into()));

    // A push that leaves an object alone leaves its author alone.
    tree.write("a.yaml", &format!("# a comment\n{}", widget("a", 2))).write("b.yaml", &widget("b", 4));
    commit_by(tree, "Barbara");
    tree.pushed();
    assert_eq!((author("a"), author("b")), ("Grace <x@example.com>".into(), "Barbara <x@example.com>".into()));
}

#[test]
fn a_merge_keeps_the_authors_of_what_it_merges() {
    let hosted = Hosted::start();
    let tree = &hosted.tree;
    tree.write("crd.yaml", CRD).write("a.yaml", &widget("a", 1)).commit().pushed();
    tree.git(&["checkout", "-q", "-b", "side"]).good();
    tree.write("b.yaml", &widget("b", 1));
    commit_by(tree, "Grace");
    tree.git(&["checkout", "-q", "-"]).good();
    tree.write("a.yaml", &widget("a", 2)).commit();
    tree.git(&["merge", "-q", "--no-ff", "-m", "merge", "side"]).good();
    tree.pushed();
    assert_eq!(hosted.field("widget b", AUTHOR), "Grace <x@example.com>");
}

/// A merge that is none of its two sides is its own author's.
#[test]
fn a_merge_that_mends_a_conflict_is_of_whoever_mended_it() {
    let hosted = Hosted::start();
    let tree = &hosted.tree;
    tree.write("crd.yaml", CRD).write("a.yaml", &widget("a", 1)).commit().pushed();
    tree.git(&["checkout", "-q", "-b", "side"]).good();
    tree.write("a.yaml", &widget("a", 2));
    commit_by(tree, "Grace");
    tree.git(&["checkout", "-q", "-"]).good();
    tree.write("a.yaml", &widget("a", 3));
    commit_by(tree, "Alan");
    tree.git(&["merge", "-q", "--no-ff", "-m", "merge", "side"]);
    tree.write("a.yaml", &widget("a", 4));
    commit_by(tree, "Rex");
    tree.pushed();
    assert_eq!(hosted.field("widget a", AUTHOR), "Rex <x@example.com>");
}

#[test]
fn hidden_files_are_ignored_by_a_push_as_by_a_check() {
    let hosted = Hosted::start();
    let tree = &hosted.tree;
    tree.write("crd.yaml", CRD).write("a.yaml", &widget("a", 1));
    tree.write(".github/workflows/ci.yaml", "on: push\n")
        .write(".hidden.yaml", "a: [")
        .write("x/.b/c.json", "nonsense");
    let checked = hosted.site.say("check control").good();
    assert!(!checked.contains("hidden"), "{checked}");
    let told = tree.commit().pushed();
    assert!(told.contains("+2 ~0 -0 objects"), "{told}");
    // Out of hiding, and back.
    tree.git(&["mv", ".hidden.yaml", "seen.yaml"]).good();
    tree.git(&["commit", "-q", "-m", "seen"]).good();
    assert!(tree.refused().contains("seen.yaml:"));
    tree.write("seen.yaml", &widget("b", 1)).commit().pushed();
    tree.git(&["mv", "seen.yaml", ".hidden.yaml"]).good();
    tree.git(&["commit", "-q", "-m", "hidden"]).good();
    let told = tree.pushed();
    assert!(told.contains("+0 ~0 -1 objects"), "{told}");
}
