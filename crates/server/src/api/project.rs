//! The one door for desired state: a change of a repository's files is
//! admitted against the store as it is and applied in one commit.
//!
//! Invariant: status and finalizers are never written here; a status write
//! that comes in between is merged with, not overwritten.

use std::sync::Arc;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use serde_json::json;
use tidegate_admission::{
    Cause, Change, Deletion, LastChange, Needs, Outcome, Plan, PlannedPut, Provenance, Rules, Stamp, State, Verdict,
    delete_object, drain_namespace, needs, next_object, plan,
};
use tidegate_model::kinds::KindSet;
use tidegate_model::manifest::Diagnostic;
use tidegate_model::{EncodedObject, GroupResource, Object, ObjectKey, ResourceVersion};
use tidegate_store::{
    CommitError, Committed, Expect, Op, Rebase, Rebased, StoreError, StoredObject, Transaction, View, Write,
};
use tokio::sync::OwnedMutexGuard;
use uuid::Uuid;

use super::{Api, Tombstone};

/// A change that conflicts with what controllers do meanwhile is planned again
/// so many times.
const ATTEMPTS_MAX: usize = 5;

/// What a repository defined at a path when it was last projected.
pub type DefinedAt<'a> = &'a (dyn Fn(&str) -> Vec<ObjectKey> + Sync);

/// Who wrote what is at a path now.
pub type AuthorOf<'a> = &'a (dyn Fn(&str) -> Option<Arc<str>> + Sync);

pub struct Projection<'a> {
    pub rules: &'a Rules,
    pub change: Change<'a>,
    pub defined_at: DefinedAt<'a>,
    pub commit: Option<&'a str>,
    pub author_of: AuthorOf<'a>,
    /// Changed in the same transaction, such as the projected commit's id, by
    /// what the projection changes.
    pub marks: MarksOf<'a>,
}

pub type Marks = Vec<(String, Option<Bytes>)>;
pub type MarksOf<'a> = &'a (dyn Fn(&Applied) -> Marks + Sync);

/// For a projection that leaves no mark.
pub const NO_MARKS: MarksOf<'static> = &|_| Vec::new();

#[derive(Debug)]
pub enum Projected {
    /// With what its author should know although it was admitted.
    Applied(Applied, Vec<Diagnostic>),
    Rejected(Vec<Diagnostic>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Applied {
    pub version: ResourceVersion,
    pub created: usize,
    pub updated: usize,
    pub deleted: usize,
}

#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    #[error("failed to read the state that the change applies to")]
    Read(#[from] StoreError),
    #[error("failed to commit the change")]
    Commit(#[from] CommitError),
}

/// The right to change desired state, one holder at a time: what was admitted
/// under it still holds when it is applied under it.
pub struct Turn {
    _guard: OwnedMutexGuard<()>,
}

impl Api {
    /// First come, first served.
    pub async fn turn(&self) -> Turn {
        Turn { _guard: self.0.projecting.clone().lock_owned().await }
    }

    /// Admits and applies. When it returns, the change is durable, visible,
    /// and what it says of kinds, roles and accounts is in force.
    pub async fn project(&self, projection: Projection<'_>) -> Result<Projected, ProjectError> {
        let turn = self.turn().await;
        self.project_in_turn(&turn, &projection, None).await
    }

    /// What [`Self::project_in_turn`] would do, or what it would refuse.
    pub fn admit(
        &self,
        _turn: &Turn,
        projection: &Projection<'_>,
    ) -> Result<Result<Admitted, Vec<Diagnostic>>, ProjectError> {
        let kinds = self.kinds().set.clone();
        let view = self.0.store.view();
        let admitted = tokio::task::block_in_place(|| admit(&kinds, &view, projection))?;
        if let Ok(admitted) = &admitted {
            self.0.store.check(&admitted.transaction)?;
        }
        Ok(admitted)
    }

    /// What the change concerns beyond its own files: see [`Change::concerned`].
    pub fn needs(&self, _turn: &Turn, projection: &Projection<'_>) -> Result<Needs, StoreError> {
        let kinds = self.kinds().set.clone();
        let state = StoreState { view: &self.0.store.view(), defined_at: projection.defined_at };
        tokio::task::block_in_place(|| needs(&kinds, &state, projection.rules, &projection.change))
    }

    /// As [`Self::project`], with what was admitted under the same turn if
    /// there is such.
    pub async fn project_in_turn(
        &self,
        turn: &Turn,
        projection: &Projection<'_>,
        mut admitted: Option<Admitted>,
    ) -> Result<Projected, ProjectError> {
        let mut attempt = 1;
        loop {
            let admitted = match admitted.take() {
                Some(admitted) => admitted,
                None => match self.admit(turn, projection)? {
                    Ok(admitted) => admitted,
                    Err(diagnostics) => return Ok(Projected::Rejected(diagnostics)),
                },
            };
            match self.apply(admitted).await {
                Err(ProjectError::Commit(CommitError::Conflict { .. })) if attempt < ATTEMPTS_MAX => attempt += 1,
                outcome => return outcome,
            }
        }
    }

    async fn apply(&self, admitted: Admitted) -> Result<Projected, ProjectError> {
        let keys: Vec<ObjectKey> = admitted.transaction.writes.iter().map(|write| write.key.clone()).collect();
        let committed = self.0.store.commit(admitted.transaction).await?;
        self.in_force(&keys, &committed).await;
        Ok(Projected::Applied(Applied { version: committed.version, ..admitted.applied }, admitted.warnings))
    }

    /// Waits until what was written of kinds, roles and accounts has taken effect.
    pub(super) async fn in_force(&self, keys: &[ObjectKey], committed: &Committed) {
        for (key, version) in keys.iter().zip(&committed.versions) {
            if let Some(version) = version {
                self.0.follower.reached(key, *version).await;
            }
        }
    }
}

/// What a change comes to, as long as nobody else changes desired state.
pub struct Admitted {
    transaction: Transaction,
    applied: Applied,
    warnings: Vec<Diagnostic>,
}

/// What a projection does to one object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    Create,
    Update,
    Delete,
}

impl Admitted {
    /// Every object that would change.
    pub fn effects(&self) -> impl Iterator<Item = (&ObjectKey, Effect)> {
        let writes = &self.transaction.writes;
        // Deletions come last.
        let puts = writes.len() - self.applied.deleted;
        writes.iter().enumerate().map(move |(index, write)| {
            let effect = match write.expect {
                _ if index >= puts => Effect::Delete,
                Expect::Absent => Effect::Create,
                _ => Effect::Update,
            };
            (&write.key, effect)
        })
    }
}

fn admit(
    kinds: &KindSet,
    view: &View,
    projection: &Projection<'_>,
) -> Result<Result<Admitted, Vec<Diagnostic>>, StoreError> {
    let state = StoreState { view, defined_at: projection.defined_at };
    let plan = match plan(kinds, &state, projection.rules, &projection.change)? {
        Verdict::Admit(plan) => plan,
        Verdict::Reject(diagnostics) => return Ok(Err(diagnostics)),
    };
    let origin = Arc::new(Origin {
        repository: projection.rules.repository.clone(),
        commit: projection.commit.map(Into::into),
        now: Utc::now(),
    });
    writes(view, plan, &origin, projection).map(Ok)
}

/// What all objects of one projection are stamped with.
struct Origin {
    repository: Arc<str>,
    commit: Option<Box<str>>,
    now: DateTime<Utc>,
}

/// One object to be put, and all that it needs to be put again on a newer one.
struct Put {
    origin: Arc<Origin>,
    planned: PlannedPut,
    author: Option<Arc<str>>,
    uid: String,
}

impl Put {
    fn next(&self, current: Option<&Object>) -> Outcome {
        let Self { origin, planned, author, uid } = self;
        let owner = planned.cause.owner();
        let source = Provenance { repository: owner.unwrap_or(&origin.repository), path: &planned.place.path };
        let change = match (owner, current) {
            // The commit is none of its owner's.
            (Some(_), Some(current)) => LastChange::of(current),
            _ => LastChange { commit: origin.commit.as_deref(), author: author.as_deref() },
        };
        next_object(&planned.desired, current, &Stamp { now: origin.now, new_uid: uid, source, change })
    }
}

fn writes(view: &View, plan: Plan, origin: &Arc<Origin>, projection: &Projection<'_>) -> Result<Admitted, StoreError> {
    let Plan { puts, deletes, drains, warnings, kinds: _ } = plan;
    let mut applied = Applied { version: view.version(), created: 0, updated: 0, deleted: 0 };
    let mut writes = Vec::with_capacity(puts.len() + deletes.len());
    for planned in puts {
        let (expect, current) = read(view, &planned.key)?;
        let author = (projection.author_of)(match &planned.cause {
            Cause::File => &planned.place.path,
            Cause::Definition { path, .. } => path,
        });
        let put = Put { origin: origin.clone(), planned, author, uid: Uuid::new_v4().to_string() };
        let key = put.planned.key.clone();
        let object = match put.next(current.as_ref()) {
            Outcome::Create(mut object) => {
                applied.created += 1;
                born(&key, &mut object);
                object
            }
            Outcome::Update(object) => {
                applied.updated += 1;
                object
            }
            // Admission refuses what is being deleted, against this same view.
            Outcome::Unchanged | Outcome::Terminating => continue,
        };
        writes.push(Write { key, expect, op: Op::Put(EncodedObject::new(&object)), rebase: rebase_of(expect, put) });
    }
    let mut tombstones = Vec::new();
    for key in deletes {
        let (expect, current) = read(view, &key)?;
        let Some(current) = current else { continue };
        let now = origin.now;
        let held = current.finalizers().next().is_some();
        let Some(op) = deletion(&current, now) else { continue };
        applied.deleted += 1;
        tombstones.extend(Tombstone::raise(&key, &current));
        let rebase = Arc::new(move |current: Option<&StoredObject>| rebase_delete(current, held, now));
        writes.push(Write { key, expect, op, rebase: Some(rebase) });
    }
    for key in drains {
        let (expect, current) = read(view, &key)?;
        let now = origin.now;
        let Some(op) = current.and_then(|current| draining(&current, now)) else { continue };
        applied.deleted += 1;
        let rebase = Arc::new(move |current: Option<&StoredObject>| {
            let current = current.and_then(|stored| Object::from_json(&stored.json));
            current.and_then(|current| draining(&current, now)).map_or(Rebased::Skip, Rebased::Op)
        });
        writes.push(Write { key, expect, op, rebase: Some(rebase) });
    }
    let marks = [(projection.marks)(&applied), tombstones].concat();
    let transaction = Transaction { writes, marks };
    Ok(Admitted { transaction, applied, warnings })
}

fn draining(current: &Object, now: DateTime<Utc>) -> Option<Op> {
    drain_namespace(current, now).map(|drained| Op::Put(EncodedObject::new(&drained)))
}

/// What a new object has from its first moment, as in Kubernetes.
fn born(key: &ObjectKey, object: &mut Object) {
    if *key == ObjectKey::new(GroupResource::new("", "namespaces"), None, object.name()) {
        object.root_mut().insert("status".into(), json!({"phase": "Active"}));
    }
}

fn read(view: &View, key: &ObjectKey) -> Result<(Expect, Option<Object>), StoreError> {
    let stored = view.get(key)?;
    let expect = stored.as_ref().map_or(Expect::Absent, |stored| Expect::Version(stored.version));
    Ok((expect, stored.and_then(|stored| Object::from_json(&stored.json))))
}

/// What nobody has yet only a projection creates, and this one has the turn: if
/// it is there all the same, that is a conflict, and the change is planned
/// again. So what is wanted of a new object need not be kept, which of a first
/// projection would be most of its memory.
fn rebase_of(expect: Expect, put: Put) -> Option<Rebase> {
    match expect {
        Expect::Absent => None,
        _ => Some(Arc::new(move |current: Option<&StoredObject>| rebase_put(&put, current))),
    }
}

/// Somebody wrote status or finalizers between our read and our commit.
fn rebase_put(put: &Put, current: Option<&StoredObject>) -> Rebased {
    let current = current.and_then(|stored| Object::from_json(&stored.json));
    match put.next(current.as_ref()) {
        Outcome::Create(object) | Outcome::Update(object) => Rebased::Op(Op::Put(EncodedObject::new(&object))),
        Outcome::Unchanged => Rebased::Skip,
        Outcome::Terminating => Rebased::Conflict,
    }
}

/// `held` by finalizers when the deletion was admitted. If it is now and was
/// not then, it stays: its kind or namespace, which may go with it in the same
/// plan, must not. So the plan is made again.
fn rebase_delete(current: Option<&StoredObject>, held: bool, now: DateTime<Utc>) -> Rebased {
    let Some(current) = current.and_then(|stored| Object::from_json(&stored.json)) else { return Rebased::Skip };
    if !held && current.finalizers().next().is_some() {
        return Rebased::Conflict;
    }
    deletion(&current, now).map_or(Rebased::Skip, Rebased::Op)
}

fn deletion(current: &Object, now: DateTime<Utc>) -> Option<Op> {
    match delete_object(current, now) {
        Deletion::Remove => Some(Op::Delete),
        Deletion::Stamp(object) => Some(Op::Put(EncodedObject::new(&object))),
        Deletion::Waiting => None,
    }
}

/// The store as admission reads it.
struct StoreState<'a> {
    view: &'a View,
    defined_at: DefinedAt<'a>,
}

impl State for StoreState<'_> {
    type Error = StoreError;

    fn current(&self, key: &ObjectKey) -> Result<Option<Arc<Object>>, StoreError> {
        let stored = self.view.get(key)?;
        Ok(stored.and_then(|stored| Object::from_json(&stored.json)).map(Arc::new))
    }

    fn defined_at(&self, path: &str) -> Result<Vec<ObjectKey>, StoreError> {
        Ok((self.defined_at)(path))
    }

    fn count(&self, resource: &GroupResource, namespace: Option<&str>) -> Result<u64, StoreError> {
        self.view.count(resource, namespace)
    }
}
