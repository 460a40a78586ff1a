//! The difference of two trees, as git itself tells it.

// A helper that fails is a test that fails.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tidegate_git::{Changed, EntryKind, ObjectId, Program, Repository, Side};
use tidegate_testkit::bare;

/// Names that sort in unlike ways as files and as folders, and some that are
/// no text.
const NAMES: [&[u8]; 9] = [b"a", b"a-", b"a.b", b"a0", b"aa", b"b", b"\xff\xfe", b"\xc3\xa4", b"c d\n\"e"];

struct Site {
    _dir: tempfile::TempDir,
    path: PathBuf,
    repository: Repository,
}

impl Site {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = bare::create(dir.path(), "r.git");
        let home = dir.path().to_owned();
        let program = Program { git: "git".into(), search_path: std::env::var_os("PATH").unwrap(), home };
        Self { _dir: dir, repository: Repository::new(program, path.clone()), path }
    }

    fn id(&self, what: &str) -> ObjectId {
        ObjectId::parse(&bare::git(&self.path, &["rev-parse", what])).unwrap()
    }

    async fn check(&self, old: &ObjectId, new: &ObjectId, path: &str, what: &str) -> Vec<Changed> {
        let ours = self.repository.diff(old, new, path).await.unwrap();
        let theirs = gits(&self.path, old, new, path);
        assert_eq!(ours, theirs, "{what}: {old} to {new}, below {path:?}");
        ours
    }
}

fn gits(dir: &Path, old: &ObjectId, new: &ObjectId, path: &str) -> Vec<Changed> {
    let mut command = bare::command(dir);
    command.args(["--literal-pathspecs", "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev"]);
    command.args([old.as_str(), new.as_str(), "--"]).args(Some(path).filter(|path| !path.is_empty()));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let fields: Vec<&[u8]> = output.stdout.split(|byte| *byte == 0).collect();
    fields.chunks_exact(2).map(changed).collect()
}

/// `:100644 100644 <old> <new> M`, and a path.
fn changed(fields: &[&[u8]]) -> Changed {
    let words: Vec<&str> = std::str::from_utf8(&fields[0][1..]).unwrap().split(' ').collect();
    let side = |mode: &str, id: &str| {
        let kind = match &mode[..3] {
            "000" => return None,
            "100" => EntryKind::File,
            "120" => EntryKind::Symlink,
            "160" => EntryKind::Submodule,
            _ => panic!("{mode}"),
        };
        Some(Side { id: ObjectId::parse(id).unwrap(), kind })
    };
    Changed { path: fields[1].to_vec(), old: side(words[0], words[2]), new: side(words[1], words[3]) }
}

/// A small generator of numbers, the same for a seed everywhere.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    fn path(&mut self) -> Vec<u8> {
        let levels = [1, 1, 1, 2, 3][self.below(5)];
        let mut name = || NAMES[[0, 1, 2, 5, self.below(NAMES.len())][self.below(5)]];
        (0..levels).map(|_| name()).collect::<Vec<_>>().join(&b'/')
    }
}

/// One after the other, as `git fast-import` reads them; a file takes the
/// place of a folder, and a folder that of a file.
fn commits(numbers: &mut Numbers, commits: usize) -> String {
    let mut text = String::new();
    for mark in 1..=commits {
        let person = "a <a@example.com> 1700000000 +0000";
        write!(text, "commit refs/heads/c{mark}\nmark :{mark}\nauthor {person}\ncommitter {person}\ndata 1\nc\n")
            .unwrap();
        if mark > 1 {
            writeln!(text, "from :{}", mark - 1).unwrap();
        }
        for _ in 0..4 + numbers.below(12) {
            let path = quoted(&numbers.path());
            match numbers.below(8) {
                0 => writeln!(text, "D {path}").unwrap(),
                1 => writeln!(text, "M 160000 {} {path}", ["1", "2", "3"][numbers.below(3)].repeat(40)).unwrap(),
                sort => {
                    let mode = ["120000", "120000", "100755", "100644"][sort.min(5) - 2];
                    let content = numbers.below(4);
                    write!(text, "M {mode} inline {path}\ndata 1\n{content}\n").unwrap();
                }
            }
        }
    }
    text
}

fn quoted(path: &[u8]) -> String {
    let escaped = path.iter().map(|byte| format!("\\{byte:03o}"));
    format!("\"{}\"", escaped.collect::<String>())
}

#[tokio::test]
async fn random_trees() {
    let mut sorts = BTreeMap::<_, usize>::new();
    for seed in 0..12 {
        let mut numbers = Numbers(seed);
        let (site, count) = (Site::new(), 12);
        let mut import = bare::command(&site.path);
        let mut import = import.args(["fast-import", "--quiet"]).stdin(Stdio::piped()).spawn().unwrap();
        import.stdin.take().unwrap().write_all(commits(&mut numbers, count).as_bytes()).unwrap();
        assert!(import.wait().unwrap().success(), "seed {seed}");
        let ids: Vec<_> = (1..=count).map(|mark| site.id(&format!("c{mark}"))).collect();
        for round in 0..20 {
            let [old, new] = [(); 2].map(|()| &ids[numbers.below(count)]);
            let empty = &ObjectId::empty_tree();
            let (old, new) = [(old, new), (empty, new), (old, empty)][[0, 0, 0, 1, 2][round % 5]];
            let path = String::from_utf8(numbers.path()).ok().filter(|_| round % 3 == 1).unwrap_or_default();
            for changed in site.check(old, new, &path, &format!("seed {seed}, round {round}")).await {
                let kind = |side: Option<Side>| side.map(|side| format!("{:?}", side.kind)).unwrap_or_default();
                *sorts.entry((kind(changed.old), kind(changed.new))).or_default() += 1;
            }
        }
    }
    // Else the seeds would say little: of 16 pairs all but "nothing to nothing".
    assert_eq!(sorts.len(), 15, "{sorts:?}");
}

/// In one commit a file, in the next a folder, with names around it that sort
/// between the two.
#[tokio::test]
async fn a_file_becomes_a_folder() {
    let site = Site::new();
    let file = "M 100644 inline";
    let person = "committer a <a@example.com> 1 +0000\ndata 1\nc\n";
    let text = format!(
        "commit refs/heads/one\nmark :1\n{person}{file} a\ndata 1\n1\n{file} a-b\ndata 1\n1\n{file} a0\ndata 1\n1\n\
         commit refs/heads/two\n{person}from :1\nD a\n{file} a/x\ndata 1\n1\n{file} a.b\ndata 1\n1\n"
    );
    bare::feed(&site.path, &["fast-import", "--quiet"], &text);
    let (one, two) = (site.id("one"), site.id("two"));
    assert_eq!(site.check(&one, &two, "", "to a folder").await.len(), 3);
    assert_eq!(site.check(&two, &one, "", "to a file").await.len(), 3);
    assert_eq!(site.check(&one, &two, "a", "to a folder").await.len(), 2);
    assert_eq!(site.check(&one, &two, "a/x", "to a folder").await.len(), 1);
    assert_eq!(site.check(&two, &one, "a/x/y", "there is none").await.len(), 0);
}

/// What cannot be compared is named.
#[tokio::test]
async fn what_is_no_tree() {
    let site = Site::new();
    let file = site.path.join("HEAD").display().to_string();
    let blob = ObjectId::parse(&bare::git(&site.path, &["hash-object", "-w", &file])).unwrap();
    let nobody = ObjectId::parse(&"1".repeat(40)).unwrap();
    let long = ObjectId::parse(&"1".repeat(64)).unwrap();
    for (id, what) in [(blob, "no commit and no tree"), (nobody, "not there"), (long, "no SHA-1")] {
        let error = site.repository.diff(&ObjectId::empty_tree(), &id, "").await.unwrap_err();
        let told = error.to_string();
        assert!(told.contains(id.as_str()) && told.contains(what) && !error.is_of_the_commit(), "{told}");
    }
}
