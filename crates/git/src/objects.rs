//! The objects of a repository, read in this process.

use std::io;
use std::path::Path;

use gix_hash::{Kind as Hash, ObjectId as Id, oid};
use gix_object::{CommitRefIter, Find, Kind};
use gix_odb::Header as _;

use crate::bases::{Bases, Steps};
use crate::beside::Patience;
use crate::error::GitError;
use crate::repository::{ObjectId, Repository};

pub(crate) const HASH: Hash = Hash::Sha1;
/// Of a folder, a commit or a tag in memory: some two million files.
pub(crate) const OBJECT_BYTES_MAX: usize = 128 << 20;
/// Differences that are applied for one change, some 2 µs each: two minutes. A
/// million files need one each, if what they are differences from is read, too.
const STEPS_MAX: u64 = 64_000_000;
/// So many are followed in the time that applying one takes, when it is only
/// asked what an object is.
const FOLLOWED_PER_STEP: u64 = 64;

/// As they are found on the disk at the first question; what is packed anew
/// meanwhile is found again.
pub(crate) struct Objects<'r> {
    dir: &'r Path,
    patience: Patience,
    /// Of a push that is not accepted yet.
    incoming: Option<gix_odb::Handle>,
    here: gix_odb::Handle,
    steps: Steps,
    steps_max: u64,
}

/// What an object is, without its content.
pub(crate) struct Header {
    pub kind: Kind,
    pub bytes: u64,
    /// How many it is stored as differences from.
    pub depth: u32,
}

impl<'r> Objects<'r> {
    /// Nothing is read when the patience is over.
    pub fn open(repository: &'r Repository, patience: Patience) -> Result<Self, GitError> {
        let dir = repository.dir();
        let failed = |source| GitError::Objects { dir: dir.to_owned(), source };
        let steps = Steps::default();
        let incoming = repository.incoming().map(|folder| open_counted(folder, &steps)).transpose().map_err(failed)?;
        let incoming = incoming.map(|mut incoming| {
            // Nothing is added to it any more: who asks in vain need not look again.
            incoming.refresh_never();
            incoming
        });
        let here = open_counted(&dir.join("objects"), &steps).map_err(failed)?;
        Ok(Self { dir, patience, incoming, here, steps, steps_max: STEPS_MAX })
    }

    /// Fills `content` with the object, and tells what it is.
    pub fn read(&self, id: &oid, content: &mut Vec<u8>) -> Result<Kind, GitError> {
        self.find(id, |place| Ok(place.try_find(id, content).map_err(told)?.map(|found| found.kind)))
    }

    /// What it is and how large, without reading it.
    pub fn header(&self, id: &oid) -> Result<Header, GitError> {
        let header = self.find(id, |place| place.try_header(id).map_err(told))?;
        let depth = header.num_deltas().unwrap_or_default();
        self.steps.add(u64::from(depth) / FOLLOWED_PER_STEP);
        Ok(Header { kind: header.kind(), bytes: header.size(), depth })
    }

    fn find<F>(
        &self,
        id: &oid,
        mut find: impl FnMut(&gix_odb::Handle) -> Result<Option<F>, String>,
    ) -> Result<F, GitError> {
        if self.patience.is_over() {
            return Err(GitError::ReadTooSlow { seconds: self.patience.time_max.as_secs() });
        }
        if self.steps.count() > self.steps_max {
            return Err(GitError::TooEntangled { id: id.to_string(), steps: self.steps_max });
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

    #[cfg(test)]
    pub fn steps(&self) -> u64 {
        self.steps.count()
    }

    #[cfg(test)]
    pub fn bound_steps(&mut self, steps_max: u64) {
        self.steps_max = steps_max;
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

/// With the bases of what is read, which are counted.
fn open_counted(objects: &Path, steps: &Steps) -> io::Result<gix_odb::Handle> {
    let steps = steps.clone();
    Ok(open(objects)?.with_pack_cache(move || Box::new(Bases::new(steps.clone()))))
}
