//! Trees in memory: what no git would write, and what would cost too much.

use std::cell::Cell;
use std::collections::HashMap;

use gix_hash::{ObjectId as Id, oid};
use gix_object::{Kind, compute_hash};

use super::walk::{CHANGED_BYTES, FOLDER_ENTRIES, Trees, Walk};
use super::{Changed, ENTRIES_MAX, Limits, TreeError};
use crate::error::GitError;
use crate::objects::HASH;

const FILE: &str = "100644";
const FOLDER: &str = "40000";

/// Counts what is read of it.
#[derive(Default)]
struct Shelf {
    trees: HashMap<Id, Vec<u8>>,
    reads: Cell<u64>,
}

impl Trees for Shelf {
    fn tree(&self, id: &oid, content: &mut Vec<u8>) -> Result<bool, GitError> {
        self.reads.set(self.reads.get() + 1);
        let found = self.trees.get(id);
        content.extend_from_slice(found.map(Vec::as_slice).unwrap_or_default());
        Ok(found.is_some())
    }
}

impl Shelf {
    /// A tree of these entries, in this order, whatever they are.
    fn put(&mut self, entries: &[(&str, &str, Id)]) -> Id {
        let mut content = Vec::new();
        for (mode, name, id) in entries {
            content.extend_from_slice(format!("{mode} {name}\0").as_bytes());
            content.extend_from_slice(id.as_slice());
        }
        self.put_raw(content)
    }

    fn put_raw(&mut self, content: Vec<u8>) -> Id {
        let id = compute_hash(HASH, Kind::Tree, &content).unwrap();
        self.trees.insert(id, content);
        id
    }

    /// `innermost` in ten folders, in ten folders each, and so on.
    fn bomb(&mut self, innermost: Id, levels: usize) -> Id {
        let names: Vec<String> = (0..10).map(|name| name.to_string()).collect();
        (0..levels).fold(innermost, |inner, _| {
            let entries: Vec<_> = names.iter().map(|name| (FOLDER, name.as_str(), inner)).collect();
            self.put(&entries)
        })
    }

    fn diff(&self, old: Id, new: Id, limits: Limits) -> Result<Vec<Changed>, TreeError> {
        match Walk::new(self, "", limits).run(old, new) {
            Ok(changes) => Ok(changes),
            Err(GitError::Tree(error)) => Err(error),
            Err(error) => panic!("{error}"),
        }
    }

    /// Against nothing, and the other way around: both say the same.
    fn problem(&self, tree: Id, limits: Limits) -> TreeError {
        let added = self.diff(empty(), tree, limits).unwrap_err();
        assert_eq!(self.diff(tree, empty(), limits).unwrap_err(), added);
        added
    }
}

fn empty() -> Id {
    Id::empty_tree(HASH)
}

fn blob(content: &str) -> Id {
    compute_hash(HASH, Kind::Blob, content.as_bytes()).unwrap()
}

#[test]
fn damaged_trees_are_named() {
    let (a, b) = (blob("a"), blob("b"));
    let mut shelf = Shelf::default();
    let inner = shelf.put(&[(FILE, "x", a)]);
    for (entries, what) in [
        (&[(FILE, "b", a), (FILE, "a", a)][..], "`a` comes after `b`"),
        (&[(FILE, "a0", a), (FOLDER, "a", inner)], "`a` comes after `a0`"),
        (&[(FOLDER, "a", inner), (FILE, "a-b", b)], "`a-b` comes after `a`"),
        (&[(FILE, "a", a), (FILE, "a", b)], "`a` is in it twice"),
        (&[(FILE, "a", a), (FOLDER, "a", inner)], "`a` is in it as a file and as a folder"),
        (
            &[(FILE, "a", a), (FILE, "a-", a), (FILE, "a--", a), (FILE, "a.b", a), (FOLDER, "a", inner)],
            "`a` is in it as a file and as a folder",
        ),
        (&[(FILE, "", a)], "`` is no name"),
        (&[(FILE, "a/b", a)], "`a/b` is no name"),
        (&[("140000", "s", inner)], "`s` has a mode"),
        (&[("bad", "s", a)], "has no mode"),
        (&[(FOLDER, "a", b)], "it is no tree"),
    ] {
        let bad = shelf.put(entries);
        let root = shelf.put(&[(FOLDER, "f\n", bad), (FILE, "g", a)]);
        let TreeError::Damaged { id, folder, what: told } = shelf.problem(root, Limits::default()) else {
            panic!("{entries:?} is taken for good")
        };
        let (bad, folder_of_bad) = if what == "it is no tree" { (b, r"`f\n/a/`") } else { (bad, r"`f\n/`") };
        assert_eq!((id.as_str(), folder.as_str()), (bad.to_string().as_str(), folder_of_bad), "{entries:?}");
        assert!(told.contains(what), "{entries:?}: {told}");
    }
    let mut cut = shelf.trees[&inner].clone();
    cut.pop();
    let cut = shelf.put_raw(cut);
    assert!(shelf.problem(cut, Limits::default()).to_string().contains("ends within an entry"));
}

/// Names that look like those that are damage.
#[test]
fn names_that_begin_alike() {
    let (a, mut shelf) = (blob("a"), Shelf::default());
    let inner = shelf.put(&[(FILE, "x", a)]);
    let entries = [
        (FILE, "a", a),
        (FILE, "a-", a),
        (FOLDER, "a-b", inner),
        (FILE, "a.", a),
        (FOLDER, "aa", inner),
        (FILE, "b", a),
    ];
    let tree = shelf.put(&entries);
    let changes = shelf.diff(empty(), tree, Limits::default()).unwrap();
    let paths: Vec<_> = changes.iter().map(|change| String::from_utf8_lossy(&change.path)).collect();
    assert_eq!(paths, ["a", "a-", "a-b/x", "a.", "aa/x", "b"]);
}

/// Few objects, ten thousand million folders and not one file: nothing is
/// told, so that only what is looked at can end it.
#[test]
fn a_bomb_of_folders() {
    let mut shelf = Shelf::default();
    let bomb = shelf.bomb(empty(), 10);
    assert_eq!(shelf.problem(bomb, Limits::default()), TreeError::TooManyEntries { entries_max: ENTRIES_MAX });
    // A tree a level, in either direction.
    assert!(shelf.reads.get() <= 20, "{} trees were read", shelf.reads.get());
    // One that is within the limit counts in full, each time that it is met.
    let small = shelf.bomb(empty(), 3);
    let entries = 1110 + 111 * FOLDER_ENTRIES;
    let within = Limits { entries_max: entries, ..Limits::default() };
    assert_eq!(shelf.diff(empty(), small, within).unwrap(), []);
    let beyond = Limits { entries_max: entries - 1, ..Limits::default() };
    assert_eq!(shelf.problem(small, beyond), TreeError::TooManyEntries { entries_max: entries - 1 });
}

/// The same with two bombs, one in force and one pushed, that differ in what
/// is no file.
#[test]
fn two_bombs() {
    let mut shelf = Shelf::default();
    let other = shelf.put(&[(FOLDER, "x", empty())]);
    let (old, new) = (shelf.bomb(empty(), 10), shelf.bomb(other, 10));
    let error = shelf.diff(old, new, Limits::default()).unwrap_err();
    assert_eq!(error, TreeError::TooManyEntries { entries_max: ENTRIES_MAX });
    assert!(shelf.reads.get() <= 21, "{} trees were read", shelf.reads.get());
}

/// With a file in each, what is told ends it.
#[test]
fn a_bomb_of_files() {
    let mut shelf = Shelf::default();
    let leaf = shelf.put(&[(FILE, "f", blob("a"))]);
    let bomb = shelf.bomb(leaf, 10);
    let limits = Limits { changed_bytes_max: 1 << 20, ..Limits::default() };
    assert_eq!(shelf.problem(bomb, limits), TreeError::TooManyPaths { mib: 1 });
    let paths_max = (1 << 20) / CHANGED_BYTES as u64;
    assert!(shelf.reads.get() < 2 * 2 * paths_max, "{} trees were read", shelf.reads.get());
}

#[test]
fn depth_and_width() {
    let mut shelf = Shelf::default();
    let leaf = shelf.put(&[(FILE, "f", blob("a"))]);
    let chain =
        |shelf: &mut Shelf, levels: usize| (1..levels).fold(leaf, |inner, _| shelf.put(&[(FOLDER, "d", inner)]));
    let (deep, deeper) = (chain(&mut shelf, 1_000), chain(&mut shelf, 1_001));
    assert_eq!(shelf.diff(empty(), deep, Limits::default()).unwrap().len(), 1);
    let error = shelf.problem(deeper, Limits::default());
    assert!(matches!(&error, TreeError::TooDeep { levels_max: 1_000, folder } if folder.len() < 300), "{error}");
    // Each level is large, and all that lead to the innermost are held.
    let wide: Vec<String> = (0..1_000).map(|name| format!("{name:04}")).collect();
    let mut inner = leaf;
    for _ in 0..40 {
        let mut entries: Vec<_> = wide.iter().map(|name| (FILE, name.as_str(), blob("a"))).collect();
        entries.push((FOLDER, "d", inner));
        inner = shelf.put(&entries);
    }
    let limits = Limits { open_bytes_max: 1 << 20, ..Limits::default() };
    let error = shelf.problem(inner, limits);
    assert!(matches!(error, TreeError::TooWide { mib: 1, .. }), "{error}");
}
