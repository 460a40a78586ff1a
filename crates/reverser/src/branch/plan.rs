//! A batch, written on top of a tree: the difference of the two is the work.
//!
//! Invariant: what is already so makes no commit, so a list that is written a
//! second time repeats nothing. Files that are not one object at its own path
//! are never deleted.

use std::collections::{BTreeMap, HashSet};

use bytes::Bytes;
use tidegate_git::{CommitText, Draft, DraftError, ObjectId, Put, blob_id};
use tidegate_model::mirror::{ResourceKey, resource_of_path};
use tidegate_model::{Object, yaml};

use super::again::Again;
use super::destination::Destination;
use super::handle::DestinationId;
use super::message::{Effect, Operation, Operator, message};
use super::queue::{Item, Pending, Scope, Wanted};
use super::reader::ReadError;
use super::status::{SkipReason, Skipped};
use crate::change::{Author, State, Version};
use crate::secrets::{SecretError, SecretMemory, Written};

/// A commit may name this part of what its batch has changed before it. Each
/// writes the folders that it changes anew, some 40 bytes an entry: in a folder
/// of 50,000 files, commits of 200 would write, send and check 250 trees of up
/// to 2 MB, and twice the files would cost four times as much. Commits that
/// grow are 23 instead, and all trees together have at most five times the
/// entries of the last.
const GROWTH: u64 = 4;
/// Below the base folder: group, version, resource, namespace, and the file.
pub(super) const LEVELS_MAX: usize = 5;
/// Objects have 1.5 MiB in etcd, and a few times that as YAML, encrypted. What
/// is larger is no object of ours, and is not read.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// New objects that are held before they are saved.
const UNSAVED_BYTES_MAX: usize = 32 << 20;

#[derive(Debug, thiserror::Error)]
pub(super) enum PlanError {
    #[error(transparent)]
    Draft(#[from] DraftError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Secret(#[from] SecretError),
}

/// What a plan needs to know besides the batch.
pub(super) struct Context<'c> {
    pub operator: &'c Operator,
    pub cluster_uid: &'c str,
    pub destinations: &'c BTreeMap<DestinationId, Destination>,
    /// The most objects that one commit names, but for [`GROWTH`].
    pub files_max: usize,
    pub time_s: u64,
    pub again: &'c Again,
}

/// What was done, for the status and the metrics.
#[derive(Clone, PartialEq, Default, Debug)]
pub(super) struct Report {
    pub commits: u64,
    pub written: u64,
    pub deleted: u64,
    pub bytes: u64,
    pub destinations: BTreeMap<DestinationId, DestinationReport>,
}

#[derive(Clone, PartialEq, Default, Debug)]
pub(super) struct DestinationReport {
    pub last_commit: Option<ObjectId>,
    pub is_seeded: bool,
    /// By path: `None` for what is in Git, or gone.
    pub skipped: BTreeMap<String, Option<Skipped>>,
}

pub(super) struct Planner<'p> {
    context: &'p Context<'p>,
    draft: &'p mut Draft,
    memory: &'p mut SecretMemory,
    open: Option<Open>,
    report: Report,
}

/// A commit that still takes changes.
struct Open {
    destination: DestinationId,
    author: Author,
    effects: Vec<Effect>,
}

/// One object on its way to its file.
struct Target<'t> {
    id: &'t DestinationId,
    destination: &'t Destination,
    key: &'t ResourceKey,
    path: String,
    author: &'t Author,
}

impl<'p> Planner<'p> {
    pub fn new(context: &'p Context<'p>, draft: &'p mut Draft, memory: &'p mut SecretMemory) -> Self {
        Self { context, draft, memory, open: None, report: Report::default() }
    }

    /// Commits what differs and saves it; nothing is pushed.
    pub fn write(mut self, batch: &[Pending]) -> Result<Report, PlanError> {
        self.announce(batch)?;
        for pending in batch {
            // One that was forgotten meanwhile has nothing to say.
            let Some(destination) = self.context.destinations.get(&pending.destination) else { continue };
            match &pending.item {
                Item::Change { key, wanted, author, .. } => {
                    self.change(&target(&pending.destination, destination, key, author), wanted)?;
                }
                Item::Seed { scope, objects } => self.seed(&pending.destination, destination, scope, objects)?,
            }
        }
        self.close()?;
        self.draft.save()?;
        Ok(self.report)
    }

    /// What is to be read again is asked for ahead of its turn.
    fn announce(&mut self, batch: &[Pending]) -> Result<(), PlanError> {
        let mut keys = Vec::new();
        for Pending { destination: id, item } in batch {
            let Some(destination) = self.context.destinations.get(id) else { continue };
            let (change, seed) = match item {
                Item::Change { key, wanted, .. } => (Some((key, wanted)), &[][..]),
                Item::Seed { objects, .. } => (None, objects.as_slice()),
            };
            for (key, wanted) in change.into_iter().chain(seed.iter().map(|(key, wanted)| (key, wanted))) {
                if let Wanted::Reread { blob, .. } = wanted
                    && !self.has(&target(id, destination, key, &Author::Unknown), blob.as_ref())?
                {
                    keys.push(key.clone());
                }
            }
        }
        if !keys.is_empty() {
            self.context.again.announce(keys);
        }
        Ok(())
    }

    /// Whether Git has what this object was, as far as a blob tells: a Secret
    /// is encrypted there.
    fn has(&mut self, target: &Target<'_>, blob: Option<&ObjectId>) -> Result<bool, PlanError> {
        Ok(blob.is_some() && !is_secret(target.key) && self.draft.file(&target.path)?.as_ref() == blob)
    }

    fn change(&mut self, target: &Target<'_>, wanted: &Wanted) -> Result<(), PlanError> {
        match wanted {
            Wanted::State(state) => self.put(target, state),
            Wanted::Gone(version) => self.remove(target, version),
            Wanted::Reread { blob, .. } if self.has(target, blob.as_ref())? => self.skip(target, None),
            Wanted::Reread { version, blob } => self.read_again(target, version, blob.as_ref()),
            Wanted::Spooled { version, content } => match content.read() {
                Ok(yaml) => self.put(target, &State { version: version.clone(), yaml }),
                Err(error) => {
                    tracing::debug!(object = %target.key, %error, "failed to read what the work directory kept of it");
                    self.read_again(target, version, None)
                }
            },
        }
    }

    fn read_again(&mut self, target: &Target<'_>, version: &Version, blob: Option<&ObjectId>) -> Result<(), PlanError> {
        match self.context.again.read(target.key)? {
            Some(state) if blob_id(&state.yaml).ok().as_ref() == blob => self.put(target, &state),
            // Somebody changed it since, and whose event is not here yet.
            Some(state) => {
                let author = &target.author.and(&Author::Unknown);
                self.put(&Target { author, path: target.path.clone(), ..*target }, &state)
            }
            None => self.remove(target, version),
        }
    }

    fn seed(
        &mut self,
        id: &DestinationId,
        destination: &Destination,
        scope: &Scope,
        objects: &[(ResourceKey, Wanted)],
    ) -> Result<(), PlanError> {
        let mut listed = HashSet::with_capacity(objects.len());
        for (key, wanted) in objects {
            let target = target(id, destination, key, &Author::Unknown);
            self.change(&target, wanted)?;
            listed.insert(target.path);
        }
        let Some(folder) = scope.folder() else { return Ok(()) };
        for (path, blob) in self.draft.files_within(&destination.base_folder.join(&folder), LEVELS_MAX)? {
            if !listed.contains(&path)
                && let Some((key, version)) = self.owner(destination, &path, &blob)?
            {
                let target = Target { id, destination, key: &key, path, author: &Author::Unknown };
                self.remove(&target, &version)?;
            }
        }
        if *scope == Scope::Whole {
            self.close()?;
            self.report.destinations.entry(id.clone()).or_default().is_seeded = true;
        }
        Ok(())
    }

    /// Unless it is too large to be ours.
    fn content(&mut self, blob: &ObjectId) -> Result<Option<Bytes>, PlanError> {
        let is_ours = self.draft.content_bytes(blob)? <= FILE_BYTES_MAX;
        Ok(is_ours.then(|| self.draft.content(blob)).transpose()?)
    }

    /// Whose file it is, if it is one object at its own path.
    fn owner(
        &mut self,
        destination: &Destination,
        path: &str,
        blob: &ObjectId,
    ) -> Result<Option<(ResourceKey, Version)>, PlanError> {
        let Some(inner) = destination.base_folder.strip(path).filter(|path| path.ends_with(".yaml")) else {
            return Ok(None);
        };
        let Some(content) = self.content(blob)? else { return Ok(None) };
        let value = std::str::from_utf8(&content).ok().and_then(|text| yaml::parse(text).ok());
        let Some(object) = value.and_then(Object::from_value) else { return Ok(None) };
        let gvk = object.gvk();
        let Some(resource) = resource_of_path(inner, object.namespace().is_some()) else { return Ok(None) };
        let key = ResourceKey::new(&gvk.group, &gvk.version, &resource, object.namespace(), object.name());
        let gone = Version { uid: "-".into(), resource_version: "-".into(), field_manager: None };
        Ok((key.path() == inner).then_some((key, gone)))
    }

    fn put(&mut self, target: &Target<'_>, state: &State) -> Result<(), PlanError> {
        let existing = self.draft.file(&target.path)?;
        let content = if is_secret(target.key) {
            let existing = existing.as_ref().map(|id| self.content(id)).transpose()?.flatten();
            match target.destination.secrets.write(self.memory, &target.path, existing.as_deref(), state)? {
                Written::Refused => return self.skip(target, Some(SkipReason::SecretNotEncrypted)),
                Written::Current => return self.skip(target, None),
                Written::Content(content) => content,
            }
        } else {
            state.yaml.clone()
        };
        if existing == Some(blob_id(&content)?) {
            return self.skip(target, None);
        }
        self.turn(target)?;
        let operation = match self.draft.put(&target.path, &content) {
            Ok(Put::Same) => return Ok(()),
            Ok(Put::Created) => Operation::Create,
            Ok(Put::Updated) => Operation::Update,
            Err(DraftError::InTheWay { .. }) => return self.skip(target, Some(SkipReason::ForeignFile)),
            Err(error) => return Err(error.into()),
        };
        self.report.written += 1;
        self.report.bytes += content.len() as u64;
        self.effect(target, operation, &state.version)?;
        self.skip(target, None)
    }

    fn remove(&mut self, target: &Target<'_>, version: &Version) -> Result<(), PlanError> {
        if self.draft.file(&target.path)?.is_some() {
            self.turn(target)?;
            self.draft.remove(&target.path)?;
            self.report.deleted += 1;
            self.effect(target, Operation::Delete, version)?;
        }
        self.memory.forget(&target.path);
        self.skip(target, None)
    }

    /// `None` if it is in Git, or need not be.
    fn skip(&mut self, target: &Target<'_>, reason: Option<SkipReason>) -> Result<(), PlanError> {
        let skipped = reason.map(|reason| Skipped { key: target.key.clone(), reason });
        let report = self.report.destinations.entry(target.id.clone()).or_default();
        if skipped.is_some() || is_secret(target.key) || report.skipped.contains_key(&target.path) {
            report.skipped.insert(target.path.clone(), skipped);
        }
        Ok(())
    }

    /// Before a change: another author or destination starts a commit.
    fn turn(&mut self, target: &Target<'_>) -> Result<(), PlanError> {
        let stays = |open: &Open| open.author == *target.author && open.destination == *target.id;
        if self.open.as_ref().is_some_and(|open| !stays(open)) { self.close() } else { Ok(()) }
    }

    fn effect(&mut self, target: &Target<'_>, operation: Operation, version: &Version) -> Result<(), PlanError> {
        let open = self.open.get_or_insert_with(|| Open {
            destination: target.id.clone(),
            author: target.author.clone(),
            effects: Vec::new(),
        });
        open.effects.push(Effect { operation, key: target.key.clone(), version: version.clone() });
        let before = self.report.written + self.report.deleted - open.effects.len() as u64;
        let effects_max = (self.context.files_max as u64).max(before / GROWTH);
        if open.effects.len() as u64 >= effects_max { self.close() } else { Ok(()) }
    }

    fn close(&mut self) -> Result<(), PlanError> {
        let Some(Open { destination, author, effects }) = self.open.take() else { return Ok(()) };
        let operator = self.context.operator;
        let text = CommitText {
            author: &operator.person(&author),
            committer: &operator.committer(),
            time_s: self.context.time_s,
            message: &message(operator, self.context.cluster_uid, &author, &effects),
            signer: self.context.destinations.get(&destination).and_then(|of| of.signer.as_deref()),
        };
        if let Some(commit) = self.draft.commit(&text)? {
            self.report.commits += 1;
            self.report.destinations.entry(destination).or_default().last_commit = Some(commit);
        }
        if self.draft.unsaved_bytes() > UNSAVED_BYTES_MAX {
            self.draft.save()?;
        }
        Ok(())
    }
}

fn target<'t>(
    id: &'t DestinationId,
    destination: &'t Destination,
    key: &'t ResourceKey,
    author: &'t Author,
) -> Target<'t> {
    Target { id, destination, key, path: destination.base_folder.join(&key.path()), author }
}

fn is_secret(key: &ResourceKey) -> bool {
    key.group.is_empty() && &*key.resource == "secrets"
}

impl Scope {
    /// Below the base folder; what is there and not listed is deleted.
    fn folder(&self) -> Option<String> {
        match self {
            Self::Whole => Some(String::new()),
            Self::Type { group, version, resource, namespace } => {
                Some(ResourceKey::folder(group, version, resource, namespace.as_deref()))
            }
            Self::Listed { .. } => None,
        }
    }
}
