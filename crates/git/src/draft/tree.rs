//! A tree that is read where it is looked at and written where it changed.

use gix_hash::ObjectId;
use gix_object::{Kind, TreeRefIter};

use super::pack_file::PackFile;
use super::{DraftError, HASH, Put, Reader, hash};

const MODE_FILE: u32 = 0o100_644;
const MODE_TREE: u32 = 0o040_000;
/// The bits that say what an entry is; the others say how it is executed.
const MODE_KIND: u32 = 0o170_000;
const KIND_FILE: u32 = 0o100_000;
/// Git's own: a longer chain of differences is slow to read.
const DELTA_DEPTH_MAX: usize = 50;

pub(super) struct Tree {
    /// Sorted as git sorts them; `None` until somebody looks.
    entries: Option<Vec<Entry>>,
    /// The last state that has an id.
    written: Option<Written>,
    is_dirty: bool,
}

pub(super) struct Entry {
    pub name: Box<[u8]>,
    pub mode: u32,
    /// Of a dirty tree: what it was before.
    pub id: ObjectId,
    child: Option<Box<Tree>>,
}

/// The files of a folder, as they are found.
pub(super) struct Listing {
    pub files: Vec<(String, ObjectId)>,
    /// Whether there is nothing further below.
    pub is_whole: bool,
    /// Files and folders that may still be looked at.
    pub entries_left: usize,
}

struct Written {
    id: ObjectId,
    /// Empty if it was never written by us.
    content: Vec<u8>,
    /// Where it is in the pack that is being made, and how many differences
    /// it is away from a whole object there.
    offset: Option<(u64, usize)>,
}

impl Tree {
    pub fn empty() -> Self {
        Self { entries: Some(Vec::new()), written: None, is_dirty: false }
    }

    pub fn unread(id: ObjectId) -> Self {
        let written = Written { id, content: Vec::new(), offset: None };
        Self { entries: None, written: Some(written), is_dirty: false }
    }

    pub fn written_id(&self) -> Option<ObjectId> {
        self.written.as_ref().map(|written| written.id)
    }

    pub fn file(&mut self, reader: &mut Reader, path: &str) -> Result<Option<ObjectId>, DraftError> {
        let (name, rest) = split(path);
        let Some(entry) = self.find(reader, name)? else { return Ok(None) };
        match (rest, entry.is_tree()) {
            (Some(rest), true) => entry.child().file(reader, rest),
            (None, false) => Ok((entry.mode & MODE_KIND == KIND_FILE).then_some(entry.id)),
            _ => Ok(None),
        }
    }

    pub fn put(&mut self, reader: &mut Reader, path: &str, id: ObjectId) -> Result<Put, DraftError> {
        let blocked = |by: &str| DraftError::InTheWay { path: path.to_owned(), blocked_by: format!("`{by}`") };
        let (name, rest) = split(path);
        let put = match (self.find(reader, name)?, rest) {
            (Some(entry), Some(_)) if !entry.is_tree() => return Err(blocked(name)),
            (Some(entry), None) if entry.is_tree() => return Err(blocked(name)),
            (Some(entry), Some(rest)) => entry.child().put(reader, rest, id)?,
            (Some(entry), None) if entry.mode == MODE_FILE && entry.id == id => Put::Same,
            (Some(entry), None) => {
                (entry.mode, entry.id) = (MODE_FILE, id);
                Put::Updated
            }
            (None, Some(rest)) => {
                let mut child = Tree::empty();
                child.put(reader, rest, id)?;
                self.insert(Entry::tree(name, child));
                Put::Created
            }
            (None, None) => {
                self.insert(Entry { name: name.as_bytes().into(), mode: MODE_FILE, id, child: None });
                Put::Created
            }
        };
        self.is_dirty |= put != Put::Same;
        Ok(put)
    }

    pub fn remove(&mut self, reader: &mut Reader, path: &str) -> Result<bool, DraftError> {
        let (name, rest) = split(path);
        let Some(entry) = self.find(reader, name)? else { return Ok(false) };
        let goes = match (rest, entry.is_tree()) {
            (Some(rest), true) => {
                let child = entry.child();
                if !child.remove(reader, rest)? {
                    return Ok(false);
                }
                child.entries.as_ref().is_some_and(Vec::is_empty)
            }
            (None, false) => true,
            _ => return Ok(false),
        };
        let is_tree = entry.is_tree();
        if let (true, Some(entries)) = (goes, &mut self.entries)
            && let Ok(at) = position(entries, name.as_bytes(), is_tree)
        {
            entries.remove(at);
        }
        self.is_dirty = true;
        Ok(true)
    }

    /// The folder at `path`, if there is one; itself, if `path` is empty.
    pub fn folder(&mut self, reader: &mut Reader, path: &str) -> Result<Option<&mut Tree>, DraftError> {
        let mut tree = self;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            match tree.find(reader, name)? {
                Some(entry) if entry.is_tree() => tree = entry.child(),
                _ => return Ok(None),
            }
        }
        Ok(Some(tree))
    }

    /// At most `levels` below; `folder` is its own path. False if there are too
    /// many to list.
    pub fn list(
        &mut self,
        reader: &mut Reader,
        folder: &str,
        levels: usize,
        listing: &mut Listing,
    ) -> Result<bool, DraftError> {
        for entry in self.entries(reader)? {
            let Some(left) = listing.entries_left.checked_sub(1) else { return Ok(false) };
            listing.entries_left = left;
            // A name that is not UTF-8 is not ours.
            let Ok(name) = std::str::from_utf8(&entry.name) else { continue };
            let path = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
            if entry.is_tree() && levels > 1 {
                if !entry.child().list(reader, &path, levels - 1, listing)? {
                    return Ok(false);
                }
            } else if entry.is_tree() {
                listing.is_whole = false;
            } else if entry.mode & MODE_KIND == KIND_FILE {
                listing.files.push((path, entry.id));
            }
        }
        Ok(true)
    }

    /// The id of its present state; what is new goes into the pack.
    pub fn write(&mut self, pack: &mut PackFile) -> Result<ObjectId, DraftError> {
        match &self.written {
            Some(written) if !self.is_dirty => return Ok(written.id),
            _ => self.is_dirty = false,
        }
        let mut content = Vec::new();
        for entry in self.entries.iter_mut().flatten() {
            if let Some(child) = &mut entry.child {
                entry.id = child.write(pack)?;
            }
            content.extend_from_slice(format!("{:o} ", entry.mode).as_bytes());
            content.extend_from_slice(&entry.name);
            content.push(0);
            content.extend_from_slice(entry.id.as_slice());
        }
        let id = hash(Kind::Tree, &content)?;
        let base = self.written.take().filter(|written| written.id != id);
        let base = base.and_then(|written| Some((written.content, written.offset?)));
        let offset = match base {
            Some((old, (base, depth))) if depth < DELTA_DEPTH_MAX => {
                let offset = pack.add_difference(Kind::Tree, id, base, &old, &content);
                offset.map(|(offset, is_whole)| (offset, if is_whole { 0 } else { depth + 1 }))
            }
            _ => pack.add(Kind::Tree, id, &content).map(|offset| (offset, 0)),
        };
        self.written = Some(Written { id, content, offset: Some(offset.map_err(DraftError::Write)?) });
        Ok(id)
    }

    /// The pack is saved: a pack must not refer to another.
    pub fn forget_offsets(&mut self) {
        if let Some(written) = &mut self.written {
            written.offset = None;
        }
        let children = self.entries.iter_mut().flatten().filter_map(|entry| entry.child.as_mut());
        children.for_each(|child| child.forget_offsets());
    }

    fn find(&mut self, reader: &mut Reader, name: &str) -> Result<Option<&mut Entry>, DraftError> {
        let entries = self.entries(reader)?;
        let at = [false, true].into_iter().find_map(|is_tree| position(entries, name.as_bytes(), is_tree).ok());
        Ok(at.map(|at| &mut entries[at]))
    }

    fn insert(&mut self, entry: Entry) {
        let entries = self.entries.get_or_insert_default();
        if let Err(at) = position(entries, &entry.name, entry.is_tree()) {
            entries.insert(at, entry);
        }
    }

    fn entries(&mut self, reader: &mut Reader) -> Result<&mut Vec<Entry>, DraftError> {
        if self.entries.is_none() {
            let read = self.written.as_ref().map(|written| read(reader, &written.id));
            self.entries = Some(read.transpose()?.unwrap_or_default());
        }
        Ok(self.entries.get_or_insert_default())
    }
}

impl Entry {
    fn tree(name: &str, child: Tree) -> Self {
        let id = ObjectId::empty_tree(HASH);
        Self { name: name.as_bytes().into(), mode: MODE_TREE, id, child: Some(Box::new(child)) }
    }

    pub fn is_tree(&self) -> bool {
        self.mode == MODE_TREE
    }

    fn child(&mut self) -> &mut Tree {
        let id = self.id;
        self.child.get_or_insert_with(|| Box::new(Tree::unread(id)))
    }
}

pub(super) fn read(reader: &mut Reader, id: &ObjectId) -> Result<Vec<Entry>, DraftError> {
    if *id == ObjectId::empty_tree(HASH) {
        return Ok(Vec::new());
    }
    let content = reader.read(id, Kind::Tree)?;
    let entry = |entry: gix_object::tree::EntryRef<'_>| {
        let (name, mode) = (entry.filename.to_vec().into(), u32::from(entry.mode.value()));
        Entry { name, mode, id: entry.oid.to_owned(), child: None }
    };
    let entries: Result<Vec<_>, _> = TreeRefIter::from_bytes(content, HASH).map(|read| read.map(entry)).collect();
    entries.map_err(|error| DraftError::Read { id: id.to_string(), message: error.to_string() })
}

/// Git sorts a folder as if its name ended with a slash.
fn position(entries: &[Entry], name: &[u8], is_tree: bool) -> Result<usize, usize> {
    let end = |is_tree: bool| is_tree.then_some(b'/');
    let wanted = name.iter().copied().chain(end(is_tree));
    entries.binary_search_by(|entry| entry.name.iter().copied().chain(end(entry.is_tree())).cmp(wanted.clone()))
}

fn split(path: &str) -> (&str, Option<&str>) {
    path.split_once('/').map_or((path, None), |(name, rest)| (name, Some(rest)))
}
