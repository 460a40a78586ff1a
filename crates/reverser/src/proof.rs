//! Whether the API server calls our webhook, for the types that it was told
//! of. Writing a registration does not say so: each API server takes it up a
//! moment later, and one that cannot reach us never does.
//!
//! Invariant: a type is settled only after the answer to a request that the
//! API server admitted under a registration of that type.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A group and a plural, whatever the version.
pub type TypeName = (String, String);

#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub enum Verdict {
    /// It called us.
    Calls,
    /// It did not, for this reason.
    Silent(String),
    /// It did not let us ask.
    #[default]
    Unknown,
}

/// What the engine reads, what the webhook hears, what the registration asks.
#[derive(Debug, Default)]
pub struct Proof {
    state: Mutex<State>,
    is_news: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// Without a webhook there is nothing to prove.
    is_wanted: bool,
    /// The last question that came back.
    heard: Option<String>,
    settled: Settled,
}

#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Settled {
    pub types: Arc<BTreeSet<TypeName>>,
    pub verdict: Verdict,
}

impl Proof {
    pub fn want(&self) {
        self.state().is_wanted = true;
    }

    /// A question came back through the webhook.
    pub fn hear(&self, question: &str) {
        self.state().heard = Some(question.to_owned());
    }

    pub fn has_heard(&self, question: &str) -> bool {
        self.state().heard.as_deref() == Some(question)
    }

    /// What is known of these types, and of no others any more.
    pub fn settle(&self, types: &Arc<BTreeSet<TypeName>>, verdict: Verdict) {
        let settled = Settled { types: types.clone(), verdict };
        let mut state = self.state();
        if state.settled != settled {
            state.settled = settled;
            self.is_news.store(true, Ordering::Release);
        }
    }

    /// `None` if nobody asks.
    pub fn settled(&self) -> Option<Settled> {
        let state = self.state();
        state.is_wanted.then(|| state.settled.clone())
    }

    /// Whether something was settled since the last call.
    pub fn take_news(&self) -> bool {
        self.is_news.swap(false, Ordering::AcqRel)
    }

    /// Held for one step in memory, never across an await.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_counts_once_it_came_back() {
        let proof = Proof::default();
        assert_eq!(proof.settled(), None, "nobody asks");
        proof.want();
        proof.hear("first");
        assert!(proof.has_heard("first") && !proof.has_heard("second"));
    }

    #[test]
    fn the_same_verdict_is_no_news() {
        let (proof, types) = (Proof::default(), Arc::new([(String::new(), "configmaps".to_owned())].into()));
        for (verdict, expected) in [(Verdict::Calls, true), (Verdict::Calls, false), (Verdict::Unknown, true)] {
            proof.settle(&types, verdict.clone());
            assert_eq!(proof.take_news(), expected, "{verdict:?}");
        }
    }
}
