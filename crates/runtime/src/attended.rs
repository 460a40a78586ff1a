//! A plane whose absence is said once, not by everybody who notices.
//!
//! A manager has dozens of readers. When the server is away or refuses the
//! token, one line says so, more seldom ones that it goes on, and one that it
//! is over. What the account's roles do not allow is said as `refused` has it.
//! What concerns one kind alone is still said by its reader.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tidegate_model::{ObjectKey, ResourceVersion};
use tokio::time::Instant;

use crate::refused::{Asked, Refused};
use crate::{
    ApiError, Fault, Fence, Item, Kind, Lease, LeaseRequest, ListPage, Plane, Precondition, Source, StateChange,
    StateRow, WatchEvent, WatchStream,
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
        if $error.is_said_for_all() {
            tracing::debug!(error = %$error, $($said)+);
        } else {
            tracing::warn!(error = %$error, $($said)+);
        }
    };
}
pub(crate) use interrupted;

pub(crate) struct Attended {
    plane: Arc<dyn Plane>,
    attention: Arc<Attention>,
}

/// What was heard of the server, whoever asked.
struct Attention {
    state: Mutex<State>,
    /// The ClusterRole that allows everything that is asked for.
    role: Option<Arc<str>>,
}

#[derive(Default)]
struct State {
    outage: Outage,
    refused: Refused,
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

    pub(crate) fn is_said_for_all(&self) -> bool {
        self.is_outage() || self.is(Fault::Forbidden)
    }
}

impl Attended {
    pub fn new(plane: Arc<dyn Plane>, role: Option<Arc<str>>) -> Self {
        Self { plane, attention: Arc::new(Attention { state: Mutex::default(), role }) }
    }

    fn heard<T>(&self, asked: Asked<'_>, answer: Result<T, ApiError>) -> Result<T, ApiError> {
        self.attention.reached(answer.as_ref().err());
        self.attention.allowed(asked, answer.as_ref().err());
        answer
    }
}

impl Attention {
    fn state<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the server answers.
    fn reached(&self, error: Option<&ApiError>) {
        let now = Instant::now();
        match error.filter(|error| error.is_outage()) {
            Some(error) => say(self.state(|state| state.outage.failed(now)), error),
            None => {
                if let Some(Say::Ended(after)) = self.state(|state| state.outage.worked(now)) {
                    tracing::info!(after_seconds = after.as_secs(), "the server answers again");
                }
            }
        }
    }

    /// Whether it lets us. Any other failure says nothing of that.
    fn allowed(&self, asked: Asked<'_>, error: Option<&ApiError>) {
        let now = Instant::now();
        match error {
            None => {
                if self.state(|state| state.refused.worked(asked, now)) {
                    tracing::info!("what the server refused is allowed now");
                }
            }
            Some(error) if error.is(Fault::Forbidden) => {
                if let Some(missing) = self.state(|state| state.refused.failed(asked, now)) {
                    self.say_missing(&missing, error);
                }
            }
            Some(_) => {}
        }
    }

    fn say_missing(&self, missing: &str, error: &ApiError) {
        let role = self.role.as_deref().map_or_else(
            || "a role that allows what is missing".to_owned(),
            |role| format!("the ClusterRole `{role}`, which allows what is missing"),
        );
        tracing::warn!(missing, %error, "the account of this manager may not do its work: bind it to {role}; trying again");
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
        self.heard(Asked::List(kind), self.plane.list(kind, after).await)
    }

    /// That a stream ends is ordinary: whether another opens is what counts.
    async fn watch(&self, kind: &Kind, after: ResourceVersion) -> Result<Box<dyn WatchStream>, ApiError> {
        match self.plane.watch(kind, after).await {
            Ok(stream) => {
                self.attention.reached(None);
                let attention = self.attention.clone();
                Ok(Box::new(AttendedStream { stream, kind: kind.clone(), attention, is_allowed: false }))
            }
            Err(error) => self.heard(Asked::Watch(kind), Err(error)),
        }
    }
}

/// Over the network a stream opens first and is refused then.
struct AttendedStream {
    stream: Box<dyn WatchStream>,
    kind: Kind,
    attention: Arc<Attention>,
    is_allowed: bool,
}

#[async_trait]
impl WatchStream for AttendedStream {
    async fn next(&mut self) -> Result<Vec<WatchEvent>, ApiError> {
        let events = self.stream.next().await;
        if !self.is_allowed {
            self.attention.allowed(Asked::Watch(&self.kind), events.as_ref().err());
            self.is_allowed = events.is_ok();
        }
        events
    }
}

#[async_trait]
impl Plane for Attended {
    async fn get(&self, kind: &Kind, key: &ObjectKey) -> Result<Option<Item>, ApiError> {
        self.heard(Asked::Get(kind, key), self.plane.get(kind, key).await)
    }

    async fn patch_status(&self, kind: &Kind, at: &Precondition, patch: Value) -> Result<Item, ApiError> {
        self.heard(Asked::Status(kind, &at.key), self.plane.patch_status(kind, at, patch).await)
    }

    async fn patch_finalizers(
        &self,
        kind: &Kind,
        at: &Precondition,
        add: &[String],
        remove: &[String],
    ) -> Result<Option<Item>, ApiError> {
        self.heard(Asked::Finalizers(kind, &at.key), self.plane.patch_finalizers(kind, at, add, remove).await)
    }

    async fn lease(&self, request: &LeaseRequest) -> Result<Lease, ApiError> {
        self.heard(Asked::Lease, self.plane.lease(request).await)
    }

    async fn state_read(&self, controller: &str, prefix: &str, after: Option<&str>) -> Result<Vec<StateRow>, ApiError> {
        self.heard(Asked::StateRead, self.plane.state_read(controller, prefix, after).await)
    }

    async fn state_get(&self, controller: &str, names: &[String]) -> Result<Vec<StateRow>, ApiError> {
        self.heard(Asked::StateRead, self.plane.state_get(controller, names).await)
    }

    async fn state_write(
        &self,
        controller: &str,
        fence: Option<&Fence>,
        changes: Vec<StateChange>,
    ) -> Result<(), ApiError> {
        self.heard(Asked::StateWrite, self.plane.state_write(controller, fence, changes).await)
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
