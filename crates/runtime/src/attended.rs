//! A plane whose absence is said once, not by everybody who notices.
//!
//! A manager has dozens of readers. When the server is away or refuses the
//! token, one line says so, more seldom ones that it goes on, and one that it
//! is over. What concerns one kind alone is still said by its reader.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tidegate_model::{ObjectKey, ResourceVersion};
use tokio::time::Instant;

use crate::{
    ApiError, Fault, Fence, Item, Kind, Lease, LeaseRequest, ListPage, Plane, Precondition, Source, StateChange,
    StateRow, WatchStream,
};

/// The first reminder; each later one comes after twice the time.
const REMINDER_FIRST: Duration = Duration::from_secs(60);
const REMINDER_MAX: Duration = Duration::from_secs(30 * 60);
/// An outage that begins sooner after the last one is said only if it lasts:
/// a server that answers every other request must not fill the log.
const PAUSE: Duration = Duration::from_secs(10);

/// Said by whoever was interrupted, unless it was said for all.
macro_rules! interrupted {
    ($error:ident, $($said:tt)+) => {
        if $error.is_outage() {
            tracing::debug!(error = %$error, $($said)+);
        } else {
            tracing::warn!(error = %$error, $($said)+);
        }
    };
}
pub(crate) use interrupted;

pub(crate) struct Attended {
    plane: Arc<dyn Plane>,
    outage: Mutex<Outage>,
}

/// Whether the server answers, as a value.
#[derive(Default, Debug)]
struct Outage {
    since: Option<Instant>,
    said: bool,
    /// When the next line is due, if it goes on.
    due: Option<Instant>,
    reminder: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Say {
    Begins,
    GoesOn(Duration),
    Ended(Duration),
}

impl Outage {
    fn failed(&mut self, now: Instant) -> Option<Say> {
        let since = *self.since.get_or_insert(now);
        if self.due.is_some_and(|due| now < due) {
            return None;
        }
        self.reminder = if self.said { (self.reminder * 2).min(REMINDER_MAX) } else { REMINDER_FIRST };
        self.due = Some(now + self.reminder);
        let is_first = !std::mem::replace(&mut self.said, true);
        Some(if is_first { Say::Begins } else { Say::GoesOn(now - since) })
    }

    fn worked(&mut self, now: Instant) -> Option<Say> {
        let since = self.since.take()?;
        // Nobody was told that it began.
        if !std::mem::take(&mut self.said) {
            return None;
        }
        self.due = Some(now + PAUSE);
        Some(Say::Ended(now - since))
    }
}

impl ApiError {
    /// About the server or the token, not about what was asked.
    pub(crate) fn is_outage(&self) -> bool {
        matches!(self.fault, Fault::Unavailable | Fault::Unauthenticated)
    }
}

impl Attended {
    pub fn new(plane: Arc<dyn Plane>) -> Self {
        Self { plane, outage: Mutex::default() }
    }

    fn heard<T>(&self, answer: Result<T, ApiError>) -> Result<T, ApiError> {
        let mut outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        match answer.as_ref().err().filter(|error| error.is_outage()) {
            Some(error) => say(outage.failed(Instant::now()), error),
            None => {
                if let Some(Say::Ended(after)) = outage.worked(Instant::now()) {
                    tracing::info!(after_seconds = after.as_secs(), "the server answers again");
                }
            }
        }
        answer
    }
}

fn say(what: Option<Say>, error: &ApiError) {
    let is_token = error.is(Fault::Unauthenticated);
    match what {
        Some(Say::Begins) if is_token => {
            tracing::warn!(%error, "the server refuses the token: replace it where it is read from; trying again");
        }
        Some(Say::Begins) => tracing::warn!(%error, "the server does not answer: trying again until it does"),
        Some(Say::GoesOn(after)) => {
            tracing::warn!(%error, after_seconds = after.as_secs(), "still no good answer of the server: trying again");
        }
        Some(Say::Ended(_)) | None => {}
    }
}

#[async_trait]
impl Source for Attended {
    async fn list(&self, kind: &Kind, after: Option<&str>) -> Result<ListPage, ApiError> {
        self.heard(self.plane.list(kind, after).await)
    }

    /// That a stream ends is ordinary: whether another opens is what counts.
    async fn watch(&self, kind: &Kind, after: ResourceVersion) -> Result<Box<dyn WatchStream>, ApiError> {
        self.heard(self.plane.watch(kind, after).await)
    }
}

#[async_trait]
impl Plane for Attended {
    async fn get(&self, kind: &Kind, key: &ObjectKey) -> Result<Option<Item>, ApiError> {
        self.heard(self.plane.get(kind, key).await)
    }

    async fn patch_status(&self, kind: &Kind, at: &Precondition, patch: Value) -> Result<Item, ApiError> {
        self.heard(self.plane.patch_status(kind, at, patch).await)
    }

    async fn patch_finalizers(
        &self,
        kind: &Kind,
        at: &Precondition,
        add: &[String],
        remove: &[String],
    ) -> Result<Option<Item>, ApiError> {
        self.heard(self.plane.patch_finalizers(kind, at, add, remove).await)
    }

    async fn lease(&self, request: &LeaseRequest) -> Result<Lease, ApiError> {
        self.heard(self.plane.lease(request).await)
    }

    async fn state_read(&self, controller: &str, prefix: &str, after: Option<&str>) -> Result<Vec<StateRow>, ApiError> {
        self.heard(self.plane.state_read(controller, prefix, after).await)
    }

    async fn state_write(
        &self,
        controller: &str,
        fence: Option<&Fence>,
        changes: Vec<StateChange>,
    ) -> Result<(), ApiError> {
        self.heard(self.plane.state_write(controller, fence, changes).await)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_outage_is_a_few_lines() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let after = Duration::from_secs;
        let mut outage = Outage::default();
        for (seconds, failed, expected) in [
            (0, false, None),
            (1, true, Some(Say::Begins)),
            (2, true, None),
            (60, true, None),
            (61, true, Some(Say::GoesOn(after(60)))),
            (180, true, None),
            (181, true, Some(Say::GoesOn(after(180)))),
            (200, false, Some(Say::Ended(after(199)))),
            (201, false, None),
            // Again, at once: only if it lasts.
            (202, true, None),
            (203, false, None),
            (204, true, None),
            (210, true, Some(Say::Begins)),
            (211, false, Some(Say::Ended(after(7)))),
        ] {
            let said = if failed { outage.failed(at(seconds)) } else { outage.worked(at(seconds)) };
            assert_eq!(said, expected, "{seconds} s");
        }
    }
}
