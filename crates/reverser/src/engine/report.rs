//! What each configuration object is told of itself.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde_json::Value;
use tidegate_model::timestamp::format_time;

use super::destinations::Active;
use super::state::{Engine, destination_id};
use crate::branch::{BranchStatus, DestinationStatus, Failure, FailureReason};
use crate::claims::{ClaimId, RuleVerdict};
use crate::config::{Condition, ConfigKind, Id, Problem, Reason, StatusBody, Truth};
use crate::proof::{Settled, Verdict};

/// Of a repository with many: a message is for people.
const BRANCHES_SHOWN_MAX: usize = 10;

impl Engine {
    pub(super) fn report(&mut self) {
        self.is_report_due = false;
        if self.configured.len() < ConfigKind::ALL.len() || self.discovered.is_none() {
            return;
        }
        let repos = self
            .desired
            .repos
            .iter()
            .map(|(id, verdict)| (ConfigKind::GitRepoConfig, id.clone(), self.repo_status(id, verdict)));
        let destinations = self.desired.destinations.iter().map(|(id, planned)| {
            let body = match planned {
                Ok(_) => self.destination_status(id),
                Err(problem) => stalled(problem),
            };
            (ConfigKind::GitDestination, id.clone(), body)
        });
        let proof = self.parts.shared.proof.settled();
        let rules =
            self.desired.rules.iter().filter_map(|((kind, id), verdict)| {
                Some((*kind, id.clone(), self.rule_status(verdict, proof.as_ref())?))
            });
        let bodies: Vec<_> = repos.chain(destinations).chain(rules).collect();
        for (kind, id, body) in bodies {
            if let Some(meta) = self.config.meta(kind, &id) {
                self.writer.tell(kind, id, meta.clone(), body);
            }
        }
    }

    fn repo_status(&self, id: &Id, verdict: &Result<(), Problem>) -> StatusBody {
        if let Err(problem) = verdict {
            return stalled(problem);
        }
        match self.repos.get(id).and_then(|repo| repo.state.as_ref()) {
            None => return StatusBody::reconciling(Truth::Unknown, Reason::ConnectionFailed, "not tried yet"),
            Some(Err(problem)) => return stalled(problem),
            Some(Ok(_)) => {}
        }
        let of_repo = self.branches.iter().filter(|(key, _)| key.repo == *id);
        let branches: Vec<(&str, BranchStatus)> =
            of_repo.map(|(key, branch)| (key.name.as_str(), branch.status().borrow().clone())).collect();
        if let Some((_, Failure { reason, message, .. })) =
            branches.iter().find_map(|(name, status)| Some((name, status.failure.clone()?)))
        {
            let body = StatusBody::reconciling(Truth::False, repo_reason(reason), message.clone());
            return body.with("lastError", message);
        }
        if branches.is_empty() {
            return self.unused_repo_status(id);
        }
        let names: Vec<_> = branches.iter().map(|(name, _)| *name).collect();
        let heads: Vec<Value> = branches
            .iter()
            .filter_map(|(name, status)| {
                Some(serde_json::json!({"name": name, "commit": status.head.as_ref()?.to_string()}))
            })
            .collect();
        let is_mirrored = |active: &Active| {
            let branch = self.branches.get(&active.branch).filter(|_| active.branch.repo == *id);
            branch.is_some_and(|branch| active.is_mirrored(&branch.status().borrow()))
        };
        // An empty repository has no head before the first object.
        if heads.is_empty() && !self.destinations.values().any(is_mirrored) {
            return StatusBody::reconciling(Truth::Unknown, Reason::ConnectionFailed, "the remote is being asked");
        }
        StatusBody::ready(Reason::BranchFound, format!("in use: {}", names.join(", "))).with("branches", heads)
    }

    /// Of a repository that nothing is pushed to: what asking it said.
    fn unused_repo_status(&self, id: &Id) -> StatusBody {
        match self.repos.get(id).and_then(|repo| repo.probed.as_ref()) {
            None => StatusBody::reconciling(Truth::Unknown, Reason::ConnectionFailed, "the remote is being asked"),
            Some(Err(problem)) => {
                let body = StatusBody::reconciling(Truth::False, problem.reason, problem.message.clone());
                body.with("lastError", problem.message.clone())
            }
            Some(Ok(found)) if found.is_empty() => {
                StatusBody::ready(Reason::BranchFound, "the repository is empty: the first push makes its branch")
            }
            Some(Ok(found)) => {
                let shown = found.iter().take(BRANCHES_SHOWN_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
                let message = format!("no GitDestination uses it; allowed and there: {shown}");
                StatusBody::ready(Reason::BranchFound, message)
            }
        }
    }

    fn destination_status(&self, id: &Id) -> StatusBody {
        let Some(active) = self.destinations.get(id) else {
            return StatusBody::reconciling(Truth::Unknown, Reason::Seeding, "about to start");
        };
        if let Some(problem) = &active.problem {
            return stalled(problem);
        }
        let claims = self.desired.claims_of(id);
        let watched: Vec<Value> = claims.iter().map(|claim| claim.of.to_string().into()).collect();
        let body = match self.branches.get(&active.branch) {
            Some(branch) => {
                let status = branch.status().borrow().clone();
                let own = status.destinations.get(&destination_id(id)).cloned().unwrap_or_default();
                self.branch_body(id, &status, &own, claims.iter())
            }
            None => {
                let message = format!("GitRepoConfig {} is not ready", active.branch.repo);
                StatusBody::reconciling(Truth::False, Reason::RepoConfigNotReady, message)
            }
        };
        body.with("watched", watched)
    }

    fn branch_body<'c>(
        &self,
        id: &Id,
        status: &BranchStatus,
        own: &DestinationStatus,
        claims: impl Iterator<Item = &'c ClaimId>,
    ) -> StatusBody {
        let is_mirrored = self.destinations.get(id).is_some_and(|active| active.is_mirrored(status));
        let failed_claim = self.failed_claim(claims);
        let body = if let Some(Failure { reason, message, .. }) = &status.failure {
            StatusBody::reconciling(Truth::False, repo_reason(*reason), message.clone())
                .with("lastError", message.clone())
        } else if let Some(error) = failed_claim {
            StatusBody::reconciling(Truth::False, Reason::WatchFailed, error.clone()).with("lastError", error)
        } else if !is_mirrored {
            let message = "waiting for rules, for complete lists, or for the first push";
            StatusBody::reconciling(Truth::False, Reason::Seeding, message)
        } else {
            StatusBody::ready(Reason::Mirroring, "Git says what the cluster says")
        };
        let mut skipped: BTreeMap<String, u64> = BTreeMap::new();
        own.skipped.values().for_each(|skip| *skipped.entry(format!("{:?}", skip.reason)).or_default() += 1);
        let body = body
            .with("lastCommit", own.last_commit.as_ref().map(ToString::to_string))
            .with("lastPushTime", own.last_push.map(|time| format_time(DateTime::<Utc>::from(time))));
        if skipped.is_empty() {
            return body;
        }
        let first =
            own.skipped.values().next().map(|skip| format!("{}: {}", skip.key, skip.reason)).unwrap_or_default();
        let (kind, truth, reason) = ("ObjectsSkipped", Truth::True, Reason::ObjectsSkipped);
        let message = format!("{} objects are not in Git; {first}", own.skipped.len());
        body.with("skipped", serde_json::json!(skipped)).and(Condition { kind, truth, reason, message })
    }

    /// `None` while the API server has yet to call the webhook for the rule's
    /// types: what it said before stays, and `Watching` says that the next
    /// change has its author.
    fn rule_status(&self, verdict: &RuleVerdict, proof: Option<&Settled>) -> Option<StatusBody> {
        let watched: Vec<Value> = verdict.claims.iter().map(|claim| claim.of.to_string().into()).collect();
        let body = if let Some(problem) = verdict.problems.first() {
            stalled(problem)
        } else if let Some(error) = self.failed_claim(verdict.claims.iter()) {
            StatusBody::reconciling(Truth::False, Reason::WatchFailed, error.clone()).with("lastError", error)
        } else if !verdict.waiting.is_empty() {
            let message = format!("nothing serves {} yet", verdict.waiting.join(", "));
            StatusBody::reconciling(Truth::False, Reason::WaitingForTypes, message)
        } else {
            StatusBody::ready(
                Reason::Watching,
                format!("{} types are watched{}", watched.len(), authors(verdict, proof)?),
            )
        };
        let commit = verdict.destination.as_ref().and_then(|id| {
            let status = self.branches.get(&self.destinations.get(id)?.branch)?.status();
            let status = status.borrow();
            status.destinations.get(&destination_id(id))?.last_commit.as_ref().map(ToString::to_string)
        });
        Some(body.with("watched", watched).with("waitingFor", verdict.waiting.clone()).with("lastCommit", commit))
    }

    fn failed_claim<'c>(&self, mut claims: impl Iterator<Item = &'c ClaimId>) -> Option<String> {
        claims.find_map(|claim| Some(format!("{}: {}", claim.of, self.claims.get(claim)?.error.as_ref()?)))
    }
}

/// What there is to say of the authors of a rule that is watched; `None` if
/// that is not known yet.
fn authors(verdict: &RuleVerdict, proof: Option<&Settled>) -> Option<String> {
    let Some(Settled { types, verdict: called }) = proof else { return Some(String::new()) };
    let is_settled = |claim: &ClaimId| types.contains(&(claim.of.group.clone(), claim.of.resource.clone()));
    verdict.claims.iter().all(is_settled).then(|| match called {
        Verdict::Silent(why) => format!("; their authors are unknown: {why}"),
        Verdict::Calls | Verdict::Unknown => String::new(),
    })
}

fn stalled(problem: &Problem) -> StatusBody {
    StatusBody::stalled(problem.reason, problem.message.clone()).with("lastError", problem.message.clone())
}

pub(super) fn repo_reason(reason: FailureReason) -> Reason {
    match reason {
        FailureReason::BranchNotFound => Reason::BranchNotFound,
        FailureReason::DiskFull => Reason::DiskFull,
        FailureReason::ConnectionFailed | FailureReason::AuthenticationFailed => Reason::ConnectionFailed,
        _ => Reason::PushFailed,
    }
}
