//! What a push is refused for; nothing moves then.

use super::super::process::said;
use super::{CONTROL, CRD, Hosted, Tree, git, widget};

/// After `break_it`, the push says all of `expected`, and neither the branch
/// nor an object has changed.
fn check(hosted: &Hosted, break_it: impl FnOnce(&Tree), expected: &[&str]) {
    check_in(hosted, &hosted.tree, CONTROL, break_it, expected);
}

/// The same, for a tree of another repository.
fn check_in(hosted: &Hosted, tree: &Tree, repository: &str, break_it: impl FnOnce(&Tree), expected: &[&str]) {
    let bare = hosted.site.path(&format!("tidegate-data/repos/{repository}.git"));
    let branch = || said(&mut git(&bare, &["rev-parse", "main"])).good();
    // Not the list's own version: controllers write status of other kinds meanwhile.
    let objects = || {
        let list: serde_json::Value = serde_json::from_str(&hosted.site.say("get widgets -A -o json").good()).unwrap();
        list["items"].clone()
    };
    let (head, before) = (tree.head(), (branch(), objects()));
    break_it(tree);
    let told = tree.refused();
    for text in expected {
        assert!(told.contains(text), "no {text:?} in {told}");
    }
    assert_eq!((branch(), objects()), before);
    tree.git(&["reset", "-q", "--hard", &head]).good();
}

fn with_a_widget() -> Hosted {
    let hosted = Hosted::start();
    hosted.tree.write("crd.yaml", CRD).write("a.yaml", &widget("a", 1)).commit().pushed();
    hosted
}

/// Files, and what is said of them.
type Case<'c> = (&'c [(&'c str, String)], &'c [&'c str]);

#[test]
fn contents() {
    let hosted = with_a_widget();
    let bomb: String = (1..9)
        .map(|n| format!("a{n}: &a{n} [*a{p}, *a{p}, *a{p}, *a{p}, *a{p}, *a{p}, *a{p}, *a{p}]\n", p = n - 1))
        .collect();
    let deep = format!("{}spec: {}1{}\n", widget("b", 1), "[".repeat(200), "]".repeat(200));
    let cases: [Case<'_>; 12] = [
        (&[("a.yaml", widget("a", 101))], &["remote: a.yaml:5: spec.size: ", "remote: refused: nothing has changed"]),
        (&[("b.yaml", "a: [".into())], &["remote: b.yaml:"]),
        (&[("b.yaml", widget("a", 1))], &["b.yaml:3: metadata.name", "a.yaml"]),
        (&[("b.yaml", widget("x", 1)), ("c.yaml", widget("x", 2))], &["c.yaml:3", "already defined at b.yaml:1"]),
        (&[("b.yaml", widget("b", 1).replace("Widget", "Gadget"))], &["b.yaml:2: kind: there is no kind Gadget"]),
        (&[("b.yaml", widget("b", 1).replace("size: 1", "size: 1\n  size: 2"))], &["remote: b.yaml:6", "size"]),
        (&[("b.yaml", format!("a0: &a0 [x, x, x, x]\n{bomb}"))], &["remote: b.yaml"]),
        (&[("b.yaml", deep)], &["remote: b.yaml"]),
        (&[("b.yaml", format!("{}status: {{}}\n", widget("b", 1)))], &["b.yaml:6: status"]),
        (&[("b.yaml", widget("b", 1).replace("name: b", "name: b, uid: x"))], &["b.yaml:3: metadata.uid"]),
        (
            &[("b.yaml", widget("b", 1).replace("default", "nowhere"))],
            &["b.yaml:3: metadata.namespace", "does not exist"],
        ),
        (&[("b.yaml", format!("# {}", "x".repeat(4 << 20)))], &["b.yaml: ", "are more than the", "split the file"]),
    ];
    for (files, expected) in cases {
        check(
            &hosted,
            |tree| {
                for (path, text) in files {
                    tree.write(path, text);
                }
                tree.commit();
            },
            expected,
        );
    }
}

#[test]
fn entries_that_are_no_files_of_text() {
    let hosted = with_a_widget();
    let blob = hosted.tree.git(&["rev-parse", "HEAD:a.yaml"]).good().trim().to_owned();
    let commit = hosted.tree.head();
    let cases: [(&str, &str, &[u8], &str); 3] = [
        ("120000", &blob, b"link.yaml", "link.yaml: is a symbolic link"),
        ("160000", &commit, b"module", "module: is a submodule"),
        ("100644", &blob, b"na\xffme.yaml", "its name is not UTF-8"),
    ];
    for (mode, id, path, expected) in cases {
        check(&hosted, |tree| tree.entry(mode, id, path), &[expected]);
    }
}

#[test]
fn parts_of_a_path_that_mean_something_else() {
    let hosted = with_a_widget();
    let blob = hosted.tree.git(&["rev-parse", "HEAD:a.yaml"]).good().trim().to_owned();
    let file = |name: &str| format!("100644 blob {blob}\t{name}\n");
    for (part, expected) in [("..", "hasDotdot"), (".", "hasDot"), (".git", "hasDotgit"), (".GIT", "hasDotgit")] {
        let folder = |tree: &Tree| {
            let inner = tree.fed(&["mktree"], &file("b.yaml"));
            tree.commit_tree(&format!("{}040000 tree {inner}\t{part}\n", file("a.yaml")));
        };
        check(&hosted, folder, &[expected]);
        check(&hosted, |tree| tree.commit_tree(&file(part)), &[expected]);
    }
}

#[test]
fn what_a_repository_may_not_define() {
    let hosted = with_a_widget();
    let repository = "apiVersion: tidegate.dev/v1\nkind: Repository\nmetadata: {name: goods, namespace: default}\n\
                      spec: {kinds: [{group: example.com, kind: Widget}]}\n";
    hosted.tree.write("goods.yaml", repository).commit().pushed();
    let goods = Tree::clone(&hosted.site, "default/goods", "goods");
    goods.write("mine.yaml", &widget("mine", 1)).commit().pushed();
    let account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a, namespace: default}\n";
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: more}\n";
    let cases: [(String, &[&str]); 4] = [
        (widget("a", 1), &["x.yaml:3: metadata.name", "system/control"]),
        (widget("b", 1).replace("default", "system"), &["x.yaml:3: metadata.namespace", "system"]),
        (account.into(), &["x.yaml:2: kind", "ServiceAccount"]),
        (namespace.into(), &["x.yaml:2: kind", "Namespace"]),
    ];
    for (text, expected) in cases {
        let break_it = |tree: &Tree| {
            tree.write("x.yaml", &text).commit();
        };
        check_in(&hosted, &goods, "default/goods", break_it, expected);
    }
    goods.write("mine.yaml", &widget("mine", 2)).commit().pushed();
}

/// Whoever may push to one repository has what that one may do, no more.
#[test]
fn a_repository_gives_another_nothing_that_it_has_not() {
    let hosted = with_a_widget();
    let repository = |name: &str, spec: &str| {
        format!(
            "apiVersion: tidegate.dev/v1\nkind: Repository\nmetadata: {{name: {name}, namespace: default}}\nspec: {{{spec}}}\n"
        )
    };
    hosted.tree.write("goods.yaml", &repository("goods", "")).commit().pushed();
    let goods = Tree::clone(&hosted.site, "default/goods", "goods");
    goods.write("mine.yaml", &repository("mine", "namespaces: [default]")).commit().pushed();
    for (spec, field) in [
        ("namespaces: ['*']", "x.yaml:4: spec.namespaces"),
        ("namespaces: [default, system]", "x.yaml:4: spec.namespaces"),
        ("allowClusterScoped: true", "x.yaml:4: spec.allowClusterScoped"),
        ("remote: {url: 'https://u:password@example.com/a.git'}", "x.yaml:4: spec.remote.url"),
    ] {
        let break_it = |tree: &Tree| {
            tree.write("x.yaml", &repository("wide", spec)).commit();
        };
        check_in(&hosted, &goods, "default/goods", break_it, &[field]);
    }
}

/// Nothing makes one object pass for another.
#[test]
fn replacements_of_objects() {
    let hosted = with_a_widget();
    let tree = &hosted.tree;
    let bad = tree.fed(&["hash-object", "-w", "--stdin"], &widget("a", 77));
    let good = tree.fed(&["hash-object", "-w", "--stdin"], &widget("a", 2));
    let refused = tree.git(&["push", "origin", &format!("{bad}:refs/replace/{good}")]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.err.contains("replacements of objects are not stored here"), "{}", refused.err);
    // One that came by another way, as in a restored backup, changes nothing.
    said(&mut git(&tree.dir, &["push", "-q", hosted.bare().to_str().unwrap(), &format!("{bad}:refs/replace/{good}")]))
        .good();
    tree.write("a.yaml", &widget("a", 2)).commit().pushed();
    assert_eq!(hosted.field("widget a", "/spec/size"), "2");
}

#[test]
fn more_files_than_one_push_may_change() {
    let hosted = Hosted::start_with(&["--set", "git.changed_files_max=100"]);
    hosted.tree.write("crd.yaml", CRD).write("a.yaml", &widget("a", 1)).commit().pushed();
    for same in [true, false] {
        let write_many = |tree: &Tree| {
            for index in 0..101 {
                let text = widget(&format!("w{}", if same { 0 } else { index }), 1);
                tree.write(&format!("many/{index}.yaml"), &text);
            }
            tree.commit();
        };
        check(&hosted, write_many, &["more than 100 files", "push it in several steps"]);
    }
    hosted.tree.write("a.yaml", &widget("a", 2)).commit().pushed();
}

/// Ten folders of ten folders, and so on, and not one file: a few hundred bytes.
#[test]
fn more_folders_than_can_be_compared() {
    let hosted = with_a_widget();
    let write_bomb = |tree: &Tree| {
        let mut inner = tree.git(&["mktree"]).good().trim().to_owned();
        for _ in 0..10 {
            let entries: String = (0..10).map(|at| format!("040000 tree {inner}\t{at}\n")).collect();
            std::fs::write(tree.dir.join(".git/entries"), entries).unwrap();
            let mut mktree = git(&tree.dir, &["mktree"]);
            mktree.stdin(std::fs::File::open(tree.dir.join(".git/entries")).unwrap());
            inner = said(&mut mktree).good().trim().to_owned();
        }
        let commit = tree.git(&["commit-tree", "-m", "bomb", "-p", "HEAD", &inner]).good();
        tree.git(&["update-ref", "refs/heads/main", commit.trim()]).good();
    };
    check(&hosted, write_bomb, &["more than 32000000 files and folders", "push it in several steps"]);
    hosted.tree.write("a.yaml", &widget("a", 2)).commit().pushed();
}

#[test]
fn a_pack_over_its_limit() {
    let hosted = Hosted::start_with(&["--set", "git.pack_bytes_max=64KiB"]);
    hosted.tree.write("crd.yaml", CRD).write("a.yaml", &widget("a", 1)).commit().pushed();
    // What does not get smaller by packing.
    let noise: Vec<u8> =
        std::iter::successors(Some(1u64), |n| Some(n.wrapping_mul(6364136223846793005).wrapping_add(1)))
            .take(300 << 10)
            .map(|n| (n >> 56) as u8)
            .collect();
    // In one piece, and in several whose number nobody knows beforehand.
    for buffer in ["1048576", "65536"] {
        hosted.tree.git(&["config", "http.postBuffer", buffer]).good();
        let write_noise = |tree: &Tree| {
            std::fs::write(tree.dir.join("noise.bin"), &noise).unwrap();
            tree.commit();
        };
        check(&hosted, write_noise, &["pack exceeds maximum allowed size"]);
    }
    hosted.tree.write("a.yaml", &widget("a", 2)).commit().pushed();
}

#[test]
fn the_first_fifty_problems_and_a_count() {
    let hosted = with_a_widget();
    let write_many = |tree: &Tree| {
        for index in 0..60 {
            tree.write(&format!("w{index:02}.yaml"), &widget(&format!("w{index}"), 101));
        }
        tree.commit();
    };
    check(&hosted, write_many, &["w49.yaml:5: spec.size", "and 10 more problems"]);
}

#[test]
fn lost_history() {
    let hosted = with_a_widget();
    let first = hosted.tree.head();
    hosted.tree.write("a.yaml", &widget("a", 2)).commit().pushed();
    let second = hosted.tree.head();
    hosted.tree.git(&["reset", "-q", "--hard", &first]).good();
    let ordinary = hosted.tree.push(&[]);
    assert!(ordinary.code == Some(1) && ordinary.err.contains("non-fast-forward"), "{}", ordinary.err);
    for args in [&["--force"][..], &["--force", "--delete"]] {
        let said = if args.len() == 1 { hosted.tree.push(args) } else { hosted.tree.git(&["push", "origin", ":main"]) };
        assert_eq!(said.code, Some(1), "{}", said.err);
        assert!(
            said.err.contains("main is projected and would") && said.err.contains("spec.allowForce"),
            "{}",
            said.err
        );
    }
    assert_eq!(said(&mut git(&hosted.bare(), &["rev-parse", "main"])).good().trim(), second);
    assert_eq!(hosted.field("widget a", "/spec/size"), "2");
}

/// A name that would be a line of its own, if it were shown as it is.
#[test]
fn names_that_forge_what_is_said() {
    let hosted = with_a_widget();
    let bad = hosted.tree.fed(&["hash-object", "-w", "--stdin"], &widget("b", 101));
    let good = hosted.tree.fed(&["hash-object", "-w", "--stdin"], &widget("c", 1));
    let name = b"x\n+12 ~0 -0 objects\x1b[2J\r.yaml";
    let shown = r#"remote: "x\n+12 ~0 -0 objects\033[2J\r.yaml":5: spec.size: "#;
    check(&hosted, |tree| tree.entry("100644", &bad, name), &[shown]);
    check(&hosted, |tree| tree.entry("120000", &good, name), &[r#"\033[2J\r.yaml": is a symbolic link"#]);
    let said = {
        hosted.tree.entry("100644", &bad, name);
        let said = hosted.tree.refused();
        hosted.tree.git(&["reset", "-q", "--hard", "HEAD~1"]).good();
        said
    };
    assert!(!said.contains('\u{1b}') && !said.contains("remote: +12"), "{said:?}");
    // The path of a good one is kept as it is.
    hosted.tree.entry("100644", &good, b"y\n.yaml");
    hosted.tree.pushed();
    assert_eq!(
        hosted.field("widget c", "/metadata/annotations/tidegate.dev~1source-path"),
        "y\n.yaml".replace('\n', "\\n")
    );
    let twice = |tree: &Tree| tree.entry("100644", &good, b"z.yaml");
    check(&hosted, twice, &[r#"widgets.example.com default/c is already defined at y\n.yaml: remove one of the two"#]);
}

/// A branch is a line of commits.
#[test]
fn a_branch_of_something_else() {
    let hosted = with_a_widget();
    let id = |what: &str| hosted.tree.git(&["rev-parse", what]).good().trim().to_owned();
    let push = |id: &str, branch: &str| {
        let said = hosted.tree.git(&["push", "--force", "origin", &format!("{id}:refs/heads/{branch}")]);
        assert_eq!(said.code, Some(1), "{}", said.err);
        said.err
    };
    for (what, kind) in [("HEAD^{tree}", "tree"), ("HEAD:a.yaml", "blob")] {
        let told = push(&id(what), "main");
        let expected = format!("remote: refs/heads/main: {} is a {kind} and no commit: push a commit", id(what));
        assert!(told.contains(&expected) && told.contains("refused: nothing has changed"), "{told}");
    }
    hosted.tree.git(&["tag", "-a", "-m", "a tag", "v1"]).good();
    for branch in ["main", "other"] {
        let told = push(&id("v1"), branch);
        assert!(told.contains("is a tag and no commit: push a commit"), "{told}");
    }
}
