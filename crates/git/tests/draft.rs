//! Commits that are built here, judged by git itself.

// A helper that fails is a test that fails.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use proptest::prelude::*;
use tidegate_git::{CommitText, Draft, DraftError, ObjectId, Person, Program, Put, Repository};

fn program(home: &Path) -> Program {
    Program { git: "git".into(), search_path: std::env::var_os("PATH").unwrap(), home: home.to_owned() }
}

fn git(dir: &Path, script: &str) -> String {
    let output = Command::new("sh").args(["-ec", script]).current_dir(dir).env("HOME", dir).output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

struct Clone {
    _dir: tempfile::TempDir,
    repository: Repository,
}

impl Clone {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let repository = Repository::new(program(dir.path()), dir.path().join("r.git"));
        repository.init("main").await.unwrap();
        Self { _dir: dir, repository }
    }

    fn git(&self, script: &str) -> String {
        git(self.repository.dir(), script)
    }

    /// The paths and contents of a commit, as git has them.
    fn files(&self, commit: &ObjectId) -> BTreeMap<String, String> {
        let names = self.git(&format!("git -c core.quotePath=false ls-tree -r --name-only {commit}"));
        let content = |name: &str| self.git(&format!("git show '{commit}:{name}'"));
        names.lines().map(|name| (name.to_owned(), content(name))).collect()
    }
}

fn commit(draft: &mut Draft, message: &str) -> Option<ObjectId> {
    let (author, committer) = (Person::new("Ada", "ada@example.com"), Person::new("op", "op@example.com"));
    let text = CommitText { author: &author, committer: &committer, time_s: 1_700_000_000, message, signer: None };
    draft.commit(&text).unwrap()
}

#[tokio::test]
async fn a_line_of_commits_from_nothing() {
    let clone = Clone::new().await;
    let mut draft = Draft::open(&clone.repository, None).unwrap();
    assert_eq!(commit(&mut draft, "nothing"), None);
    assert_eq!(draft.put("a/b.yaml", b"1").unwrap(), Put::Created);
    assert_eq!(draft.put("a.b", b"2").unwrap(), Put::Created);
    assert_eq!(draft.put("a-b", b"3").unwrap(), Put::Created);
    let first = commit(&mut draft, "first\n\nbody").unwrap();
    assert_eq!(draft.put("a/b.yaml", b"1").unwrap(), Put::Same);
    assert_eq!(commit(&mut draft, "same"), None);
    assert_eq!(draft.put("a/b.yaml", b"4").unwrap(), Put::Updated);
    assert!(draft.remove("a.b").unwrap());
    assert!(!draft.remove("a.b").unwrap() && !draft.remove("a").unwrap() && !draft.remove("x/y").unwrap());
    let second = commit(&mut draft, "second").unwrap();
    assert!(draft.remove("a/b.yaml").unwrap());
    let third = commit(&mut draft, "third").unwrap();
    draft.save().unwrap();
    clone.git(&format!("git update-ref refs/heads/main {third}; git fsck --strict --no-dangling"));
    assert_eq!(
        clone.git("git log --format='%s|%an <%ae>|%cn|%at' -1 main~2"),
        "first|Ada <ada@example.com>|op|1700000000"
    );
    let files =
        |commit: &ObjectId| clone.files(commit).into_iter().map(|(p, c)| format!("{p}={c}")).collect::<Vec<_>>();
    assert_eq!(files(&first), ["a-b=3", "a.b=2", "a/b.yaml=1"]);
    assert_eq!(files(&second), ["a-b=3", "a/b.yaml=4"]);
    assert_eq!(files(&third), ["a-b=3"], "an empty folder goes");
}

#[tokio::test]
async fn foreign_entries_stay_and_block() {
    let clone = Clone::new().await;
    clone.git(
        "git init -q ../w; cd ../w; mkdir -p d/sub; echo 1 > d/file; ln -s file d/link; echo x > d/run; chmod +x d/run
         git add .; git -c user.name=a -c user.email=a@b commit -qm base; git push -q ../r.git HEAD:main",
    );
    let base = ObjectId::parse(&clone.git("git rev-parse main")).unwrap();
    let mut draft = Draft::open(&clone.repository, Some(&base)).unwrap();
    let blocked = draft.put("d/file/x.yaml", b"1").unwrap_err();
    assert!(matches!(&blocked, DraftError::InTheWay { .. }), "{blocked}");
    assert!(matches!(draft.put("d", b"1"), Err(DraftError::InTheWay { .. })));
    assert_eq!(draft.file("d/link").unwrap(), None);
    let names = |files: Vec<(String, ObjectId)>| files.into_iter().map(|(path, _)| path).collect::<Vec<_>>();
    assert_eq!(names(draft.files("d").unwrap()), ["d/file", "d/run"]);
    assert_eq!(names(draft.files("nowhere").unwrap()), Vec::<String>::new());
    let id = draft.file("d/file").unwrap().unwrap();
    assert_eq!(&draft.content(&id).unwrap()[..], b"1\n");
    draft.put("d/new", b"2").unwrap();
    let head = commit(&mut draft, "add").unwrap();
    draft.save().unwrap();
    let listed = clone.git(&format!("git ls-tree {head}:d | cut -c1-12,53-"));
    assert_eq!(listed, "100644 blob \tfile\n120000 blob \tlink\n100644 blob \tnew\n100755 blob \trun");
}

/// By a recursion it would be the end of the process.
#[tokio::test]
async fn a_tree_that_is_very_deep_is_an_error() {
    let clone = Clone::new().await;
    let mut draft = Draft::open(&clone.repository, None).unwrap();
    draft.put("a/b/c", b"1").unwrap();
    let shallow = commit(&mut draft, "shallow").unwrap();
    draft.save().unwrap();
    let before = draft.folder("a").unwrap();
    let path = format!("a/{}x", "d/".repeat(10_000));
    clone.git(&format!(
        "printf 'commit refs/heads/main\ncommitter e <e@x> 0 +0000\ndata 0\nfrom {shallow}\nM 100644 inline %s\ndata 1\nx\n' {path} | git fast-import --quiet"
    ));
    let deep = ObjectId::parse(&clone.git("git rev-parse main")).unwrap();
    let mut draft = Draft::open(&clone.repository, Some(&deep)).unwrap();
    assert!(matches!(draft.files("a"), Err(DraftError::TooDeep { .. })));
    let near = draft.files_within("a", 5).unwrap();
    assert_eq!(near.iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>(), ["a/b/c"]);
    let after = draft.folder("a").unwrap();
    assert!(before != after && !draft.is_changed(before, after, 5, |_| true).unwrap());
}

#[tokio::test]
async fn what_differs_between_two_states_of_a_folder() {
    let clone = Clone::new().await;
    let mut draft = Draft::open(&clone.repository, None).unwrap();
    assert_eq!(draft.folder("f").unwrap(), draft.folder("g/h").unwrap(), "none");
    let mut state = |changes: &[(&str, &str)]| {
        for (path, content) in changes {
            match *content {
                "" => assert!(draft.remove(path).unwrap()),
                content => _ = draft.put(path, content.as_bytes()).unwrap(),
            }
        }
        commit(&mut draft, "next");
        draft.save().unwrap();
        draft.folder("f").unwrap()
    };
    let none = state(&[("other", "1")]);
    let first = state(&[("f/a", "1"), ("f/d/b", "1"), ("f/e", "1")]);
    assert_eq!(first, state(&[("other", "2")]));
    let second = state(&[("f/a", "2"), ("f/d/b", ""), ("f/e", ""), ("f/e/now-a-folder", "1")]);
    let differences = |draft: &mut Draft, before, after| {
        let mut found = Vec::new();
        let is_enough = |path: &str| {
            found.push(path.to_owned());
            false
        };
        assert!(!draft.is_changed(before, after, 9, is_enough).unwrap());
        found.sort();
        found.join(" ")
    };
    assert_eq!(differences(&mut draft, none, first), "a d/b e");
    assert_eq!(differences(&mut draft, first, first), "");
    assert_eq!(differences(&mut draft, first, second), "a d/b e e/now-a-folder");
    assert!(draft.is_changed(first, second, 9, |path| path == "d/b").unwrap());
    assert!(!draft.is_changed(first, second, 1, |path| path == "d/b").unwrap(), "too deep");
}

/// Each save is a pack, and a draft may live for hundreds of them.
#[tokio::test]
async fn what_many_saves_wrote_is_read() {
    let clone = Clone::new().await;
    let mut draft = Draft::open(&clone.repository, None).unwrap();
    for at in 0..200 {
        draft.put("a", format!("{at}").as_bytes()).unwrap();
        commit(&mut draft, "next").unwrap();
        draft.save().unwrap();
        if at % 50 == 49 {
            let id = draft.file("a").unwrap().unwrap();
            assert_eq!(draft.content(&id).unwrap(), format!("{at}"));
        }
    }
}

#[tokio::test]
async fn what_is_discarded_leaves_nothing() {
    let clone = Clone::new().await;
    let packs = || clone.git("ls objects/pack");
    let mut draft = Draft::open(&clone.repository, None).unwrap();
    draft.put("a", b"1").unwrap();
    commit(&mut draft, "pushed").unwrap();
    draft.save().unwrap();
    draft.rebase_on_head();
    let pushed = packs();
    for number in ["2", "3"] {
        draft.put("a", number.as_bytes()).unwrap();
        commit(&mut draft, "not pushed").unwrap();
        draft.save().unwrap();
    }
    assert_ne!(packs(), pushed);
    draft.discard();
    assert_eq!(packs(), pushed);
}

/// More commits than a chain of differences may be long, over several packs.
#[tokio::test]
async fn many_commits_in_a_large_folder_are_small() {
    let clone = Clone::new().await;
    let mut draft = Draft::open(&clone.repository, None).unwrap();
    for at in 0..2000 {
        draft.put(&format!("v1/configmaps/a/n{at}.yaml"), format!("{at}").as_bytes()).unwrap();
    }
    commit(&mut draft, "base").unwrap();
    draft.save().unwrap();
    let mut head = None;
    for round in 0..3 {
        for at in 0..120 {
            draft.put(&format!("v1/configmaps/a/n{}.yaml", at * 7), format!("{round} {at}").as_bytes()).unwrap();
            head = commit(&mut draft, "one");
        }
        // 120 whole trees of 2,000 entries are 5 MB even when deflated.
        assert!(draft.unsaved_bytes() < 300_000, "{}", draft.unsaved_bytes());
        draft.save().unwrap();
    }
    let head = head.unwrap();
    clone.git(&format!("git update-ref refs/heads/main {head}; git fsck --strict --no-dangling"));
    clone.git("for pack in objects/pack/*.idx; do git verify-pack $pack; done");
    assert_eq!(clone.git("git rev-list --count main"), "361");
    assert_eq!(clone.git("git show main:v1/configmaps/a/n833.yaml"), "2 119");
}

#[derive(Clone, Debug)]
enum Edit {
    Put(String, u8),
    Remove(String),
    Commit,
    Save,
}

fn edit() -> impl Strategy<Value = Edit> {
    let path = || "[ab](\\.|-)?(/[ab](\\.x)?){0,2}";
    prop_oneof![
        6 => (path(), 0..3u8).prop_map(|(path, content)| Edit::Put(path, content)),
        3 => path().prop_map(Edit::Remove),
        2 => Just(Edit::Commit),
        1 => Just(Edit::Save),
    ]
}

/// Whether a map of files could hold `path` too.
fn fits(model: &BTreeMap<String, String>, path: &str) -> bool {
    model.keys().all(|other| !other.starts_with(&format!("{path}/")) && !path.starts_with(&format!("{other}/")))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    /// Against a map of paths, with git as the reader of every commit.
    #[test]
    fn edits_do_to_the_tree_what_they_do_to_a_map(edits in proptest::collection::vec(edit(), 1..40)) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let clone = runtime.block_on(Clone::new());
        let mut draft = Draft::open(&clone.repository, None).unwrap();
        let mut model = BTreeMap::new();
        let mut last = None;
        for edit in edits {
            match edit {
                Edit::Put(path, content) => {
                    let expected = match model.get(&path) {
                        _ if !fits(&model, &path) => None,
                        None => Some(Put::Created),
                        Some(old) if *old == content.to_string() => Some(Put::Same),
                        Some(_) => Some(Put::Updated),
                    };
                    prop_assert_eq!(draft.put(&path, content.to_string().as_bytes()).ok(), expected);
                    if expected.is_some() {
                        model.insert(path, content.to_string());
                    }
                }
                Edit::Remove(path) => prop_assert_eq!(draft.remove(&path).unwrap(), model.remove(&path).is_some()),
                Edit::Commit => last = commit(&mut draft, "x").or(last),
                Edit::Save => draft.save().unwrap(),
            }
        }
        last = commit(&mut draft, "end").or(last);
        draft.save().unwrap();
        if let Some(head) = last {
            clone.git(&format!("git update-ref refs/heads/main {head}; git fsck --strict --no-dangling"));
            prop_assert_eq!(clone.files(&head), model);
        }
    }
}
