//! Two states of a folder: which files differ. What they share is not read.

use std::collections::HashMap;

use gix_hash::ObjectId;

use super::tree::{Entry, read};
use super::{DraftError, Reader};

pub(super) struct Comparison<'c> {
    pub reader: &'c mut Reader,
    /// Is told each file that differs, by its path below the folder; ends it
    /// by saying `true`.
    pub is_enough: &'c mut dyn FnMut(&str) -> bool,
    /// Files and folders of both that may still be looked at.
    pub entries_left: usize,
}

impl Comparison<'_> {
    /// Whether it was enough. Files more than `levels` below are not looked at.
    pub fn run(
        &mut self,
        before: Option<ObjectId>,
        after: Option<ObjectId>,
        folder: &str,
        levels: usize,
    ) -> Result<bool, DraftError> {
        if before == after || levels == 0 {
            return Ok(false);
        }
        let (before, after) = (self.entries(before)?, self.entries(after)?);
        let left = self.entries_left.checked_sub(before.len() + after.len());
        self.entries_left = left.ok_or_else(|| DraftError::TooMany { folder: folder.to_owned() })?;
        let only_after = after.keys().filter(|name| !before.contains_key(*name));
        for name in before.keys().chain(only_after) {
            let (old, new) = (before.get(name), after.get(name));
            // A name that is not UTF-8 is not ours.
            let Ok(name) = std::str::from_utf8(name) else { continue };
            let path = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
            let is_changed = file(old) != file(new);
            if is_changed && (self.is_enough)(&path) || self.run(tree(old), tree(new), &path, levels - 1)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn entries(&mut self, tree: Option<ObjectId>) -> Result<HashMap<Box<[u8]>, Entry>, DraftError> {
        let entries = tree.map_or(Ok(Vec::new()), |id| read(self.reader, &id))?;
        Ok(entries.into_iter().map(|entry| (entry.name.clone(), entry)).collect())
    }
}

fn tree(entry: Option<&Entry>) -> Option<ObjectId> {
    entry.filter(|entry| entry.is_tree()).map(|entry| entry.id)
}

fn file(entry: Option<&Entry>) -> Option<(u32, ObjectId)> {
    entry.filter(|entry| !entry.is_tree()).map(|entry| (entry.mode, entry.id))
}
