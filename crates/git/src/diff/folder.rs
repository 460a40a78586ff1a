//! The entries of one tree, in order.
//!
//! Invariant: what is given out is sorted as git sorts and has no name twice,
//! so that two folders can be compared in one pass; anything else is damage.

use std::ops::Range;

use gix_hash::ObjectId as Id;
use gix_object::TreeRefIter;
use gix_object::tree::{EntryKind, name_order};

use crate::objects::HASH;

/// One tree, read as far as `at`.
#[derive(Default)]
pub struct Folder {
    content: Vec<u8>,
    at: usize,
    last: Option<Entry>,
    /// Files with names that the last name begins with: what may still come as
    /// a folder, too.
    prefixes: Vec<Range<usize>>,
}

/// Its name is in the folder's content.
#[derive(Clone)]
pub struct Entry {
    name: Range<usize>,
    pub kind: EntryKind,
    pub id: Id,
}

impl Entry {
    pub fn is_folder(&self) -> bool {
        self.kind == EntryKind::Tree
    }
}

impl Folder {
    pub fn new(content: Vec<u8>) -> Self {
        Self { content, ..Self::default() }
    }

    pub fn bytes(&self) -> usize {
        self.content.len()
    }

    pub fn name(&self, entry: &Entry) -> &[u8] {
        &self.content[entry.name.clone()]
    }

    /// The next entry; an error is what is wrong with it.
    pub fn next(&mut self) -> Result<Option<Entry>, String> {
        let rest = &self.content[self.at..];
        let mut entries = TreeRefIter::from_bytes(rest, HASH);
        let Some(read) = entries.next() else { return Ok(None) };
        let read = read.map_err(|_| "it ends within an entry, or an entry has no mode".to_owned())?;
        // A socket's mode, which gix takes for a folder and git for a submodule.
        if read.mode.is_tree() && rest.starts_with(b"14") {
            return Err(format!("{} has a mode that git does not write", shown(read.filename)));
        }
        let length = entries.offset_to_next_entry(rest);
        let end = self.at + length - HASH.len_in_bytes() - 1;
        let name = end - read.filename.len()..end;
        let entry = Entry { name, kind: read.mode.kind(), id: read.oid.to_owned() };
        self.at += length;
        self.check(&entry)?;
        self.last = Some(entry.clone());
        Ok(Some(entry))
    }

    fn check(&mut self, entry: &Entry) -> Result<(), String> {
        let name = &self.content[entry.name.clone()];
        if name.is_empty() || name.contains(&b'/') {
            return Err(format!("{} is no name", shown(name)));
        }
        if let Some(last) = &self.last {
            let last_name = self.name(last);
            match name_order(last_name, last.is_folder(), name, entry.is_folder()) {
                std::cmp::Ordering::Less => {}
                std::cmp::Ordering::Equal => return Err(format!("{} is in it twice", shown(name))),
                std::cmp::Ordering::Greater => {
                    return Err(format!("{} comes after {}, so it is not sorted", shown(name), shown(last_name)));
                }
            }
        }
        // Between a file and a folder of one name come only names that begin with it.
        while self.prefixes.pop_if(|prefix| !name.starts_with(&self.content[prefix.clone()])).is_some() {}
        if !entry.is_folder() {
            self.prefixes.push(entry.name.clone());
        } else if self.prefixes.last().is_some_and(|prefix| prefix.len() == name.len()) {
            return Err(format!("{} is in it as a file and as a folder", shown(name)));
        }
        Ok(())
    }
}

/// For a message: a name may be anything.
pub fn shown(name: &[u8]) -> String {
    /// More of it helps nobody.
    const CHARS_MAX: usize = 200;
    let name = String::from_utf8_lossy(name);
    format!("`{}`", name.chars().take(CHARS_MAX).collect::<String>().escape_debug())
}
