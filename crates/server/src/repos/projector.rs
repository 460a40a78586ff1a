//! Makes the store equal to a repository's branch, and tells beforehand
//! whether that would work. Both go through the same change and the same plan.
//!
//! Invariant: one projection of a repository at a time; pushes to different
//! repositories meet only where the store is written.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use tidegate_git::{GitError, ObjectId, Repository};
use tidegate_model::ResourceVersion;
use tidegate_model::manifest::Diagnostic;
use tidegate_store::{CommitError, StoreError};

use super::change::{self, Difference};
use super::hosting::{Hosted, Hosting, HostingError};
use super::id::RepositoryId;
use super::mark::{Mark, Tally};
use super::note::Noter;
use crate::api::{Api, Applied, NO_MARKS, ProjectError, Projected, Projection};

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
    api: Api,
    turns: Mutex<HashMap<RepositoryId, Arc<tokio::sync::Mutex<()>>>>,
    /// Why a repository's head is not in force.
    failures: Mutex<BTreeMap<RepositoryId, String>>,
    /// Told of each repository that may show another state than its object.
    noter: Arc<Noter>,
}

impl Projector {
    pub fn new(api: Api, noter: Arc<Noter>) -> Self {
        Self { api, turns: Mutex::default(), failures: Mutex::default(), noter }
    }

    /// What would be wrong with `commit` as the branch's head; empty if it is
    /// fine. `git` sees the objects of the push.
    pub async fn check(
        &self,
        hosted: &Hosted,
        git: &Repository,
        commit: Option<&ObjectId>,
    ) -> Result<Vec<String>, ProjectorError> {
        let mark = Mark::read(&self.api.store().view(), &hosted.id)?;
        let difference = match change::read(git, mark.as_ref(), commit, &hosted.path).await {
            Ok(Ok(difference)) => difference,
            Ok(Err(problems)) => return Ok(lines(&problems)),
            Err(error @ (GitError::TooMuch { .. } | GitError::TooManyPaths { .. })) => {
                return Ok(vec![error.to_string()]);
            }
            Err(error) => return Err(error.into()),
        };
        let defined_at = |path: &str| difference.defined_at(&self.api.kinds().set, &hosted.rules, path);
        match self.api.check(&projection(hosted, &difference, commit, &defined_at)) {
            Ok(problems) => Ok(lines(&problems)),
            Err(ProjectError::Commit(error @ CommitError::TooLarge { .. })) => Ok(vec![error.to_string()]),
            Err(error) => Err(error.into()),
        }
    }

    /// Projects the branch's head, if it is not in force. Of a repository that
    /// is fetched the head follows what is in force instead.
    pub async fn catch_up(&self, hosted: &Hosted) -> Result<CaughtUp, ProjectorError> {
        let turn = self.turn(&hosted.id);
        let _turn = turn.lock().await;
        let outcome = match &hosted.remote {
            None => self.try_catch_up(hosted).await,
            Some(_) => self.show(hosted).await,
        };
        self.noter.touch(&hosted.id);
        let failure = match &outcome {
            Ok(CaughtUp::Refused(problems)) => Some(problems.first().cloned().unwrap_or_default()),
            Ok(_) => None,
            Err(error) => Some(chain(error)),
        };
        self.report(&hosted.id, failure);
        outcome
    }

    /// For when nobody waits for the outcome: it goes to health and the log.
    pub async fn catch_up_or_report(&self, hosting: &Hosting, id: &RepositoryId) {
        match hosting.find(id).await {
            Ok(Some(hosted)) => drop(self.catch_up(&hosted).await),
            Ok(None) => self.report(id, None),
            Err(error) => self.report(id, Some(chain(&error))),
        }
    }

    /// Puts a commit that was fetched into force, and shows it; or nothing
    /// changes.
    pub async fn advance(&self, hosted: &Hosted, commit: &ObjectId) -> Result<CaughtUp, ProjectorError> {
        let turn = self.turn(&hosted.id);
        let _turn = turn.lock().await;
        let outcome = self.bring(hosted, Some(commit.clone())).await?;
        self.show(hosted).await?;
        self.noter.touch(&hosted.id);
        Ok(outcome)
    }

    /// Whoever clones a fetched repository from here gets what is in force.
    async fn show(&self, hosted: &Hosted) -> Result<CaughtUp, ProjectorError> {
        let view = self.api.store().view();
        if let Some(mark) = Mark::read(&view, &hosted.id)? {
            let head = hosted.git.head(&hosted.branch).await?;
            // A directory that was lost has it again after the next fetch.
            let is_there = hosted.git.resolve(mark.commit.as_str()).await?.is_some();
            if is_there && head.as_ref() != Some(&mark.commit) {
                let name = format!("refs/heads/{}", hosted.branch);
                hosted.git.update_ref(&name, head.as_ref(), &mark.commit).await?;
            }
        }
        Ok(CaughtUp::Already(view.version()))
    }

    /// How much the repository defines.
    pub fn tally(&self, id: &RepositoryId) -> Result<Option<Tally>, StoreError> {
        Tally::read(&self.api.store().view(), id)
    }

    async fn try_catch_up(&self, hosted: &Hosted) -> Result<CaughtUp, ProjectorError> {
        let head = hosted.git.head(&hosted.branch).await?;
        self.bring(hosted, head).await
    }

    async fn bring(&self, hosted: &Hosted, head: Option<ObjectId>) -> Result<CaughtUp, ProjectorError> {
        let view = self.api.store().view();
        let mark = Mark::read(&view, &hosted.id)?;
        // What was never counted stays so; counting begins with the first.
        let tally = if mark.is_none() { Some(Tally::default()) } else { Tally::read(&view, &hosted.id)? };
        let target = head.clone().map(|commit| Mark { commit, path: hosted.path.clone() });
        if mark == target {
            return Ok(CaughtUp::Already(view.version()));
        }
        drop(view);
        let difference = match change::read(&hosted.git, mark.as_ref(), head.as_ref(), &hosted.path).await? {
            Ok(difference) => difference,
            Err(problems) => return Ok(CaughtUp::Refused(lines(&problems))),
        };
        let defined_at = |path: &str| difference.defined_at(&self.api.kinds().set, &hosted.rules, path);
        let mut projection = projection(hosted, &difference, head.as_ref(), &defined_at);
        let files = difference.file_counts();
        let marks = |applied: &Applied| {
            let tally = tally.map(|tally| tally.after((applied.created, applied.deleted), files).encode());
            vec![
                (Mark::name(&hosted.id), target.as_ref().map(Mark::encode)),
                (Tally::name(&hosted.id), tally.filter(|_| target.is_some())),
            ]
        };
        projection.marks = &marks;
        Ok(match self.api.project(projection).await? {
            Projected::Applied(applied, warnings) => CaughtUp::Applied(applied, warnings),
            Projected::Rejected(problems) => CaughtUp::Refused(lines(&problems)),
        })
    }

    /// For `/readyz`.
    pub fn health(&self) -> Result<(), String> {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        match failures.iter().next() {
            None => Ok(()),
            Some((id, reason)) => Err(format!("{} not in force; {id}: {reason}", failures.len())),
        }
    }

    fn report(&self, id: &RepositoryId, failure: Option<String>) {
        if let Some(reason) = &failure {
            tracing::error!(repository = %id, reason, "the head of the repository is not in force");
        }
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        match failure {
            Some(reason) => drop(failures.insert(id.clone(), reason)),
            None => drop(failures.remove(id)),
        }
    }

    fn turn(&self, id: &RepositoryId) -> Arc<tokio::sync::Mutex<()>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner).entry(id.clone()).or_default().clone()
    }
}

fn projection<'a>(
    hosted: &'a Hosted,
    difference: &'a Difference,
    commit: Option<&'a ObjectId>,
    defined_at: crate::api::DefinedAt<'a>,
) -> Projection<'a> {
    let commit = commit.map(ObjectId::as_str);
    Projection { rules: &hosted.rules, change: difference.change(), defined_at, commit, marks: NO_MARKS }
}

fn lines(problems: &[Diagnostic]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

/// With its causes: whoever reads it has no other place to look.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
