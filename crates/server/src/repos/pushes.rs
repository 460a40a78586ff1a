//! Pushes under way, and the one that was found good and waits for its ref.
//!
//! Between the check before a ref moves and the projection after it, nobody
//! else may change desired state, or what was found good might not be any more.
//! So the turn is held from one to the other, and what was admitted is kept
//! for it.
//!
//! Invariants: a turn is held only for a push whose git is running, and for at
//! most [`HELD_TIME_MAX`]; whoever holds it waits for nobody.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidegate_git::ObjectId;
use tokio::task::JoinHandle;

use super::change::Work;
use super::id::RepositoryId;
use crate::api::{Admitted, Turn};

/// Git only has to move files and a ref, which takes milliseconds. One that
/// hangs longer must not stop all others.
const HELD_TIME_MAX: Duration = Duration::from_secs(30);

/// One conversation of `git push`, of this process.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PushId(u64);

impl PushId {
    /// As the hooks are told.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok().map(Self)
    }
}

impl std::fmt::Display for PushId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// A push that was found good, with the right to put it in force.
pub struct Checked {
    pub turn: Turn,
    pub repository: RepositoryId,
    pub commit: Option<ObjectId>,
    pub work: Work,
    pub admitted: Admitted,
}

#[derive(Default)]
pub struct Pushes {
    next: AtomicU64,
    running: Arc<Mutex<HashMap<PushId, Option<Held>>>>,
}

struct Held {
    checked: Checked,
    end: JoinHandle<()>,
}

impl Pushes {
    pub fn begin(&self) -> PushId {
        let push = PushId(self.next.fetch_add(1, Ordering::Relaxed));
        lock(&self.running).insert(push, None);
        push
    }

    /// Its git has ended, however it ended.
    pub fn end(&self, push: PushId) {
        let ended = lock(&self.running).remove(&push);
        if let Some(held) = ended.flatten() {
            held.end.abort();
        }
    }

    /// Nothing is held for a push that ended meanwhile.
    pub fn hold(&self, push: PushId, checked: Checked) {
        let running = self.running.clone();
        let end = tokio::spawn(async move {
            tokio::time::sleep(HELD_TIME_MAX).await;
            if let Some(held) = lock(&running).get_mut(&push) {
                *held = None;
                tracing::warn!(%push, "git takes too long to move a ref: others no longer wait for it");
            }
        });
        match lock(&self.running).get_mut(&push) {
            Some(held) => *held = Some(Held { checked, end }),
            None => end.abort(),
        }
    }

    pub fn take(&self, push: PushId) -> Option<Checked> {
        let held = lock(&self.running).get_mut(&push)?.take()?;
        held.end.abort();
        Some(held.checked)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
