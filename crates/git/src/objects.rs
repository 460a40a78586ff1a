//! The objects of a repository, read in this process.

use std::io;
use std::path::Path;

use gix_hash::{Kind as Hash, ObjectId as Id, oid};
use gix_object::{CommitRefIter, Find, FindHeader, Kind};

use crate::beside::Patience;
use crate::error::GitError;
use crate::repository::{ObjectId, Repository};

pub(crate) const HASH: Hash = Hash::Sha1;
/// Of a folder, a commit or a tag in memory: some two million files.
pub(crate) const OBJECT_BYTES_MAX: usize = 128 << 20;

/// As they are found on the disk at the first question; what is packed anew
/// meanwhile is found again.
pub(crate) struct Objects<'r> {
    dir: &'r Path,
    patience: Patience,
    /// Of a push that is not accepted yet.
    incoming: Option<gix_odb::Handle>,
    here: gix_odb::Handle,
}

impl<'r> Objects<'r> {
    /// Nothing is read when the patience is over.
    pub fn open(repository: &'r Repository, patience: Patience) -> Result<Self, GitError> {
        let dir = repository.dir();
        let failed = |source| GitError::Objects { dir: dir.to_owned(), source };
        let incoming = repository.incoming().map(open).transpose().map_err(failed)?;
        let incoming = incoming.map(|mut incoming| {
            // Nothing is added to it any more: who asks in vain need not look again.
            incoming.refresh_never();
            incoming
        });
        Ok(Self { dir, patience, incoming, here: open(&dir.join("objects")).map_err(failed)? })
    }

    /// Fills `content` with the object, and tells what it is.
    pub fn read(&self, id: &oid, content: &mut Vec<u8>) -> Result<Kind, GitError> {
        self.find(id, |place| Ok(place.try_find(id, content).map_err(told)?.map(|found| found.kind)))
    }

    /// What it is and how large, without reading it.
    pub fn header(&self, id: &oid) -> Result<(Kind, u64), GitError> {
        self.find(id, |place| Ok(place.try_header(id).map_err(told)?.map(|header| (header.kind, header.size))))
    }

    fn find<F>(
        &self,
        id: &oid,
        mut find: impl FnMut(&gix_odb::Handle) -> Result<Option<F>, String>,
    ) -> Result<F, GitError> {
        if self.patience.is_over() {
            return Err(GitError::ReadTooSlow { seconds: self.patience.time_max.as_secs() });
        }
        for place in self.incoming.iter().chain([&self.here]) {
            match find(place) {
                Ok(Some(found)) => return Ok(found),
                Ok(None) => {}
                Err(message) => return Err(self.failed(&id, &message)),
            }
        }
        Err(self.failed(&id, "it is not there"))
    }

    pub fn internal(&self, id: &ObjectId) -> Result<Id, GitError> {
        let found = Id::from_hex(id.as_str().as_bytes()).ok().filter(|found| found.kind() == HASH);
        found.ok_or_else(|| self.failed(id, "it is no SHA-1, which alone is stored here"))
    }

    /// Of a commit, or the tree itself.
    pub fn tree_of(&self, id: &ObjectId) -> Result<Id, GitError> {
        let found = self.internal(id)?;
        if found == Id::empty_tree(HASH) {
            return Ok(found);
        }
        let mut content = Vec::new();
        let tree = match self.read(&found, &mut content)? {
            Kind::Tree => Some(found),
            Kind::Commit => CommitRefIter::from_bytes(&content, HASH).tree_id().ok(),
            Kind::Blob | Kind::Tag => None,
        };
        tree.ok_or_else(|| self.failed(id, "it is no commit and no tree"))
    }

    fn failed(&self, id: &impl ToString, message: &str) -> GitError {
        GitError::Object { id: id.to_string(), dir: self.dir.to_owned(), message: message.to_owned() }
    }
}

fn told(error: impl ToString) -> String {
    error.to_string()
}

/// One folder of objects, with the alternates that it names.
pub(crate) fn open(objects: &Path) -> io::Result<gix_odb::Handle> {
    let options = gix_odb::store::init::Options { alloc_limit_bytes: Some(OBJECT_BYTES_MAX), ..Default::default() };
    gix_odb::at_opts(objects, HASH, [], options)
}
