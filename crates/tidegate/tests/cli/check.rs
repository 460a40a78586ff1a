//! `tidegate check`, on the examples and on broken copies of them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::process::{Said, Site, said, tidegate};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// A work tree with the examples, to be broken.
struct Tree(tempfile::TempDir);

impl Tree {
    fn of_examples() -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        copy(&examples(), tree.0.path());
        tree
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn say(&self, line: &str) -> Said {
        said(tidegate(self.0.path()).args(line.split(' ')))
    }
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir(&target).unwrap();
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).unwrap();
        }
    }
}

fn product(name: &str, rest: &str) -> String {
    format!("apiVersion: catalog.gitstore.dev/v1beta1\nkind: Product\nmetadata: {{name: {name}}}\n{rest}\n")
}

#[test]
fn the_examples_have_no_problems() {
    let tree = Tree::of_examples();
    for line in ["check", "check .", "check shop", "check sites -n default"] {
        let text = tree.say(line).good();
        assert!(text.contains(" objects in ") && text.ends_with(", no problems\n"), "{line}: {text}");
    }
    let one = tree.say("check shop/namespace.yaml").good();
    assert_eq!(one, "1 object in 1 file, no problems\n");
}

#[test]
fn what_cannot_be_checked_is_named() {
    let tree = Tree::of_examples();
    for (path, expected) in [("nowhere", "there is no nowhere"), ("/dev/null", "neither a folder nor a plain file")] {
        let said = tree.say(&format!("check {path}"));
        assert_eq!(said.code, Some(2), "{}", said.err);
        assert!(said.err.contains(expected), "{}", said.err);
    }
}

#[test]
fn problems_lead_to_their_lines() {
    let tree = Tree::of_examples();
    for (file, text, expected) in [
        (
            "shop/a.yaml",
            "apiVersion: v1\nkind: Namespac\nmetadata: {name: a}\n",
            "shop/a.yaml:2: kind: there is no kind",
        ),
        ("shop/a.yaml", "a: 1\na: 2\n", "shop/a.yaml:2: "),
        ("shop/a.json", "{}", "shop/a.json:1: "),
        ("shop/a.yaml", &product("x", "spec: {title: 7}"), "shop/a.yaml:4: spec.title: "),
        ("shop/a.yaml", &product("x, namespace: gone", "spec: {title: a}"), "shop/a.yaml:3: metadata.namespace: "),
        ("shop/a.yaml", &product("x", "status: {}"), "shop/a.yaml:4: status: "),
        ("shop/a.yaml", "kind: [", "shop/a.yaml:"),
    ] {
        let file_path = tree.0.path().join(file);
        tree.write(file, text);
        for line in ["check", "check shop", "check ./shop/"] {
            let refused = tree.say(line);
            assert_eq!(refused.code, Some(1), "{line}: {text}{}{}", refused.out, refused.err);
            assert!(refused.out.starts_with(expected), "{line}: {text}{}", refused.out);
            assert!(refused.out.ends_with(" problem\n") || refused.out.ends_with(" problems\n"), "{}", refused.out);
        }
        fs::remove_file(file_path).unwrap();
    }
}

#[test]
fn one_object_in_two_places() {
    let tree = Tree::of_examples();
    tree.write("two/a.yaml", &product("x", "spec: {title: a}"));
    tree.write("two/b.yaml", &product("x", "spec: {title: a}"));
    let refused = tree.say("check two");
    assert!(refused.out.contains("is already defined at two/a.yaml:1: remove one of the two"), "{}", refused.out);
}

#[test]
fn the_namespace_that_is_asked_for() {
    let tree = Tree::of_examples();
    tree.write("mine/a.yaml", &product("x, namespace: shop", "spec: {title: a}"));
    assert_eq!(tree.say("check mine").code, Some(1));
    tree.say("check mine -n shop").good();
}

#[test]
fn warnings_fail_only_if_asked_to() {
    let tree = Tree::of_examples();
    tree.write("odd/a.yaml", &product("x", "spec: {title: a, colour: red}"));
    let text = tree.say("check odd").good();
    assert!(text.starts_with("warning: odd/a.yaml:4: spec.colour: no schema knows this field"), "{text}");
    assert!(text.ends_with("1 object in 1 file, no problems, 1 warning\n"), "{text}");
    assert_eq!(tree.say("check odd --strict").code, Some(1));
    assert_eq!(tree.say("check shop --strict").code, Some(0));
}

#[test]
fn every_output_has_the_same_findings() {
    let tree = Tree::of_examples();
    tree.write("bad/a b.yaml", "apiVersion: v1\nkind: Namespac\nmetadata: {name: a}\n");
    let parsed = |line: &str| {
        let said = tree.say(line);
        assert_eq!(said.code, Some(1), "{line}");
        serde_json::from_str::<Value>(&said.out).unwrap()
    };
    let json = parsed("check bad --output json");
    assert_eq!((&json["problems"][0]["file"], &json["problems"][0]["line"]), (&"bad/a b.yaml".into(), &2.into()));
    let sarif = parsed("check bad --output sarif");
    let result = &sarif["runs"][0]["results"][0];
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!((&result["level"], &place["region"]["startLine"]), (&"error".into(), &2.into()));
    assert_eq!(place["artifactLocation"]["uri"], "bad/a%20b.yaml");
    let github = tree.say("check bad --output github");
    assert_eq!(github.code, Some(1));
    assert!(github.out.starts_with("::error file=bad/a b.yaml,line=2::kind: there is no kind"), "{}", github.out);
}

#[test]
fn what_is_not_read() {
    let tree = Tree::of_examples();
    for path in [".git/a.yaml", ".github/ci.yaml", "shop/.draft.yaml", "shop/photo.png"] {
        tree.write(path, "{{{");
    }
    tree.say("check").good();
    symlink("namespace.yaml", tree.0.path().join("shop/link.yaml")).unwrap();
    symlink("..", tree.0.path().join("shop/loop")).unwrap();
    let refused = tree.say("check");
    assert_eq!(refused.code, Some(1));
    let expected = ["shop/link.yaml", "shop/loop"].map(|path| format!("{path}: is a symbolic link"));
    let lines: Vec<&str> = refused.out.lines().collect();
    assert!(lines[0].starts_with(&expected[0]) && lines[1].starts_with(&expected[1]), "{}", refused.out);
    fs::create_dir(tree.0.path().join("empty")).unwrap();
    let empty = tree.say("check empty");
    assert_eq!((empty.code, &*empty.out), (Some(0), "0 objects in 0 files, no problems\n"));
    assert!(empty.err.contains("is it the right folder?"), "{}", empty.err);
}

#[test]
fn the_kinds_and_namespaces_of_a_server() {
    let site = Site::new();
    copy(&examples().join("sites"), &site.path("manifests"));
    site.define("namespace.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: there}\n");
    let _server = site.serve();
    fs::create_dir(site.path("tree")).unwrap();
    fs::copy(examples().join("sites/blog.yaml"), site.path("tree/blog.yaml")).unwrap();
    fs::write(site.path("tree/a.yaml"), product("x, namespace: there", "spec: {title: a}")).unwrap();
    let alone = site.say("check tree");
    assert_eq!(alone.code, Some(1));
    assert!(alone.out.contains("there is no kind"), "{}", alone.out);
    assert!(alone.out.contains("namespace there does not exist"), "{}", alone.out);
    assert!(site.say("check tree --with-server").good().ends_with("2 files, no problems\n"));
    // What the server has is no second definition.
    site.say("check manifests --with-server").good();
}
