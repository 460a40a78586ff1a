//! What an author implements.

use std::error::Error;
use std::future::Future;
use std::time::Duration;

use tidegate_model::ObjectKey;

use crate::{ApiError, Fault};

/// Brings the world and the status in line with one object's spec.
///
/// It is given a key and nothing else: it reads what is there now, so it does
/// not matter why it was called, how often, or what it missed. A key that is
/// gone is an ordinary call that finds nothing. It may be stopped at any
/// `.await` (deadline, shutdown, a lost lease) and is then called again.
pub trait Reconciler: Send + Sync + 'static {
    fn reconcile(&self, key: &ObjectKey) -> impl Future<Output = Result<Next, ReconcileError>> + Send;
}

/// When to look again after a success.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    AwaitChange,
    /// Also if nothing changes. Survives a restart.
    After(Duration),
}

pub type BoxError = Box<dyn Error + Send + Sync>;

/// Why a reconcile did not succeed, by what follows from it. The source stays
/// in the chain.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// Try again with backoff; after too many attempts the key is quarantined.
    #[error("the reconcile failed")]
    Retryable(#[source] BoxError),
    /// Trying again would not help: quarantined until the object's generation
    /// changes or an operator releases it.
    #[error("the reconcile cannot succeed")]
    Terminal(#[source] BoxError),
    /// Somebody else wrote the object meanwhile. Backoff, never quarantine.
    #[error("the object changed meanwhile")]
    Conflict(#[source] BoxError),
    /// The API or what the reconcile depends on is away, which is not this
    /// object's fault. Backoff, never quarantine.
    #[error("what the reconcile depends on is unavailable")]
    Unavailable(#[source] BoxError),
}

impl ReconcileError {
    pub fn retryable(source: impl Into<BoxError>) -> Self {
        Self::Retryable(source.into())
    }

    pub fn terminal(source: impl Into<BoxError>) -> Self {
        Self::Terminal(source.into())
    }

    pub fn unavailable(source: impl Into<BoxError>) -> Self {
        Self::Unavailable(source.into())
    }

    /// The reasons, outermost first, for a log line or a condition.
    pub fn chain(&self) -> String {
        let mut text = String::new();
        let mut next: Option<&dyn Error> = self.source();
        while let Some(error) = next {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&error.to_string());
            next = error.source();
        }
        text
    }
}

impl From<ApiError> for ReconcileError {
    fn from(error: ApiError) -> Self {
        match error.fault {
            Fault::Conflict => Self::Conflict(error.into()),
            Fault::Invalid | Fault::TooLarge => Self::Terminal(error.into()),
            // Gone since it was read: the next run finds nothing.
            Fault::NotFound => Self::Conflict(error.into()),
            Fault::Forbidden
            | Fault::Unauthenticated
            | Fault::KindNotFound
            | Fault::Expired
            | Fault::LeaseLost
            | Fault::Unavailable => Self::Unavailable(error.into()),
        }
    }
}
