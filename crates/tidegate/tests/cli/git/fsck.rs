//! Objects that git itself would not let in.

use super::super::process::said;
use super::{CRD, Hosted, Tree, git, widget};

/// With a commit that is not pushed yet: 120 files and so 122 objects.
fn with_many_files() -> Hosted {
    let hosted = Hosted::start();
    hosted.tree.write("crd.yaml", CRD).write("a.yaml", &widget("a", 1)).commit().pushed();
    for at in 0..120 {
        hosted.tree.write(&format!("many/w{at}.yaml"), &widget(&format!("w{at}"), at % 100));
    }
    hosted.tree.commit();
    hosted
}

/// Entries of a tree on top of the last one, as `git mktree` takes them.
fn entries_with(tree: &Tree, more: &str) -> String {
    tree.git(&["ls-tree", "HEAD"]).good() + more
}

/// A push of `entries` to any branch says `expected` and leaves nothing.
fn check(hosted: &Hosted, entries: &str, expected: &str) {
    let (tree, head) = (&hosted.tree, hosted.tree.head());
    tree.commit_tree(entries);
    let bad = tree.head();
    for branch in ["main", "other"] {
        let told = tree.git(&["push", "origin", &format!("HEAD:refs/heads/{branch}")]);
        assert_eq!(told.code, Some(1), "{branch}: {}", told.err);
        assert!(
            told.err.contains(expected) && told.err.contains("remote: refused: nothing has changed"),
            "{}",
            told.err
        );
        let found = said(&mut git(&hosted.bare(), &["cat-file", "-e", &bad]));
        assert_ne!(found.code, Some(0), "nothing of it is kept");
    }
    tree.git(&["reset", "-q", "--soft", &head]).good();
}

#[test]
fn what_git_refuses_is_refused() {
    let hosted = with_many_files();
    let tree = &hosted.tree;
    let blob = tree.git(&["rev-parse", "HEAD:a.yaml"]).good().trim().to_owned();
    let file = |name: &str| format!("100644 blob {blob}\t{name}\n");
    for (part, expected) in [
        ("..", "hasDotdot"),
        (".", "hasDot"),
        (".git", "hasDotgit"),
        (".GIT", "hasDotgit"),
        (".git ", "hasDotgit"),
        ("git~1", "hasDotgit"),
        ("a.yaml", "duplicateEntries"),
    ] {
        check(&hosted, &entries_with(tree, &file(part)), expected);
    }
    let modules = tree.fed(&["hash-object", "-w", "--stdin"], "[submodule \"a\"]\n\tpath = a\n\turl = -u\n");
    let entry = format!("100644 blob {modules}\t.gitmodules\n");
    check(&hosted, &entries_with(tree, &entry), "gitmodulesUrl");
    let link = format!("120000 blob {blob}\t.gitmodules\n");
    check(&hosted, &entries_with(tree, &link), "gitmodulesSymlink");
    // What remains is good.
    let pushed = hosted.tree.pushed();
    assert!(pushed.contains("+120 ~0 -0 objects"), "{pushed}");
    assert_eq!(hosted.site.say("repo verify").good().matches("agree").count(), 1);
    let clone = Tree::clone(&hosted.site, super::CONTROL, "clone");
    clone.git(&["fsck", "--strict"]).good();
}

/// A pack that is good, but not for this file.
#[test]
fn an_entry_that_is_no_file() {
    let hosted = with_many_files();
    let folder = hosted.tree.git(&["rev-parse", "HEAD:many"]).good().trim().to_owned();
    hosted.tree.entry("100644", &folder, b"x.yaml");
    let told = hosted.tree.push(&[]);
    assert_ne!(told.code, Some(0), "{}", told.err);
    assert!(!told.err.contains("the server failed"), "{}", told.err);
    assert_eq!(hosted.site.say("get widgets -o name").good(), "widgets.example.com/a\n");
}
