//! How the process ends: it leaves and drains at the first signal, and stops
//! at the second.
//!
//! Invariant: a phase never goes back.

use std::sync::Arc;

use tokio::sync::watch;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Phase {
    Running,
    /// All is served, and whoever asks is told not to send more.
    Leaving,
    /// No new work; what runs may finish, what is endless says goodbye.
    Draining,
    /// At once, whatever is still open.
    Ended,
}

/// A handle for everything that has to know; clones are the same shutdown.
#[derive(Clone, Debug)]
pub struct Shutdown(Arc<watch::Sender<Phase>>);

impl Default for Shutdown {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Phase::Running)))
    }
}

impl Shutdown {
    pub fn phase(&self) -> Phase {
        *self.0.borrow()
    }

    pub fn is_draining(&self) -> bool {
        self.phase() >= Phase::Draining
    }

    pub fn is_leaving(&self) -> bool {
        self.phase() >= Phase::Leaving
    }

    pub fn leave(&self) {
        self.advance(Phase::Leaving);
    }

    pub fn drain(&self) {
        self.advance(Phase::Draining);
    }

    pub fn end(&self) {
        self.advance(Phase::Ended);
    }

    /// Resolves when draining starts, at once if it has.
    pub async fn started(&self) {
        self.reached(Phase::Draining).await;
    }

    pub async fn ended(&self) {
        self.reached(Phase::Ended).await;
    }

    fn advance(&self, to: Phase) {
        self.0.send_if_modified(|phase| {
            let moves = *phase < to;
            *phase = to.max(*phase);
            moves
        });
    }

    async fn reached(&self, phase: Phase) {
        let mut phases = self.0.subscribe();
        // The sender lives as long as `self`.
        let _ = phases.wait_for(|now| *now >= phase).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn phases_go_forward_only() {
        let shutdown = Shutdown::default();
        assert_eq!(shutdown.phase(), Phase::Running);
        shutdown.leave();
        assert!(shutdown.is_leaving() && !shutdown.is_draining());
        shutdown.drain();
        shutdown.started().await;
        assert_eq!(shutdown.phase(), Phase::Draining);
        shutdown.end();
        shutdown.ended().await;
        shutdown.started().await;
        shutdown.drain();
        assert_eq!(shutdown.phase(), Phase::Ended);
    }
}
