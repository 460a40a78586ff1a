//! Others who push to the same branch.

use std::time::Duration;

use tidegate_git::ObjectId;

use super::worker::WorkError;
use crate::backoff::Backoff;

/// After a rival's push: soon, but not so soon that two of us take turns.
const RIVAL_MIN: Duration = Duration::from_millis(20);
const RIVAL_MAX: Duration = Duration::from_secs(1);
/// How often in a row a host may say that the branch has moved when it has
/// not: a rival that holds its lock takes a moment, a full disk takes longer.
const STILL_MAX: u32 = 5;

pub(super) struct Rivals {
    backoff: Backoff,
    /// Where the branch was when it was last looked at, and how often in a row.
    seen: Option<Option<ObjectId>>,
    still: u32,
}

impl Default for Rivals {
    fn default() -> Self {
        Self { backoff: Backoff::new(RIVAL_MIN, RIVAL_MAX), seen: None, still: 0 }
    }
}

impl Rivals {
    /// Before each attempt. A branch that stands still has no rival.
    pub fn look(&mut self, base: Option<ObjectId>) -> Result<(), WorkError> {
        self.still = if self.seen.as_ref() == Some(&base) { self.still + 1 } else { 0 };
        self.seen = Some(base);
        if self.still > STILL_MAX { Err(WorkError::NotMoved) } else { Ok(()) }
    }

    /// After one of them was faster.
    pub async fn wait(&mut self) {
        tokio::time::sleep(self.backoff.next(rand::random())).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_that_stands_still_has_no_rival() {
        let id = |digit: char| ObjectId::parse(&digit.to_string().repeat(40));
        let mut rivals = Rivals::default();
        let mut look = |base: Option<ObjectId>| rivals.look(base).is_ok();
        // Somebody who is always faster is one for as long as it takes.
        assert!((0..100).all(|round| look(id(if round % 2 == 0 { 'a' } else { 'b' }))));
        assert!(look(None));
        assert!((0..STILL_MAX).all(|_| look(None)));
        assert!(!look(None));
    }
}
