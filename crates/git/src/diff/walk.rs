//! Two trees, side by side.
//!
//! Invariants: memory grows with the depth and with what is told, never with
//! what is looked at; a pair of folders that was found to differ in no file is
//! not walked again, but counts as if it were.

use std::cmp::Ordering;
use std::collections::HashMap;

use gix_hash::{ObjectId as Id, oid};
use gix_object::tree::{EntryKind as Mode, name_order};

use super::folder::{Entry, Folder, shown};
use super::{Changed, EntryKind, Limits, Side, TreeError};
use crate::error::GitError;
use crate::objects::HASH;
use crate::repository::ObjectId;

/// Of one change in memory beside its path: 72 for itself, twice 48 for an id,
/// and what allocations round up.
pub const CHANGED_BYTES: usize = 192;
/// What reading a tree counts for: it takes as long as so many entries.
pub const FOLDER_ENTRIES: u64 = 10;
/// That are remembered: some 100 bytes each, so a megabyte.
const FRUITLESS_MAX: usize = 10_000;

/// Where trees come from.
pub trait Trees {
    /// Whether it is a tree, with its content.
    fn tree(&self, id: &oid, content: &mut Vec<u8>) -> Result<bool, GitError>;
}

pub struct Walk<'t, T> {
    trees: &'t T,
    limits: Limits,
    /// The names that lead to what is compared.
    scope: Vec<&'t [u8]>,
    levels: Vec<Level>,
    /// Of the innermost level, with a slash at its end.
    path: Vec<u8>,
    open_bytes: usize,
    changed_bytes: usize,
    entries: u64,
    /// Pairs of folders that differ in no file, and the entries below them.
    fruitless: HashMap<(Id, Id), u64>,
    changes: Vec<Changed>,
}

/// A folder that is being compared with what it was.
struct Level {
    old: Cursor,
    new: Cursor,
    /// What there was when it began.
    path_before: usize,
    entries_before: u64,
    changes_before: usize,
}

/// One of the two, and what comes next in it.
struct Cursor {
    id: Id,
    folder: Folder,
    ahead: Option<Entry>,
}

/// Of one name, and both folders or both none if there are two.
struct Pair {
    old: Option<Entry>,
    new: Option<Entry>,
}

impl<'t, T: Trees> Walk<'t, T> {
    pub fn new(trees: &'t T, path: &'t str, limits: Limits) -> Self {
        Self {
            trees,
            limits,
            scope: path.split('/').filter(|name| !name.is_empty()).map(str::as_bytes).collect(),
            levels: Vec::new(),
            path: Vec::new(),
            open_bytes: 0,
            changed_bytes: 0,
            entries: 0,
            fruitless: HashMap::new(),
            changes: Vec::new(),
        }
    }

    pub fn run(mut self, old: Id, new: Id) -> Result<Vec<Changed>, GitError> {
        self.enter(old, new, 0)?;
        while !self.levels.is_empty() {
            match self.next()? {
                Some(pair) => self.compare(&pair)?,
                None => self.leave(),
            }
        }
        Ok(self.changes)
    }

    /// `path_before` is how much of the path is not this folder's own.
    fn enter(&mut self, old: Id, new: Id, path_before: usize) -> Result<(), GitError> {
        if self.levels.len() >= self.limits.levels_max {
            let (folder, levels_max) = (self.folder(), self.limits.levels_max);
            return Err(TreeError::TooDeep { folder, levels_max }.into());
        }
        let (entries_before, changes_before) = (self.entries, self.changes.len());
        let (old, new) = (self.open(old)?, self.open(new)?);
        self.levels.push(Level { old, new, path_before, entries_before, changes_before });
        Ok(())
    }

    fn open(&mut self, id: Id) -> Result<Cursor, GitError> {
        let mut content = Vec::new();
        if id != Id::empty_tree(HASH) {
            self.count(FOLDER_ENTRIES)?;
            if !self.trees.tree(&id, &mut content)? {
                return Err(self.damaged(&id, "it is no tree".to_owned()));
            }
        }
        self.open_bytes += content.len();
        if self.open_bytes > self.limits.open_bytes_max {
            let (folder, mib) = (self.folder(), self.limits.open_bytes_max >> 20);
            return Err(TreeError::TooWide { folder, mib }.into());
        }
        Ok(Cursor { id, folder: Folder::new(content), ahead: None })
    }

    fn leave(&mut self) {
        let Some(Level { old, new, path_before, entries_before, changes_before }) = self.levels.pop() else { return };
        self.path.truncate(path_before);
        self.open_bytes -= old.folder.bytes() + new.folder.bytes();
        let is_whole = self.levels.len() >= self.scope.len();
        if is_whole && self.changes.len() == changes_before && self.fruitless.len() < FRUITLESS_MAX {
            self.fruitless.insert((old.id, new.id), self.entries - entries_before);
        }
    }

    /// Of the innermost level; `None` at its end.
    fn next(&mut self) -> Result<Option<Pair>, GitError> {
        let Some(level) = self.levels.last_mut() else { return Ok(None) };
        let (pair, entries) = level.next().map_err(|(id, what)| self.damaged(&id, what))?;
        self.count(entries)?;
        Ok(pair)
    }

    fn compare(&mut self, pair: &Pair) -> Result<(), GitError> {
        let path_before = self.path.len();
        let Some(is_folder) = self.append_name(pair) else { return Ok(()) };
        let wanted = self.scope.get(self.levels.len() - 1..).unwrap_or_default();
        let is_outside = wanted.first().is_some_and(|name| *name != &self.path[path_before..]);
        if is_outside || (!is_folder && wanted.len() > 1) {
            self.path.truncate(path_before);
        } else if is_folder {
            self.path.push(b'/');
            self.compare_folders(pair, path_before)?;
        } else {
            self.compare_files(pair)?;
            self.path.truncate(path_before);
        }
        Ok(())
    }

    /// Whether it is that of a folder.
    fn append_name(&mut self, pair: &Pair) -> Option<bool> {
        let level = self.levels.last()?;
        let (cursor, entry) = match (&pair.old, &pair.new) {
            (Some(entry), _) => (&level.old, entry),
            (None, entry) => (&level.new, entry.as_ref()?),
        };
        self.path.extend_from_slice(cursor.folder.name(entry));
        Some(entry.is_folder())
    }

    fn compare_folders(&mut self, pair: &Pair, path_before: usize) -> Result<(), GitError> {
        let id = |entry: &Option<Entry>| entry.as_ref().map_or_else(|| Id::empty_tree(HASH), |entry| entry.id);
        let (old, new) = (id(&pair.old), id(&pair.new));
        let known = if old == new { Some(0) } else { self.fruitless.get(&(old, new)).copied() };
        match known {
            None => self.enter(old, new, path_before),
            Some(entries) => {
                self.path.truncate(path_before);
                self.count(entries)
            }
        }
    }

    fn compare_files(&mut self, pair: &Pair) -> Result<(), GitError> {
        if let (Some(old), Some(new)) = (&pair.old, &pair.new)
            && (old.id, old.kind) == (new.id, new.kind)
        {
            return Ok(());
        }
        self.changed_bytes += self.path.len() + CHANGED_BYTES;
        if self.changed_bytes > self.limits.changed_bytes_max {
            return Err(TreeError::TooManyPaths { mib: self.limits.changed_bytes_max >> 20 }.into());
        }
        let [old, new] = [&pair.old, &pair.new].map(|entry| entry.as_ref().map(side));
        self.changes.push(Changed { path: self.path.clone(), old, new });
        Ok(())
    }

    fn count(&mut self, entries: u64) -> Result<(), GitError> {
        self.entries = self.entries.saturating_add(entries);
        let entries_max = self.limits.entries_max;
        if self.entries <= entries_max { Ok(()) } else { Err(TreeError::TooManyEntries { entries_max }.into()) }
    }

    fn damaged(&self, id: &oid, what: String) -> GitError {
        TreeError::Damaged { id: id.to_string(), folder: self.folder(), what }.into()
    }

    /// For a message.
    fn folder(&self) -> String {
        shown(if self.path.is_empty() { b"/" } else { &self.path })
    }
}

/// A tree, and what is wrong with it.
type Damage = (Id, String);

impl Level {
    /// And how many entries were read for it.
    fn next(&mut self) -> Result<(Option<Pair>, u64), Damage> {
        let Self { old, new, .. } = self;
        let entries = old.look_ahead()? + new.look_ahead()?;
        let order = match (&old.ahead, &new.ahead) {
            (None, None) => return Ok((None, entries)),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(before), Some(after)) => {
                let (old_name, new_name) = (old.folder.name(before), new.folder.name(after));
                name_order(old_name, before.is_folder(), new_name, after.is_folder())
            }
        };
        let pair = Pair { old: old.ahead.take_if(|_| order.is_le()), new: new.ahead.take_if(|_| order.is_ge()) };
        Ok((Some(pair), entries))
    }
}

impl Cursor {
    /// How many entries were read for it.
    fn look_ahead(&mut self) -> Result<u64, Damage> {
        if self.ahead.is_some() {
            return Ok(0);
        }
        self.ahead = self.folder.next().map_err(|what| (self.id, what))?;
        Ok(u64::from(self.ahead.is_some()))
    }
}

fn side(entry: &Entry) -> Side {
    let kind = match entry.kind {
        Mode::Blob | Mode::BlobExecutable => EntryKind::File,
        Mode::Link => EntryKind::Symlink,
        // It is no folder: those are entered.
        Mode::Commit | Mode::Tree => EntryKind::Submodule,
    };
    Side { id: ObjectId::from_trusted(entry.id.to_string()), kind }
}
