//! What a push came to: for the client, for the pusher's terminal, and for
//! whoever looks after the server.

use tidegate_git::Verdict;
use tidegate_model::ResourceVersion;

use super::projector::CaughtUp;

pub struct Answer {
    pub verdict: Verdict,
    pub lines: Vec<String>,
    pub outcome: Outcome,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The refs have moved, and what they say is in force.
    InForce,
    /// The refs have moved. None of them was projected.
    Stored,
    /// The refs have moved, and what they say is not in force.
    NotInForce,
    Refused,
    /// For a reason of ours: nobody knows how far it came.
    Failed,
}

impl Outcome {
    /// For the metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::InForce | Self::Stored => "accepted",
            Self::NotInForce => "not_in_force",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }

    /// Whether the head of the projected branch is in force for sure. What was
    /// stored may have become projected meanwhile.
    pub fn is_settled(self) -> bool {
        matches!(self, Self::InForce | Self::Refused)
    }
}

impl Answer {
    fn accepted(outcome: Outcome, lines: Vec<String>) -> Self {
        Self { verdict: Verdict::Done, lines, outcome }
    }

    pub fn stored(projected_branch: &str) -> Self {
        Self::accepted(Outcome::Stored, vec![format!("stored; only {projected_branch} is projected")])
    }

    pub fn refused(mut lines: Vec<String>) -> Self {
        lines.push("refused: nothing has changed".into());
        Self { verdict: Verdict::Refused("refused".into()), lines, outcome: Outcome::Refused }
    }

    pub fn not_unpacked(lines: Vec<String>) -> Self {
        let verdict = Verdict::NotUnpacked("the objects cannot be taken".into());
        Self { verdict, ..Self::refused(lines) }
    }

    /// Git's own words for it, on which its users and tools rely.
    pub fn stale() -> Self {
        let lines = vec!["another push was first: fetch, and push again".to_owned()];
        Self { verdict: Verdict::Refused("fetch first".into()), ..Self::refused(lines) }
    }

    /// Why is for its log: it may name what is not the pusher's to know.
    pub fn failed() -> Self {
        let line = "the server failed, and its log has the reason: fetch to see whether the push was stored";
        let verdict = Verdict::Refused("the server failed".into());
        Self { verdict, lines: vec![line.into()], outcome: Outcome::Failed }
    }

    pub fn of(outcome: CaughtUp) -> Self {
        match outcome {
            CaughtUp::Applied(applied, warnings) => {
                let mut lines: Vec<String> = warnings.iter().map(|warning| format!("warning: {warning}")).collect();
                lines.push(summary(applied.created, applied.updated, applied.deleted, applied.version));
                Self::accepted(Outcome::InForce, lines)
            }
            CaughtUp::Already(version) => Self::accepted(Outcome::InForce, vec![summary(0, 0, 0, version)]),
            CaughtUp::Refused(mut lines) => {
                let told = "stored, but not in force: another change came first; push a commit that mends the above";
                lines.push(told.into());
                Self::accepted(Outcome::NotInForce, lines)
            }
        }
    }
}

fn summary(created: usize, updated: usize, deleted: usize, version: ResourceVersion) -> String {
    format!("+{created} ~{updated} -{deleted} objects, resourceVersion {version}")
}
