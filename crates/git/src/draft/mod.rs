//! Commits built in memory on top of a commit that is there, then saved as
//! one pack.
//!
//! Trees are edited where they differ, so a commit costs what it changes and
//! the folders above it, not the size of the branch. Nothing here moves a ref:
//! what is saved and never pushed is found by nobody.

mod commit;
mod compare;
mod pack_file;
#[cfg(test)]
mod tests;
mod tree;

use bytes::Bytes;
use gix_object::{Exists, Find, FindHeader, Kind};

pub use commit::{CommitText, Person, SignError, Signer};

use crate::bases::Bases;
use crate::error::GitError;
use crate::objects::OBJECT_BYTES_MAX;
use crate::repository::{ObjectId, Repository};
use compare::Comparison;
use pack_file::{PackFile, SavedPack};
use tree::{Listing, Tree};

/// Every repository that we can push to has this kind.
const HASH: gix_hash::Kind = gix_hash::Kind::Sha1;
/// That an open draft can see; each save adds one. Twice what anybody lets
/// there be before the repository is packed anew; a place is some 100 bytes.
const PACKS_MAX: u16 = 1_024;

/// How deep a branch is is up to whoever pushes to it, and a level takes up to
/// 500 bytes of a thread's 2 MiB of stack. Git itself takes 2,048 by default.
const LEVELS_MAX: usize = 1_000;

/// Files and folders that are listed, or compared, at once: a few objects can
/// stand for any number of them. Three times a million files, and 300 bytes each
/// for its name, its path and what it is, so 1.2 GiB.
const ENTRIES_MAX: usize = 4_000_000;

#[derive(Debug, thiserror::Error)]
pub enum DraftError {
    #[error("`{folder}` has more than {ENTRIES_MAX} files and folders below: divide it")]
    TooMany { folder: String },
    #[error("`{folder}` has folders more than {LEVELS_MAX} levels below")]
    TooDeep { folder: String },
    #[error("{path} cannot be written: {blocked_by} is in the way")]
    InTheWay { path: String, blocked_by: String },
    #[error("failed to read object {id} of the clone: {message}")]
    Read { id: String, message: String },
    #[error("object {0} of the clone is not a {1}")]
    Kind(String, &'static str),
    #[error("the repository uses {0}, which has no meaning here: only SHA-1 is written")]
    ObjectFormat(String),
    #[error("failed to write a pack into the clone")]
    Write(#[source] std::io::Error),
    #[error("failed to hash an object: {0}")]
    Hash(String),
    #[error("failed to sign a commit")]
    Sign(#[from] SignError),
    #[error(transparent)]
    Git(#[from] GitError),
}

/// What a put did to the tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Put {
    Same,
    Created,
    Updated,
}

/// What a folder has; nothing, if there is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FolderState(Option<gix_hash::ObjectId>);

/// A line of new commits. Dropping it forgets them.
pub struct Draft {
    reader: Reader,
    root: Tree,
    base: Option<gix_hash::ObjectId>,
    head: Option<gix_hash::ObjectId>,
    pack: PackFile,
    objects_dir: std::path::PathBuf,
    /// Packs of commits that the remote does not have, as far as we know.
    saved: Vec<SavedPack>,
    entries_max: usize,
}

/// Objects of the clone, and those that are not saved yet.
pub(super) struct Reader {
    odb: gix_odb::Handle,
    buffer: Vec<u8>,
}

impl Draft {
    /// On top of `base`; `None` for the first commit of a branch.
    pub fn open(repository: &Repository, base: Option<&ObjectId>) -> Result<Self, DraftError> {
        let objects_dir = repository.dir().join("objects");
        let slots = gix_odb::store::init::Slots::Given(PACKS_MAX);
        let alloc_limit_bytes = Some(OBJECT_BYTES_MAX);
        let options = gix_odb::store::init::Options { slots, alloc_limit_bytes, ..Default::default() };
        let odb = gix_odb::at_opts(&objects_dir, HASH, [], options).map_err(DraftError::Write)?;
        let odb = odb.with_pack_cache(|| Box::new(Bases::default()));
        let mut reader = Reader { odb, buffer: Vec::new() };
        let base = base.map(internal).transpose()?;
        let root = match &base {
            None => Tree::empty(),
            Some(commit) => Tree::unread(reader.tree_of(commit)?),
        };
        Ok(Self {
            reader,
            root,
            base,
            head: base,
            pack: PackFile::default(),
            objects_dir,
            saved: Vec::new(),
            entries_max: ENTRIES_MAX,
        })
    }

    /// The last commit of the line.
    pub fn head(&self) -> Option<ObjectId> {
        self.head.as_ref().map(external)
    }

    /// What the line stands on.
    pub fn base(&self) -> Option<ObjectId> {
        self.base.as_ref().map(external)
    }

    /// Whether there is a commit that the base does not have.
    pub fn is_ahead(&self) -> bool {
        self.head != self.base
    }

    /// The blob at `path`, if a file is there.
    pub fn file(&mut self, path: &str) -> Result<Option<ObjectId>, DraftError> {
        Ok(self.root.file(&mut self.reader, path)?.map(|id| external(&id)))
    }

    /// Every file below `folder` (all, if empty), in the order of the tree.
    /// Links and submodules are no files.
    pub fn files(&mut self, folder: &str) -> Result<Vec<(String, ObjectId)>, DraftError> {
        let (found, is_whole) = self.walk(folder, LEVELS_MAX)?;
        if is_whole { Ok(found) } else { Err(DraftError::TooDeep { folder: folder.to_owned() }) }
    }

    /// Those of them that are at most `levels` below `folder`.
    pub fn files_within(&mut self, folder: &str, levels: usize) -> Result<Vec<(String, ObjectId)>, DraftError> {
        Ok(self.walk(folder, levels)?.0)
    }

    /// And whether there is nothing below.
    fn walk(&mut self, folder: &str, levels: usize) -> Result<(Vec<(String, ObjectId)>, bool), DraftError> {
        let mut listing = Listing { files: Vec::new(), is_whole: true, entries_left: self.entries_max };
        if let Some(tree) = self.root.folder(&mut self.reader, folder)?
            && !tree.list(&mut self.reader, folder, levels, &mut listing)?
        {
            return Err(DraftError::TooMany { folder: folder.to_owned() });
        }
        let Listing { files, is_whole, .. } = listing;
        Ok((files.into_iter().map(|(path, id)| (path, external(&id))).collect(), is_whole))
    }

    /// The state of `folder` at the last commit, to compare with a later one.
    pub fn folder(&mut self, folder: &str) -> Result<FolderState, DraftError> {
        let tree = self.root.folder(&mut self.reader, folder)?;
        Ok(FolderState(tree.and_then(|tree| tree.written_id())))
    }

    /// Whether a file at most `levels` below a folder differs between two of
    /// its states, and `is_ours` says that its path below the folder is ours.
    pub fn is_changed(
        &mut self,
        before: FolderState,
        after: FolderState,
        levels: usize,
        mut is_ours: impl FnMut(&str) -> bool,
    ) -> Result<bool, DraftError> {
        let entries_left = self.entries_max;
        let mut comparison = Comparison { reader: &mut self.reader, is_enough: &mut is_ours, entries_left };
        comparison.run(before.0, after.0, "", levels)
    }

    /// The content of a blob, of the base or of what was put since.
    pub fn content(&mut self, id: &ObjectId) -> Result<Bytes, DraftError> {
        let id = internal(id)?;
        match self.unsaved(&id)? {
            Some(content) => Ok(content.into()),
            None => self.reader.read(&id, Kind::Blob).map(Bytes::copy_from_slice),
        }
    }

    /// Of a blob that was put and is not saved: the clone does not have it.
    fn unsaved(&self, id: &gix_hash::ObjectId) -> Result<Option<Vec<u8>>, DraftError> {
        let is_saved = self.reader.odb.exists(id);
        let content = if is_saved { Ok(None) } else { self.pack.content(id) };
        content.map_err(|error| DraftError::Read { id: id.to_string(), message: error.to_string() })
    }

    /// How large that is, without reading it from the clone.
    pub fn content_bytes(&mut self, id: &ObjectId) -> Result<u64, DraftError> {
        let id = internal(id)?;
        if let Some(content) = self.unsaved(&id)? {
            return Ok(content.len() as u64);
        }
        let failed = |message: String| DraftError::Read { id: id.to_string(), message };
        let header = self.reader.odb.try_header(&id).map_err(|error| failed(error.to_string()))?;
        header.map(|header| header.size).ok_or_else(|| failed("it is not there".to_owned()))
    }

    /// Makes `content` the file at `path`. Other files stay, also when one is
    /// where a folder of `path` would have to be: that is an error.
    pub fn put(&mut self, path: &str, content: &[u8]) -> Result<Put, DraftError> {
        let id = hash(Kind::Blob, content)?;
        let put = self.root.put(&mut self.reader, path, id)?;
        if put != Put::Same {
            self.pack.add(Kind::Blob, id, content).map_err(DraftError::Write)?;
        }
        Ok(put)
    }

    /// Removes the file at `path` and the folders that it leaves empty;
    /// `false` if there is none.
    pub fn remove(&mut self, path: &str) -> Result<bool, DraftError> {
        self.root.remove(&mut self.reader, path)
    }

    /// Commits what was put and removed since the last commit; `None` if the
    /// tree is the same.
    pub fn commit(&mut self, text: &CommitText<'_>) -> Result<Option<ObjectId>, DraftError> {
        let before = self.root.written_id();
        let tree = self.root.write(&mut self.pack)?;
        if before == Some(tree) || (self.head.is_none() && tree == gix_hash::ObjectId::empty_tree(HASH)) {
            return Ok(None);
        }
        let content = text.encode(&tree, self.head.as_ref())?;
        let id = hash(Kind::Commit, &content)?;
        self.pack.add(Kind::Commit, id, &content).map_err(DraftError::Write)?;
        self.head = Some(id);
        Ok(Some(external(&id)))
    }

    /// Bytes of new objects that are not saved.
    pub fn unsaved_bytes(&self) -> usize {
        self.pack.bytes()
    }

    /// Writes what is new into the clone, as one pack. From here on git finds
    /// the commits.
    pub fn save(&mut self) -> Result<(), DraftError> {
        let pack = std::mem::take(&mut self.pack);
        self.root.forget_offsets();
        self.saved.extend(pack.save(&self.objects_dir).map_err(DraftError::Write)?);
        Ok(())
    }

    /// The commits are the remote's now: the next ones go on top.
    pub fn rebase_on_head(&mut self) {
        self.base = self.head;
        self.saved.clear();
    }

    /// Removes what was saved and is not the remote's: each attempt at a host
    /// that refuses would leave a pack behind.
    pub fn discard(self) {
        let Self { reader, saved, .. } = self;
        // It has them open.
        drop(reader);
        saved.iter().for_each(SavedPack::remove);
    }
}

impl Reader {
    fn tree_of(&mut self, commit: &gix_hash::ObjectId) -> Result<gix_hash::ObjectId, DraftError> {
        let content = self.read(commit, Kind::Commit)?;
        let line = content.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let id = line.strip_prefix(b"tree ").and_then(|hex| gix_hash::ObjectId::from_hex(hex).ok());
        id.ok_or_else(|| DraftError::Kind(commit.to_string(), "commit"))
    }

    fn read(&mut self, id: &gix_hash::ObjectId, kind: Kind) -> Result<&[u8], DraftError> {
        let failed = |message: String| DraftError::Read { id: id.to_string(), message };
        let data = self.odb.try_find(id, &mut self.buffer).map_err(|error| failed(error.to_string()))?;
        let data = data.ok_or_else(|| failed("it is not there".to_owned()))?;
        if data.kind == kind { Ok(data.data) } else { Err(DraftError::Kind(id.to_string(), "object of that kind")) }
    }
}

/// The id that `content` has as a blob.
pub fn blob_id(content: &[u8]) -> Result<ObjectId, DraftError> {
    hash(Kind::Blob, content).map(|id| external(&id))
}

fn hash(kind: Kind, content: &[u8]) -> Result<gix_hash::ObjectId, DraftError> {
    gix_object::compute_hash(HASH, kind, content).map_err(|error| DraftError::Hash(error.to_string()))
}

fn internal(id: &ObjectId) -> Result<gix_hash::ObjectId, DraftError> {
    let id = gix_hash::ObjectId::from_hex(id.as_str().as_bytes()).ok().filter(|id| id.kind() == HASH).ok_or(id);
    id.map_err(|id| DraftError::ObjectFormat(format!("ids of {} digits", id.as_str().len())))
}

fn external(id: &gix_hash::ObjectId) -> ObjectId {
    ObjectId::from_trusted(id.to_string())
}
