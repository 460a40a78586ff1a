//! Whether store and Git say the same, and how to make them.
//!
//! The whole branch is admitted against what the store owns of the repository,
//! as if nothing were known of the past: what that would change is where the
//! two disagree, and applying it mends the store from Git.

use serde::{Deserialize, Serialize};
use tidegate_model::ObjectKey;

use super::change::Before;
use super::hosting::Hosted;
use super::projector::{CaughtUp, Projector, ProjectorError};
use crate::api::Effect;

/// Objects that a report names; the counts are of all.
const NAMED_MAX: usize = 1000;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    pub repository: String,
    pub branch: String,
    /// The branch's head, if it has one.
    pub head: Option<String>,
    /// What the store says is in force.
    pub projected: Option<String>,
    /// Not in the store though Git defines them.
    pub missing: usize,
    /// In the store, but not as Git says.
    pub different: usize,
    /// In the store though Git does not define them.
    pub extra: usize,
    /// The first of them.
    pub objects: Vec<Disagreement>,
    /// Why the head cannot be put in force at all.
    pub problems: Vec<String>,
    /// The version at which the two were made to agree.
    pub repaired: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Disagreement {
    pub sort: Sort,
    pub object: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sort {
    Missing,
    Different,
    Extra,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Repair {
    No,
    FromGit,
}

impl Projector {
    /// Nothing is pushed meanwhile: it would read as a disagreement.
    pub async fn verify(&self, hosted: &Hosted, repair: Repair) -> Result<Report, ProjectorError> {
        let turn = self.api.turn().await;
        let head = hosted.git.head(&hosted.branch).await?;
        let mark = self.before(&hosted.id)?.mark;
        let mut report = Report {
            repository: hosted.id.to_string(),
            branch: hosted.branch.clone(),
            head: head.as_ref().map(ToString::to_string),
            projected: mark.as_ref().map(|mark| mark.commit.to_string()),
            missing: 0,
            different: 0,
            extra: 0,
            objects: Vec::new(),
            problems: Vec::new(),
            repaired: None,
        };
        let read = self.read(hosted, &hosted.git, &Before::default(), head.as_ref()).await?;
        let owned = tokio::task::block_in_place(|| self.api.owned_by(&hosted.rules.repository))?;
        let mut work = match read {
            Ok(work) => work.against(owned),
            Err(problems) => return Ok(Report { problems, ..report }),
        };
        if let Err(problems) = self.widen(&turn, hosted, &mut work)? {
            return Ok(Report { problems, ..report });
        }
        let admitted = match self.admit(&turn, hosted, &work)? {
            Ok(admitted) => admitted,
            Err(problems) => return Ok(Report { problems, ..report }),
        };
        for (key, effect) in admitted.effects() {
            report.add(key, effect);
        }
        if repair == Repair::FromGit && !report.agrees() {
            let outcome = self.apply(&turn, hosted, &work, Some(admitted)).await;
            match self.tell(hosted, outcome)? {
                CaughtUp::Applied(applied, _) => report.repaired = Some(applied.version.to_string()),
                CaughtUp::Already(version) => report.repaired = Some(version.to_string()),
                CaughtUp::Refused(problems) => report.problems = problems,
            }
        }
        Ok(report)
    }
}

impl Report {
    pub fn agrees(&self) -> bool {
        self.missing + self.different + self.extra == 0 && self.problems.is_empty() && self.head == self.projected
    }

    fn add(&mut self, key: &ObjectKey, effect: Effect) {
        let (sort, count) = match effect {
            Effect::Create => (Sort::Missing, &mut self.missing),
            Effect::Update => (Sort::Different, &mut self.different),
            Effect::Delete => (Sort::Extra, &mut self.extra),
        };
        *count += 1;
        if self.objects.len() < NAMED_MAX {
            self.objects.push(Disagreement { sort, object: key.to_string() });
        }
    }
}
