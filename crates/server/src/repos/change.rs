//! From two commits to the change that admission is asked about.

use std::collections::{BTreeMap, HashMap, HashSet};

use bytes::Bytes;
use tidegate_admission::{Change, DIAGNOSTICS_MAX, File, Rules, defined_keys};
use tidegate_git::{Authors, Blob, BlobLimits, Blobs, Changed, EntryKind, GitError, ObjectId, Repository, Side};
use tidegate_model::ObjectKey;
use tidegate_model::kinds::KindSet;
use tidegate_model::manifest::{Diagnostic, MANIFEST_BYTES_MAX, is_manifest_path};

use super::concerned::ConcernedFiles;
use super::hosting::Hosted;
use super::id::RepositoryId;
use super::mark::{Mark, Tally};
use crate::api::{Applied, AuthorOf, DefinedAt, Marks, MarksOf, Owned, Projection};
use crate::folder::{LINK_REFUSED, NAME_REFUSED};

/// Both contents of each changed file are in memory at once: so much at most,
/// as one transaction of the store takes by default.
pub(super) const CHANGE_BYTES_MAX: u64 = 2 << 30;

/// What has to be done so that a commit is in force.
pub struct Work {
    mark: Option<Mark>,
    /// How much the repository defined before, if it was counted.
    tally: Option<Tally>,
    difference: Difference,
    authors: Authors,
    /// Files that did not change, of objects whose kind does.
    concerned: Vec<ConcernedFiles>,
}

/// What is said to be in force.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Before {
    pub mark: Option<Mark>,
    pub tally: Option<Tally>,
}

/// The files that differ, with what they hold now and what they held.
#[derive(Default)]
struct Difference {
    files: BTreeMap<String, Bytes>,
    removed: Vec<String>,
    before: HashMap<String, Bytes>,
    files_added: usize,
    files_removed: usize,
    /// Where the store is asked what was there, not Git.
    owned: Owned,
}

/// `Err` inside: what the files may not be, whatever they say.
pub type Read = Result<Work, Vec<Diagnostic>>;

impl Work {
    /// From what is in force to `commit`, or to nothing without one.
    pub async fn read(
        git: &Repository,
        before: &Before,
        commit: Option<&ObjectId>,
        path: &str,
        files_max: usize,
    ) -> Result<Read, GitError> {
        let mark = before.mark.as_ref();
        let (authors, changes) = tokio::try_join!(authors(git, mark, commit, path), changes(git, mark, commit, path))?;
        let folders = [path, mark.map_or(path, |mark| &mark.path)];
        let (entries, problems) = sort_out(changes, folders);
        if !problems.is_empty() {
            return Ok(Err(bounded(problems)));
        }
        let limits = BlobLimits {
            blob_bytes_max: MANIFEST_BYTES_MAX as u64,
            blobs_max: files_max.saturating_mul(2),
            bytes_max: CHANGE_BYTES_MAX,
        };
        // Many paths can share one blob.
        if entries.len() > files_max {
            return Err(GitError::TooMuch { files: files_max, bytes: CHANGE_BYTES_MAX });
        }
        let ids = entries.iter().flat_map(|entry| [&entry.old, &entry.new]).flatten().cloned().collect();
        let blobs = git.blobs(ids, limits).await?;
        let mark = commit.map(|commit| Mark { commit: commit.clone(), path: path.into() });
        let collected = collect(entries, &blobs).map_err(bounded);
        Ok(collected.map(|difference| Self { mark, tally: before.tally, difference, authors, concerned: Vec::new() }))
    }

    /// The same files, against what the store holds of them instead of what
    /// is said to be in force: what it owns elsewhere has to go.
    #[must_use]
    pub fn against(mut self, owned: Owned) -> Self {
        let Difference { files, removed, .. } = &mut self.difference;
        *removed = owned.keys().filter(|path| !files.contains_key(*path)).cloned().collect();
        // All files count as new, and all that is owned was there.
        let objects = owned.values().map(|keys| keys.len() as u64).sum();
        self.tally = Some(Tally { objects, files: 0 });
        self.difference.owned = owned;
        self
    }

    /// All of `owned` goes, and what is in force is `before` afterwards.
    pub fn removing(owned: Owned, before: Before) -> Self {
        let Before { mark, tally } = before;
        let removed = owned.keys().cloned().collect();
        let difference = Difference { removed, owned, ..Difference::default() };
        Self { mark, tally, difference, authors: Authors::default(), concerned: Vec::new() }
    }

    pub fn concerns(&mut self, concerned: Vec<ConcernedFiles>) {
        self.concerned = concerned;
    }

    /// What is added or changes, with its new content.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.difference.files.iter().map(|(path, bytes)| (path.as_str(), &**bytes))
    }

    /// The files that change.
    pub fn touched(&self) -> HashSet<&str> {
        let Difference { files, removed, .. } = &self.difference;
        files.keys().chain(removed).map(String::as_str).collect()
    }

    /// Calls `use_it` with what admission is asked about.
    pub fn projection<R>(&self, hosted: &Hosted, kinds: &KindSet, use_it: impl FnOnce(&Projection<'_>) -> R) -> R {
        let defined_at = |path: &str| self.difference.defined_at(kinds, &hosted.rules, path);
        let author_of = |path: &str| self.authors.of(path);
        let marks = |applied: &Applied| self.marks(&hosted.id, applied);
        use_it(&self.build(hosted, &defined_at, &author_of, &marks))
    }

    /// The same, for what takes its time.
    pub async fn with_projection<R>(
        &self,
        hosted: &Hosted,
        kinds: &KindSet,
        use_it: impl AsyncFnOnce(Projection<'_>) -> R,
    ) -> R {
        let defined_at = |path: &str| self.difference.defined_at(kinds, &hosted.rules, path);
        let author_of = |path: &str| self.authors.of(path);
        let marks = |applied: &Applied| self.marks(&hosted.id, applied);
        use_it(self.build(hosted, &defined_at, &author_of, &marks)).await
    }

    fn marks(&self, id: &RepositoryId, applied: &Applied) -> Marks {
        let Difference { files_added, files_removed, .. } = self.difference;
        let objects = (applied.created, applied.deleted);
        let tally = self.tally.map(|tally| tally.after(objects, (files_added, files_removed)).encode());
        vec![
            (Mark::name(id), self.mark.as_ref().map(Mark::encode)),
            (Tally::name(id), tally.filter(|_| self.mark.is_some())),
        ]
    }

    fn build<'a>(
        &'a self,
        hosted: &'a Hosted,
        defined_at: DefinedAt<'a>,
        author_of: AuthorOf<'a>,
        marks: MarksOf<'a>,
    ) -> Projection<'a> {
        Projection {
            rules: &hosted.rules,
            change: Change {
                concerned: self.concerned.iter().map(ConcernedFiles::concerned).collect(),
                ..self.difference.change()
            },
            defined_at,
            commit: self.mark.as_ref().map(|mark| mark.commit.as_str()),
            author_of,
            marks,
        }
    }
}

/// Nobody is the author of nothing. When all of a branch comes into force at
/// once, its head's author stands for it: reading all history is not worth it.
async fn authors(
    git: &Repository,
    mark: Option<&Mark>,
    commit: Option<&ObjectId>,
    path: &str,
) -> Result<Authors, GitError> {
    let Some(commit) = commit else { return Ok(Authors::default()) };
    let old = mark.filter(|mark| mark.path == path).map(|mark| &mark.commit);
    git.authors(old, commit, path).await
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

/// `folders` are those that are projected; what is hidden below them is not ours.
fn sort_out(changes: Vec<Changed>, folders: [&str; 2]) -> (Vec<Entry>, Vec<Diagnostic>) {
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
        if is_hidden(&path, folders) && !is_strange(&path) {
            continue;
        }
        if let Some(problem) = new.as_ref().and_then(|new| problem(&path, new.kind)) {
            problems.push(Diagnostic::of_file(&path, problem));
        } else if is_manifest_path(&path) {
            entries.push(Entry { path, old: file_id(old), new: file_id(new) });
        }
    }
    (entries, problems)
}

/// Whether a file of the projected `folder` can define objects.
pub(super) fn is_manifest(path: &str, folder: &str) -> bool {
    is_manifest_path(path) && !is_hidden(path, [folder, folder])
}

fn problem(path: &str, kind: EntryKind) -> Option<&'static str> {
    match kind {
        EntryKind::Symlink => Some(LINK_REFUSED),
        EntryKind::Submodule => Some("is a submodule: commit its files, or give it a Repository of its own"),
        EntryKind::File if is_strange(path) => Some("has a part that means something else to git: rename it"),
        EntryKind::File => None,
    }
}

/// A part that git, or a file system, takes for something else.
fn is_strange(path: &str) -> bool {
    path.split('/').any(|part| matches!(part, "" | "." | "..") || part.eq_ignore_ascii_case(".git"))
}

/// As in a folder that is read from disk: what begins with a dot is for other
/// programs. The projected folder's own name does not count.
fn is_hidden(path: &str, folders: [&str; 2]) -> bool {
    let below = |folder: &str| path.strip_prefix(folder)?.strip_prefix('/');
    let within = folders.into_iter().filter(|folder| !folder.is_empty()).find_map(below).unwrap_or(path);
    within.split('/').any(|part| part.starts_with('.'))
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
            Some(Blob::Other) => {
                problems.push(Diagnostic::of_file(&path, "is a file by its name alone: commit it anew"))
            }
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
    fn change(&self) -> Change<'_> {
        Change {
            files: self.files.iter().map(|(path, bytes)| File { path, bytes }).collect(),
            removed: self.removed.iter().map(String::as_str).collect(),
            ..Change::default()
        }
    }

    /// What `path` defined before.
    fn defined_at(&self, kinds: &KindSet, rules: &Rules, path: &str) -> Vec<ObjectKey> {
        if let Some(keys) = self.owned.get(path) {
            return keys.clone();
        }
        self.before.get(path).map_or_else(Vec::new, |bytes| defined_keys(kinds, rules, path, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden() {
        for (path, folder, hidden) in [
            ("a/b.yaml", "", false),
            (".github/ci.yaml", "", true),
            ("a/.b.yaml", "", true),
            ("a/.b/c.yaml", "a", true),
            (".a/c.yaml", ".a", false),
            (".a/.c.yaml", ".a", true),
            (".ab/c.yaml", ".a", true),
            ("a..b/c.d.yaml", "", false),
        ] {
            assert_eq!(is_hidden(path, [folder, folder]), hidden, "{path} in {folder:?}");
        }
    }
}
