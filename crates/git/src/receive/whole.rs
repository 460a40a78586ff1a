//! Whether a push brings all that it refers to, as far as it is not here.
//!
//! What is here is whole. So it is enough to look at the objects of the push,
//! and in a folder that changed only at what its former version does not have:
//! the work grows with the change, not with the folders or the branch.

use std::io;
use std::path::Path;

use gix_hash::{ObjectId as Id, oid};
use gix_object::tree::EntryRef;
use gix_object::{CommitRefIter, Find, FindHeader, Kind, TagRef, TreeRefIter, tree::name_order};
use gix_odb::pack::index::File as Index;

use crate::objects::{HASH, open};
use crate::repository::ObjectId;

/// Of those that are told: one is as good as many.
const PROBLEMS_MAX: usize = 10;

/// Whether the pack has no object.
pub fn is_empty(pack: &Path) -> io::Result<bool> {
    Ok(open_index(pack)?.num_objects() == 0)
}

/// What is missing for `refs`, or for any object of `pack`.
pub fn broken(
    pack: Option<&Path>,
    incoming: &Path,
    objects: &Path,
    refs: &[(String, ObjectId)],
) -> io::Result<Vec<String>> {
    let index = pack.map(open_index).transpose()?;
    let count = index.as_ref().map_or(0, Index::num_objects);
    let mut look = Look {
        seen: vec![false; count as usize],
        index,
        incoming: open(incoming)?,
        here: open(objects)?,
        work: Vec::new(),
        problems: Vec::new(),
    };
    for (name, id) in refs {
        look.tip(name, id)?;
    }
    look.work_off()?;
    look.others(count)?;
    look.problems.truncate(PROBLEMS_MAX);
    Ok(look.problems)
}

struct Look {
    index: Option<Index<gix_odb::pack::MMap>>,
    /// By the place in the index: whether it is among the work, or done.
    seen: Vec<bool>,
    incoming: gix_odb::Handle,
    here: gix_odb::Handle,
    work: Vec<Step>,
    problems: Vec<String>,
}

/// An object of the push that is still to be looked at.
struct Step {
    id: Id,
    kind: Kind,
    /// What it was before: a folder that is whole, or is looked at, too.
    before: Option<Id>,
}

impl Look {
    fn tip(&mut self, name: &str, id: &ObjectId) -> io::Result<()> {
        let Ok(parsed) = Id::from_hex(id.as_str().as_bytes()) else {
            self.problems.push(format!("{name}: {id} is no SHA-1, which alone is stored here"));
            return Ok(());
        };
        match self.kind_of(&parsed)? {
            None => self.problems.push(format!(
                "{name}: the push does not bring {id}, nor is it here (missing necessary objects): fetch, and push again"
            )),
            Some(kind) if kind != Kind::Commit && name.starts_with("refs/heads/") => {
                self.problems.push(format!("{name}: {id} is a {kind} and no commit: push a commit"));
            }
            Some(kind) => self.refer(&parsed, parsed, kind, None)?,
        }
        Ok(())
    }

    /// Objects that no ref leads to. Git sends none, but for copies of what is
    /// here, against which it has packed others.
    fn others(&mut self, count: u32) -> io::Result<()> {
        for at in 0..count {
            let Some(index) = self.index.as_ref().filter(|_| !self.seen[at as usize]) else { continue };
            let id = index.oid_at_index(at).to_owned();
            if self.here.try_header(&id).map_err(unreadable)?.is_some() {
                continue;
            }
            if let Some(kind) = self.kind_of(&id)? {
                self.refer(&id, id, kind, None)?;
            }
            self.work_off()?;
        }
        Ok(())
    }

    fn work_off(&mut self) -> io::Result<()> {
        while let Some(Step { id, kind, before }) = self.work.pop() {
            if self.problems.len() >= PROBLEMS_MAX {
                return Ok(());
            }
            match kind {
                Kind::Blob => {}
                Kind::Tree => self.tree(id, before)?,
                Kind::Commit => self.commit(id)?,
                Kind::Tag => self.tag(id)?,
            }
        }
        Ok(())
    }

    fn commit(&mut self, id: Id) -> io::Result<()> {
        let content = self.read(&id)?;
        let Ok(tree) = CommitRefIter::from_bytes(&content, HASH).tree_id() else {
            return self.unread(&id, Kind::Commit);
        };
        let parents: Vec<Id> = CommitRefIter::from_bytes(&content, HASH).parent_ids().collect();
        for parent in &parents {
            self.refer(&id, *parent, Kind::Commit, None)?;
        }
        let before = match parents.first() {
            Some(parent) => self.tree_of(parent)?,
            None => None,
        };
        self.refer(&id, tree, Kind::Tree, before)
    }

    /// Of a commit that may be missing, which is told elsewhere.
    fn tree_of(&self, commit: &oid) -> io::Result<Option<Id>> {
        if self.kind_of(commit)? != Some(Kind::Commit) {
            return Ok(None);
        }
        let content = self.read(commit)?;
        let Ok(tree) = CommitRefIter::from_bytes(&content, HASH).tree_id() else { return Ok(None) };
        Ok((self.kind_of(&tree)? == Some(Kind::Tree)).then_some(tree))
    }

    fn tag(&mut self, id: Id) -> io::Result<()> {
        let content = self.read(&id)?;
        match TagRef::from_bytes(&content, HASH) {
            Ok(tag) => self.refer(&id, tag.target(), tag.target_kind, None),
            Err(_) => self.unread(&id, Kind::Tag),
        }
    }

    fn tree(&mut self, id: Id, before: Option<Id>) -> io::Result<()> {
        let content = self.read(&id)?;
        let former = before.filter(|before| *before != id).map(|before| self.read(&before)).transpose()?;
        let former = former.unwrap_or_default();
        let mut former = TreeRefIter::from_bytes(&former, HASH).peekable();
        for entry in TreeRefIter::from_bytes(&content, HASH) {
            let Ok(entry) = entry else { return self.unread(&id, Kind::Tree) };
            // Both are sorted: the former version of an entry is the next, or there is none.
            while former.next_if(|former| former.as_ref().is_ok_and(|former| comes_before(former, &entry))).is_some() {}
            let same_name = former.next_if(|former| former.as_ref().is_ok_and(|former| is_same_name(former, &entry)));
            let before = same_name.and_then(Result::ok);
            if before.is_some_and(|before| before.oid == entry.oid && before.mode == entry.mode)
                || entry.mode.is_commit()
            {
                continue;
            }
            let kind = if entry.mode.is_tree() { Kind::Tree } else { Kind::Blob };
            let folder_before = before.filter(|_| kind == Kind::Tree).map(|before| before.oid.to_owned());
            self.refer(&id, entry.oid.to_owned(), kind, folder_before)?;
        }
        Ok(())
    }

    fn unread(&mut self, id: &oid, kind: Kind) -> io::Result<()> {
        self.problems.push(format!("the {kind} {id} cannot be read: run `git fsck` in your clone"));
        Ok(())
    }

    /// `from` needs `to`.
    fn refer(&mut self, from: &oid, to: Id, kind: Kind, before: Option<Id>) -> io::Result<()> {
        match self.kind_of(&to)? {
            None => {
                let problem = format!(
                    "missing necessary objects: {from} refers to the {kind} {to}, which the push does not bring"
                );
                self.problems.push(format!("{problem}: run `git fsck` in your clone"));
            }
            Some(found) if found != kind => {
                let problem = format!("{from} takes {to} for a {kind}, but it is a {found}");
                self.problems.push(format!("{problem}: run `git fsck` in your clone"));
            }
            Some(_) => {
                let place = self.index.as_ref().and_then(|index| index.lookup(to));
                let seen = place.and_then(|place| self.seen.get_mut(place as usize));
                if seen.is_some_and(|seen| !std::mem::replace(seen, true)) {
                    self.work.push(Step { id: to, kind, before });
                }
            }
        }
        Ok(())
    }

    fn kind_of(&self, id: &oid) -> io::Result<Option<Kind>> {
        Ok(self.place(id).try_header(id).map_err(unreadable)?.map(|header| header.kind))
    }

    fn read(&self, id: &oid) -> io::Result<Vec<u8>> {
        let mut buffer = Vec::new();
        self.place(id).try_find(id, &mut buffer).map_err(unreadable)?;
        Ok(buffer)
    }

    /// The push is asked first: whoever is asked in vain looks at the disk again.
    fn place(&self, id: &oid) -> &gix_odb::Handle {
        let is_incoming = self.index.as_ref().is_some_and(|index| index.lookup(id).is_some());
        if is_incoming { &self.incoming } else { &self.here }
    }
}

fn comes_before(former: &EntryRef<'_>, entry: &EntryRef<'_>) -> bool {
    name_order(former.filename, former.mode.is_tree(), entry.filename, entry.mode.is_tree()).is_lt()
}

fn is_same_name(former: &EntryRef<'_>, entry: &EntryRef<'_>) -> bool {
    former.filename == entry.filename && former.mode.is_tree() == entry.mode.is_tree()
}

fn open_index(pack: &Path) -> io::Result<Index<gix_odb::pack::MMap>> {
    Index::at(pack.with_extension("idx"), HASH).map_err(unreadable)
}

fn unreadable(error: impl std::fmt::Display) -> io::Error {
    io::Error::other(error.to_string())
}
