//! Makes the store equal to a repository's branch, and tells beforehand
//! whether that would work. Both go through the same change and the same plan.
//!
//! Invariant: what is in force changes under the turn alone ([`Api::turn`]).
//! Git is read before it, so that pushes wait for each other only while they
//! are admitted, their ref moves and the store is written; what was read is
//! read again if the projected commit has changed meanwhile.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tidegate_git::{GitError, ObjectId, PlainHttp, RefUpdate, Repository};
use tidegate_model::manifest::Diagnostic;
use tidegate_model::{Object, ResourceVersion};
use tidegate_store::{CommitError, StoreError};

use super::change::{Before, Work};
use super::hosting::{Hosted, Hosting, HostingError};
use super::id::RepositoryId;
use super::limits::HostedLimits;
use super::mark::{Mark, Tally};
use super::note::Noter;
use crate::api::{Admitted, Api, Applied, ProjectError, Projected, Turn};
use crate::metrics::Metrics;

#[derive(Debug, thiserror::Error)]
pub enum ProjectorError {
    #[error("failed to read the repository")]
    Git(#[from] GitError),
    #[error("failed to find the repository")]
    Hosting(#[from] HostingError),
    #[error("failed to read what is in force")]
    Store(#[from] StoreError),
    #[error("failed to project the repository")]
    Project(#[from] ProjectError),
    #[error(
        "the commit {commit} that is in force is not in the repository, as after an older backup: push it again from a clone that has it, or see `tidegate repo verify {id}` and let it mend the store with --repair"
    )]
    Unknown { id: RepositoryId, commit: ObjectId },
    #[error("the Repository {0} was deleted meanwhile")]
    Gone(RepositoryId),
    #[error("a deleted repository of the name {id} cannot be put away yet: {reason}")]
    Retire { id: RepositoryId, reason: String },
}

#[derive(Debug)]
pub enum CaughtUp {
    /// With what its author should know.
    Applied(Applied, Vec<Diagnostic>),
    /// Somebody else did it, or there was nothing to do.
    Already(ResourceVersion),
    Refused(Vec<String>),
}

pub struct Projector {
    pub(super) api: Api,
    pub(super) hosting: Arc<Hosting>,
    /// Why a repository's head is not in force.
    failures: Mutex<BTreeMap<RepositoryId, String>>,
    /// Told of each repository that may show another state than its object.
    noter: Arc<Noter>,
    metrics: Arc<Metrics>,
    pub(super) limits: HostedLimits,
    plain_http: PlainHttp,
}

/// A push of the projected branch, as it is checked.
pub struct Asked<'a> {
    pub hosted: &'a Hosted,
    /// With the objects of the push.
    pub git: &'a Repository,
    pub old: Option<ObjectId>,
    pub new: Option<ObjectId>,
}

/// A push that was found good, with the right to put it in force.
///
/// Between the check before a ref moves and the projection after it, nobody
/// else may change desired state, or what was found good might not be any
/// more. So the turn is held from one to the other.
pub struct Checked {
    turn: Turn,
    work: Work,
    admitted: Admitted,
}

pub enum Judged {
    Good(Box<Checked>),
    Bad(Vec<String>),
    /// Somebody else's push moved the branch while this one waited.
    Overtaken,
}

impl Projector {
    pub fn new(
        api: Api,
        hosting: Arc<Hosting>,
        noter: Arc<Noter>,
        metrics: Arc<Metrics>,
        limits: HostedLimits,
    ) -> Self {
        Self { api, hosting, failures: Mutex::default(), noter, metrics, limits, plain_http: PlainHttp::LoopbackOnly }
    }

    /// Where a Repository may be fetched from.
    #[must_use]
    pub fn with_plain_http(self, plain_http: PlainHttp) -> Self {
        Self { plain_http, ..self }
    }

    /// Whether a push is good. Then the turn is its own until it has been
    /// projected, or is dropped.
    pub async fn check(&self, asked: Asked<'_>) -> Result<Judged, ProjectorError> {
        let before = self.before(&asked.hosted.id)?;
        let early = self.read(asked.hosted, asked.git, &before, asked.new.as_ref()).await?;
        let mut work = match early {
            Ok(work) => work,
            Err(lines) => return Ok(Judged::Bad(lines)),
        };
        let turn = self.api.turn().await;
        let now = self.before(&asked.hosted.id)?;
        if now != before {
            if asked.hosted.git.head(&asked.hosted.branch).await? != asked.old {
                return Ok(Judged::Overtaken);
            }
            work = match self.read(asked.hosted, asked.git, &now, asked.new.as_ref()).await? {
                Ok(work) => work,
                Err(lines) => return Ok(Judged::Bad(lines)),
            };
        }
        if let Err(lines) = self.widen(&turn, asked.hosted, &mut work)? {
            return Ok(Judged::Bad(lines));
        }
        Ok(match self.admit(&turn, asked.hosted, &work)? {
            Err(lines) => Judged::Bad(lines),
            Ok(admitted) => {
                let objections = work.objections(&self.hosting, &asked.hosted.rules, self.plain_http).await?;
                if !objections.is_empty() {
                    return Ok(Judged::Bad(lines(&objections)));
                }
                Judged::Good(Box::new(Checked { turn, work, admitted }))
            }
        })
    }

    /// The branch has moved to what was checked: puts in force what was
    /// admitted for it.
    pub async fn finish(&self, hosted: &Hosted, checked: Checked) -> Result<CaughtUp, ProjectorError> {
        let Checked { turn, work, admitted } = checked;
        let outcome = self.apply(&turn, hosted, &work, Some(admitted)).await;
        self.tell(hosted, outcome)
    }

    /// Projects the branch's head, if it is not in force. Of a repository that
    /// is fetched the head follows what is in force instead.
    pub async fn catch_up(&self, hosted: &Hosted) -> Result<CaughtUp, ProjectorError> {
        let outcome = match &hosted.remote {
            None => self.bring(hosted, None).await,
            Some(_) => {
                let turn = self.api.turn().await;
                self.show(&turn, hosted).await
            }
        };
        self.tell(hosted, outcome)
    }

    /// Puts a commit that was fetched into force, and shows it; or nothing
    /// changes.
    pub async fn advance(&self, hosted: &Hosted, commit: &ObjectId) -> Result<CaughtUp, ProjectorError> {
        let outcome = self.bring(hosted, Some(commit)).await?;
        let turn = self.api.turn().await;
        self.show(&turn, hosted).await?;
        self.noter.touch(&hosted.id);
        Ok(outcome)
    }

    /// Whoever clones a fetched repository from here gets what is in force,
    /// which does not change meanwhile.
    async fn show(&self, _turn: &Turn, hosted: &Hosted) -> Result<CaughtUp, ProjectorError> {
        if let Some(mark) = self.before(&hosted.id)?.mark {
            let head = hosted.git.head(&hosted.branch).await?;
            // A directory that was lost has it again after the next fetch.
            let is_there = hosted.git.resolve(mark.commit.as_str()).await?.is_some();
            if is_there && head.as_ref() != Some(&mark.commit) {
                let name = format!("refs/heads/{}", hosted.branch);
                let update = RefUpdate { name, old: head, new: Some(mark.commit) };
                self.hosting.move_refs(&hosted.git, &[update]).await?.or_failed(&hosted.git)?;
            }
        }
        Ok(CaughtUp::Already(self.api.store().view().version()))
    }

    /// How much the repository defines.
    pub fn tally(&self, id: &RepositoryId) -> Result<Option<Tally>, StoreError> {
        Tally::read(&self.api.store().view(), id)
    }

    /// For when nobody waits for the outcome: it goes to health and the log.
    pub async fn catch_up_or_report(&self, hosting: &Hosting, id: &RepositoryId) {
        self.retire_or_log(hosting, id).await;
        match hosting.find(id).await {
            Ok(Some(hosted)) => drop(self.catch_up(&hosted).await),
            // Nothing of the new one is missing; the old one is tried again.
            Ok(None) | Err(HostingError::Deleted) => self.report(id, None),
            Err(error) => self.report(id, Some(chain(&error))),
        }
    }

    /// Puts `commit` in force, or the branch's head if none is named.
    async fn bring(&self, hosted: &Hosted, commit: Option<&ObjectId>) -> Result<CaughtUp, ProjectorError> {
        let before = self.before(&hosted.id)?;
        let wanted = self.wanted(hosted, commit).await?;
        if before.mark == target(hosted, wanted.as_ref()) {
            return Ok(CaughtUp::Already(self.api.store().view().version()));
        }
        let early = self.read(hosted, &hosted.git, &before, wanted.as_ref()).await?;
        let turn = self.api.turn().await;
        let now = self.before(&hosted.id)?;
        // Looked at again also if nothing else came into force: a push of what
        // is in force already moves the branch and not the mark.
        let wanted_now = self.wanted(hosted, commit).await?;
        if now.mark == target(hosted, wanted_now.as_ref()) {
            return Ok(CaughtUp::Already(self.api.store().view().version()));
        }
        let read = if now == before && wanted_now == wanted {
            early
        } else {
            self.read(hosted, &hosted.git, &now, wanted_now.as_ref()).await?
        };
        let mut work = match read {
            Ok(work) => work,
            Err(lines) => return Ok(CaughtUp::Refused(lines)),
        };
        match self.widen(&turn, hosted, &mut work)? {
            Ok(()) => self.apply(&turn, hosted, &work, None).await,
            Err(lines) => Ok(CaughtUp::Refused(lines)),
        }
    }

    async fn wanted(&self, hosted: &Hosted, commit: Option<&ObjectId>) -> Result<Option<ObjectId>, GitError> {
        match commit {
            Some(commit) => Ok(Some(commit.clone())),
            None => hosted.git.head(&hosted.branch).await,
        }
    }

    pub(super) async fn apply(
        &self,
        turn: &Turn,
        hosted: &Hosted,
        work: &Work,
        admitted: Option<Admitted>,
    ) -> Result<CaughtUp, ProjectorError> {
        self.still_there(hosted)?;
        let kinds = self.api.kinds();
        let projected = work.with_projection(hosted, &kinds.set, async |projection| {
            self.api.project_in_turn(turn, &projection, admitted).await
        });
        Ok(match projected.await? {
            Projected::Applied(applied, warnings) => {
                self.metrics.git_projected(applied.created, applied.updated, applied.deleted);
                CaughtUp::Applied(applied, warnings)
            }
            Projected::Rejected(problems) => CaughtUp::Refused(lines(&problems)),
        })
    }

    pub(super) fn admit(
        &self,
        turn: &Turn,
        hosted: &Hosted,
        work: &Work,
    ) -> Result<Result<Admitted, Vec<String>>, ProjectorError> {
        self.still_there(hosted)?;
        let kinds = self.api.kinds();
        match work.projection(hosted, &kinds.set, |projection| self.api.admit(turn, projection)) {
            Ok(admitted) => Ok(admitted.map_err(|problems| lines(&problems))),
            Err(ProjectError::Commit(error @ CommitError::TooLarge { .. })) => Ok(Err(vec![error.to_string()])),
            Err(error) => Err(error.into()),
        }
    }

    /// Under the turn it stays so until something is committed.
    fn still_there(&self, hosted: &Hosted) -> Result<(), ProjectorError> {
        let Some(uid) = hosted.uid.as_deref().filter(|_| hosted.id != RepositoryId::control()) else { return Ok(()) };
        let stored = self.api.store().view().get(&hosted.id.key())?;
        let now = stored.and_then(|stored| Object::from_json(&stored.json));
        let is_same = now.is_some_and(|now| now.uid() == Some(uid));
        if is_same { Ok(()) } else { Err(ProjectorError::Gone(hosted.id.clone())) }
    }

    /// `Err` inside: what is wrong with the files, whatever they say.
    pub(super) async fn read(
        &self,
        hosted: &Hosted,
        git: &Repository,
        before: &Before,
        commit: Option<&ObjectId>,
    ) -> Result<Result<Work, Vec<String>>, ProjectorError> {
        match Work::read(git, before, commit, &hosted.path, self.limits.changed_files_max).await {
            Ok(read) => Ok(read.map_err(|problems| lines(&problems))),
            Err(error) if error.is_of_the_commit() || matches!(error, GitError::TooSlow { .. }) => {
                Ok(Err(vec![error.to_string()]))
            }
            Err(error) => match &before.mark {
                Some(mark) if git.resolve(mark.commit.as_str()).await?.is_none() => {
                    Err(ProjectorError::Unknown { id: hosted.id.clone(), commit: mark.commit.clone() })
                }
                _ => Err(error.into()),
            },
        }
    }

    /// What was never counted stays so; counting begins with the first.
    pub(super) fn before(&self, id: &RepositoryId) -> Result<Before, StoreError> {
        let view = self.api.store().view();
        let mark = Mark::read(&view, id)?;
        let tally = if mark.is_none() { Some(Tally::default()) } else { Tally::read(&view, id)? };
        Ok(Before { mark, tally })
    }

    /// For `/readyz`.
    pub fn health(&self) -> Result<(), String> {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        match failures.iter().next() {
            None => Ok(()),
            Some((id, reason)) => Err(format!("{} not in force; {id}: {reason}", failures.len())),
        }
    }

    pub(super) fn tell(
        &self,
        hosted: &Hosted,
        outcome: Result<CaughtUp, ProjectorError>,
    ) -> Result<CaughtUp, ProjectorError> {
        let failure = match &outcome {
            Ok(CaughtUp::Refused(problems)) => Some(problems.first().cloned().unwrap_or_default()),
            Ok(_) => None,
            Err(error) => Some(chain(error)),
        };
        self.report(&hosted.id, failure);
        self.noter.touch(&hosted.id);
        outcome
    }

    fn report(&self, id: &RepositoryId, failure: Option<String>) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        // Said once, however often it is looked at.
        if let Some(reason) = failure.as_ref().filter(|reason| failures.get(id) != Some(reason)) {
            tracing::error!(repository = %id, reason, "the head of the repository is not in force");
        }
        match failure {
            Some(reason) => drop(failures.insert(id.clone(), reason)),
            None => drop(failures.remove(id)),
        }
    }
}

fn target(hosted: &Hosted, head: Option<&ObjectId>) -> Option<Mark> {
    head.map(|commit| Mark { commit: commit.clone(), path: hosted.path.clone() })
}

fn lines(problems: &[Diagnostic]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

/// With its causes: whoever reads it has no other place to look.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
