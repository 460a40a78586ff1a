//! The files that a changed definition concerns although they did not change:
//! those with objects of its kind, of whichever repository.
//!
//! They are found by what the objects say of themselves, and read from what is
//! in force of their repository. So the work is in proportion to the objects of
//! the kind and the folders that they are in, not to the store or a branch.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use tidegate_admission::{Concerned, File, Provenance, Rules};
use tidegate_git::{Draft, DraftError};
use tidegate_model::{GroupResource, Object};
use tidegate_store::{Selection, StoreError};

use super::change::{CHANGE_BYTES_MAX, Work};
use super::hosting::Hosted;
use super::id::RepositoryId;
use super::mark::Mark;
use super::projector::{Projector, ProjectorError, chain};
use crate::api::Turn;

/// Of one repository.
pub struct ConcernedFiles {
    rules: Rules,
    files: BTreeMap<String, Bytes>,
}

impl ConcernedFiles {
    pub fn concerned(&self) -> Concerned<'_> {
        let files = self.files.iter().map(|(path, bytes)| File { path, bytes }).collect();
        Concerned { rules: &self.rules, files }
    }
}

type Paths = BTreeMap<RepositoryId, BTreeSet<String>>;

impl Projector {
    /// Adds to `work` what its definitions concern. `Err` inside: why that
    /// cannot be. Under the turn, so that it stays so.
    pub(super) fn widen(
        &self,
        turn: &Turn,
        hosted: &Hosted,
        work: &mut Work,
    ) -> Result<Result<(), Vec<String>>, ProjectorError> {
        let kinds = self.api.kinds();
        let redefined = work.projection(hosted, &kinds.set, |projection| self.api.redefined(turn, projection))?;
        if redefined.is_empty() {
            return Ok(Ok(()));
        }
        tokio::task::block_in_place(|| {
            let mut paths = self.paths_of(&redefined)?;
            if let Some(own) = paths.get_mut(&hosted.id) {
                let touched = work.touched();
                own.retain(|path| !touched.contains(path.as_str()));
            }
            Ok(self.files_of(&paths)?.map(|concerned| work.concerns(concerned)))
        })
    }

    /// The files that define objects of these kinds. What is being deleted has
    /// none any more.
    fn paths_of(&self, resources: &[GroupResource]) -> Result<Paths, StoreError> {
        let view = self.api.store().view();
        let mut paths = Paths::new();
        for stored in resources.iter().flat_map(|resource| view.scan(&Selection::all(resource.clone()), None)) {
            let object = Object::from_json(&stored?.json).filter(|object| object.deletion_timestamp().is_none());
            let Some(source) = object.as_ref().and_then(Provenance::of) else { continue };
            if let Some(id) = RepositoryId::parse(source.repository) {
                paths.entry(id).or_default().insert(source.path.to_owned());
            }
        }
        Ok(paths)
    }

    fn files_of(&self, paths: &Paths) -> Result<Result<Vec<ConcernedFiles>, Vec<String>>, ProjectorError> {
        let view = self.api.store().view();
        let mut room = Room { files: self.limits.changed_files_max, bytes: CHANGE_BYTES_MAX };
        let mut concerned = Vec::new();
        for (id, paths) in paths.iter().filter(|(_, paths)| !paths.is_empty()) {
            // A folder of manifests has none: it is admitted anew at each start.
            let Some(mark) = Mark::read(&view, id)? else { continue };
            let hosted = self.hosting.former(id);
            match read(&hosted, &mark, paths, &mut room) {
                Ok(Some(files)) => concerned.push(ConcernedFiles { rules: hosted.rules, files }),
                Ok(None) => return Ok(Err(vec![self.too_much()])),
                Err(error) => return Ok(Err(vec![unreadable(id, &error)])),
            }
        }
        Ok(Ok(concerned))
    }

    fn too_much(&self) -> String {
        format!(
            "the changed definitions concern more than {} files or {} MiB of them: raise git.changed_files_max",
            self.limits.changed_files_max,
            CHANGE_BYTES_MAX >> 20
        )
    }
}

/// What may still be read.
struct Room {
    files: usize,
    bytes: u64,
}

/// `None` if there is no room for them.
fn read(
    hosted: &Hosted,
    mark: &Mark,
    paths: &BTreeSet<String>,
    room: &mut Room,
) -> Result<Option<BTreeMap<String, Bytes>>, DraftError> {
    let mut tree = Draft::open(&hosted.git, Some(&mark.commit))?;
    let mut files = BTreeMap::new();
    for path in paths {
        // What is in the store alone is for `repo verify` to say.
        let Some(id) = tree.file(path)? else { continue };
        let content = tree.content(&id)?;
        let left = (room.files.checked_sub(1), room.bytes.checked_sub(content.len() as u64));
        let (Some(files_left), Some(bytes_left)) = left else { return Ok(None) };
        *room = Room { files: files_left, bytes: bytes_left };
        files.insert(path.clone(), content);
    }
    Ok(Some(files))
}

fn unreadable(id: &RepositoryId, error: &DraftError) -> String {
    format!(
        "a changed definition concerns objects of repository {id}, whose files cannot be read: {}: see `tidegate repo verify {id}`",
        chain(error)
    )
}
