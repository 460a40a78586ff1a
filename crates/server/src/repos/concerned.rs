//! The files that a change concerns although they did not change: those with
//! objects of a kind that is defined anew, of whichever repository, and all of
//! a repository that may do less.
//!
//! The first are found by what the objects say of themselves; all are read from
//! what is in force of their repository. So the work is in proportion to the
//! objects of the kind and the folders that they are in, or to the repository,
//! and never to the store.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use bytes::Bytes;
use tidegate_admission::{Concerned, File, Needs, Provenance, Rules};
use tidegate_git::{Draft, DraftError};
use tidegate_model::Object;
use tidegate_store::{Selection, StoreError};

use super::change::{CHANGE_BYTES_MAX, Work, is_manifest};
use super::hosting::Hosted;
use super::id::RepositoryId;
use super::mark::Mark;
use super::projector::{Projector, ProjectorError, chain};
use crate::api::Turn;

/// Those of one repository.
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

/// Of one repository.
enum Wanted {
    All,
    These(BTreeSet<String>),
}

impl Projector {
    /// Adds to `work` what it concerns. `Err` inside: why that cannot be. Under
    /// the turn, so that it stays so.
    pub(super) fn widen(
        &self,
        turn: &Turn,
        hosted: &Hosted,
        work: &mut Work,
    ) -> Result<Result<(), Vec<String>>, ProjectorError> {
        let kinds = self.api.kinds();
        let needs = work.projection(hosted, &kinds.set, |projection| self.api.needs(turn, projection))?;
        if needs.is_empty() {
            return Ok(Ok(()));
        }
        tokio::task::block_in_place(|| {
            let concerned = self.files_of(self.wanted_by(&needs)?, (&hosted.id, &work.touched()))?;
            Ok(concerned.map(|concerned| work.concerns(concerned)))
        })
    }

    /// What is being deleted has no file any more.
    fn wanted_by(&self, needs: &Needs) -> Result<BTreeMap<RepositoryId, Wanted>, StoreError> {
        let view = self.api.store().view();
        let mut wanted = BTreeMap::new();
        for stored in needs.kinds.iter().flat_map(|resource| view.scan(&Selection::all(resource.clone()), None)) {
            let object = Object::from_json(&stored?.json).filter(|object| object.deletion_timestamp().is_none());
            let Some(source) = object.as_ref().and_then(Provenance::of) else { continue };
            let Some(id) = RepositoryId::parse(source.repository) else { continue };
            if let Wanted::These(paths) = wanted.entry(id).or_insert_with(|| Wanted::These(BTreeSet::new())) {
                paths.insert(source.path.to_owned());
            }
        }
        let narrowed = needs.repositories.iter().filter_map(|name| RepositoryId::parse(name));
        wanted.extend(narrowed.map(|id| (id, Wanted::All)));
        Ok(wanted)
    }

    /// But for those of the change's own repository that it touches.
    fn files_of(
        &self,
        wanted: BTreeMap<RepositoryId, Wanted>,
        (own, touched): (&RepositoryId, &HashSet<&str>),
    ) -> Result<Result<Vec<ConcernedFiles>, Vec<String>>, ProjectorError> {
        let view = self.api.store().view();
        let mut room = Room { files: self.limits.changed_files_max, bytes: CHANGE_BYTES_MAX };
        let mut concerned = Vec::new();
        for (id, wanted) in wanted {
            // A folder of manifests has none: it is admitted anew at each start.
            let Some(mark) = Mark::read(&view, &id)? else { continue };
            let hosted = self.hosting.former(&id);
            let is_touched = |path: &str| id == *own && touched.contains(path);
            match read(&hosted, &mark, wanted, is_touched, &mut room) {
                Ok(Some(files)) => concerned.push(ConcernedFiles { rules: hosted.rules, files }),
                Ok(None) => return Ok(Err(vec![self.too_much()])),
                Err(error) => return Ok(Err(vec![unreadable(&id, &error)])),
            }
        }
        Ok(Ok(concerned))
    }

    fn too_much(&self) -> String {
        format!(
            "the change concerns more than {} files or {} MiB of them: raise git.changed_files_max",
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
    wanted: Wanted,
    is_touched: impl Fn(&str) -> bool,
    room: &mut Room,
) -> Result<Option<BTreeMap<String, Bytes>>, DraftError> {
    let mut tree = Draft::open(&hosted.git, Some(&mark.commit))?;
    let entries = match wanted {
        Wanted::All => tree.files(&mark.path)?,
        Wanted::These(paths) => {
            let mut find = |path: String| Ok(tree.file(&path)?.map(|id| (path, id)));
            // What is in the store alone is for `repo verify` to say.
            paths.into_iter().filter_map(|path| find(path).transpose()).collect::<Result<_, DraftError>>()?
        }
    };
    let mut files = BTreeMap::new();
    for (path, id) in entries.into_iter().filter(|(path, _)| is_manifest(path, &mark.path) && !is_touched(path)) {
        // Before it is read: whoever has no room for it need not have it.
        let left = (room.files.checked_sub(1), room.bytes.checked_sub(tree.content_bytes(&id)?));
        let (Some(files_left), Some(bytes_left)) = left else { return Ok(None) };
        *room = Room { files: files_left, bytes: bytes_left };
        files.insert(path, tree.content(&id)?);
    }
    Ok(Some(files))
}

fn unreadable(id: &RepositoryId, error: &DraftError) -> String {
    format!(
        "the change concerns objects of repository {id}, whose files cannot be read: {}: see `tidegate repo verify {id}`",
        chain(error)
    )
}
