//! Pushes of which nobody knows whether they arrived.
//!
//! A connection that ends between a push and its answer leaves that open. A
//! batch that arrived and is written again, on top of itself, repeats whatever
//! it says of one object more than once: what a list found and what somebody
//! made of it since, or what two people made of it in turn. So the commits are
//! looked for in what the remote has, before anything else is written.

use std::collections::VecDeque;

use tidegate_git::{GitError, ObjectId, PushError, Repository};
use tokio::time::Instant;

use super::clone::CloneError;
use super::foreign::Folders;
use super::plan::Report;
use super::queue::{Pending, Ticket};
use super::worker::WorkError;

/// A host may still be at an older one when the next is tried. Their contents
/// are those that wait in the queue, and what it holds is bounded.
const ATTEMPTS_MAX: usize = 8;
/// Commits of others on top of ours, beyond which we do not look.
const FOREIGN_COMMITS_MAX: u64 = 50;

/// What one push carries.
pub(super) struct Batch {
    pub pending: Vec<Pending>,
    pub ticket: Ticket,
    pub report: Report,
    pub started: Instant,
}

pub(super) struct Attempt {
    pub head: ObjectId,
    pub batch: Batch,
    /// As its commits leave them.
    pub folders: Folders,
}

#[derive(Default)]
pub(super) struct Attempts(VecDeque<Attempt>);

impl Attempts {
    pub fn add(&mut self, attempt: Attempt) {
        if self.0.len() >= ATTEMPTS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(attempt);
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// How many commits have to be fetched to find one of them.
    pub fn depth(&self) -> u64 {
        let commits = self.0.iter().map(|attempt| attempt.batch.report.commits).max();
        commits.map_or(1, |commits| commits + FOREIGN_COMMITS_MAX)
    }

    /// The one that `head` has in its history; the others did not arrive.
    pub async fn arrived(&mut self, clone: &Repository, head: Option<&ObjectId>) -> Result<Option<Attempt>, GitError> {
        let Some(head) = head else { return Ok(None) };
        for at in (0..self.0.len()).rev() {
            if clone.has_ancestor(head, &self.0[at].head).await? {
                let arrived = self.0.remove(at);
                self.clear();
                return Ok(arrived);
            }
        }
        Ok(None)
    }
}

/// Whether a push that failed in this way may have arrived.
pub(super) fn is_open(error: &WorkError) -> bool {
    match error {
        WorkError::Clone(CloneError::Push(PushError::Rejected { .. })) => false,
        WorkError::Clone(_) => true,
        WorkError::Plan(_) | WorkError::TermOver | WorkError::NotMoved | WorkError::Lost => false,
    }
}
