//! From two commits to the change that admission is asked about.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use tidegate_admission::{Change, DIAGNOSTICS_MAX, File, Rules, defined_keys};
use tidegate_git::{Blob, BlobLimits, Blobs, Changed, EntryKind, GitError, ObjectId, Repository, Side};
use tidegate_model::ObjectKey;
use tidegate_model::kinds::KindSet;
use tidegate_model::manifest::{Diagnostic, MANIFEST_BYTES_MAX, is_manifest_path};

use super::mark::Mark;
use crate::folder::{LINK_REFUSED, NAME_REFUSED};

/// Both contents of each changed file are in memory at once: 512 MiB at most.
const LIMITS: BlobLimits =
    BlobLimits { blob_bytes_max: MANIFEST_BYTES_MAX as u64, blobs_max: 400_000, bytes_max: 512 << 20 };

/// The files that differ, with what they hold now and what they held.
#[derive(Default)]
pub struct Difference {
    files: BTreeMap<String, Bytes>,
    removed: Vec<String>,
    before: HashMap<String, Bytes>,
    files_added: usize,
    files_removed: usize,
}

/// `Err` inside: what the files may not be, whatever they say.
pub type Read = Result<Difference, Vec<Diagnostic>>;

/// From what is in force to `commit`, or to nothing without one.
pub async fn read(
    git: &Repository,
    mark: Option<&Mark>,
    commit: Option<&ObjectId>,
    path: &str,
) -> Result<Read, GitError> {
    let changes = changes(git, mark, commit, path).await?;
    let (entries, problems) = sort_out(changes);
    if !problems.is_empty() {
        return Ok(Err(bounded(problems)));
    }
    let ids = entries.iter().flat_map(|entry| [&entry.old, &entry.new]).flatten().cloned().collect();
    let blobs = git.blobs(ids, LIMITS).await?;
    Ok(collect(entries, &blobs).map_err(bounded))
}

/// When another folder is to be projected, all of the old one goes and all of
/// the new one comes.
async fn changes(
    git: &Repository,
    mark: Option<&Mark>,
    commit: Option<&ObjectId>,
    path: &str,
) -> Result<Vec<Changed>, GitError> {
    let empty = ObjectId::empty_tree();
    let new = commit.unwrap_or(&empty);
    match mark {
        Some(mark) if mark.path != path => {
            let mut changes = BTreeMap::new();
            for change in git.diff(&mark.commit, &empty, &mark.path).await? {
                changes.insert(change.path.clone(), change);
            }
            for change in git.diff(&empty, new, path).await? {
                let old = changes.remove(&change.path).and_then(|gone| gone.old);
                changes.insert(change.path.clone(), Changed { old, ..change });
            }
            Ok(changes.into_values().collect())
        }
        mark => git.diff(mark.map_or(&empty, |mark| &mark.commit), new, path).await,
    }
}

/// A file that can define objects, or could.
struct Entry {
    path: String,
    old: Option<ObjectId>,
    new: Option<ObjectId>,
}

fn sort_out(changes: Vec<Changed>) -> (Vec<Entry>, Vec<Diagnostic>) {
    let (mut entries, mut problems) = (Vec::new(), Vec::new());
    for Changed { path, old, new } in changes {
        let is_there = new.is_some();
        let path = match String::from_utf8(path) {
            Ok(path) => path,
            // What is gone does no harm any more.
            Err(_) if !is_there => continue,
            Err(error) => {
                let shown = String::from_utf8_lossy(error.as_bytes()).into_owned();
                problems.push(Diagnostic::of_file(&shown, NAME_REFUSED));
                continue;
            }
        };
        if let Some(problem) = new.as_ref().and_then(|new| problem(&path, new.kind)) {
            problems.push(Diagnostic::of_file(&path, problem));
        } else if is_manifest_path(&path) {
            entries.push(Entry { path, old: file_id(old), new: file_id(new) });
        }
    }
    (entries, problems)
}

fn problem(path: &str, kind: EntryKind) -> Option<&'static str> {
    let is_strange = |part: &str| matches!(part, "" | "." | "..") || part.eq_ignore_ascii_case(".git");
    match kind {
        EntryKind::Symlink => Some(LINK_REFUSED),
        EntryKind::Submodule => Some("is a submodule: commit its files, or give it a Repository of its own"),
        EntryKind::File if path.split('/').any(is_strange) => {
            Some("has a part that means something else to git: rename it")
        }
        EntryKind::File => None,
    }
}

fn file_id(side: Option<Side>) -> Option<ObjectId> {
    side.filter(|side| side.kind == EntryKind::File).map(|side| side.id)
}

fn collect(entries: Vec<Entry>, blobs: &Blobs) -> Result<Difference, Vec<Diagnostic>> {
    let (mut difference, mut problems) = (Difference::default(), Vec::new());
    for Entry { path, old, new } in entries {
        difference.files_added += usize::from(old.is_none() && new.is_some());
        difference.files_removed += usize::from(old.is_some() && new.is_none());
        if let Some(Blob::Content(bytes)) = old.and_then(|id| blobs.get(&id)) {
            difference.before.insert(path.clone(), bytes.clone());
        }
        match new.and_then(|id| blobs.get(&id)) {
            None => difference.removed.push(path),
            Some(Blob::Content(bytes)) => drop(difference.files.insert(path, bytes.clone())),
            Some(Blob::TooLarge(size)) => {
                let message = format!("{size} bytes are more than the {MANIFEST_BYTES_MAX} allowed: split the file");
                problems.push(Diagnostic::of_file(&path, message));
            }
        }
    }
    if problems.is_empty() { Ok(difference) } else { Err(problems) }
}

fn bounded(mut problems: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let beyond = problems.len().saturating_sub(DIAGNOSTICS_MAX);
    problems.truncate(DIAGNOSTICS_MAX);
    if let Some(last) = problems.last().filter(|_| beyond > 0) {
        let message = format!("and {beyond} more problems from here on: mend these first");
        problems.push(Diagnostic::of_file(&last.file.clone(), message));
    }
    problems
}

impl Difference {
    pub fn change(&self) -> Change<'_> {
        Change {
            files: self.files.iter().map(|(path, bytes)| File { path, bytes }).collect(),
            removed: self.removed.iter().map(String::as_str).collect(),
        }
    }

    /// How many files came and how many went.
    pub fn file_counts(&self) -> (usize, usize) {
        (self.files_added, self.files_removed)
    }

    /// What `path` defined at the projected commit.
    pub fn defined_at(&self, kinds: &KindSet, rules: &Rules, path: &str) -> Vec<ObjectKey> {
        self.before.get(path).map_or_else(Vec::new, |bytes| defined_keys(kinds, rules, path, bytes))
    }
}
