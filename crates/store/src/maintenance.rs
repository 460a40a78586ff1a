//! The background: drops what left the window, and lists nobody continues.
//!
//! Invariant: it decides nothing about the log itself. The committer forgets a
//! segment, durably; only then are its files removed, here, where no writer
//! waits for the disk.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError};

use tokio::sync::{mpsc, oneshot};

use crate::committer::Command;
use crate::shared::Shared;

pub(crate) struct Maintenance {
    pub shared: Arc<Shared>,
    /// Weak, so that the queue ends with the store's last handle.
    pub queue: mpsc::WeakSender<Command>,
    pub stop: Receiver<()>,
}

impl Maintenance {
    pub fn run(self) {
        let interval = self.shared.options.maintenance_interval;
        while let Err(RecvTimeoutError::Timeout) = self.stop.recv_timeout(interval) {
            self.shared.held.sweep();
            self.trim();
        }
    }

    fn trim(&self) {
        let options = &self.shared.options;
        if !self.shared.view().head().is_trimmable(options, options.clock.now_ms()) {
            return;
        }
        let (answer, dropped) = oneshot::channel();
        let Some(queue) = self.queue.upgrade() else { return };
        if queue.blocking_send(Command::Trim(answer)).is_err() {
            return;
        }
        drop(queue);
        for id in dropped.blocking_recv().unwrap_or_default() {
            self.shared.counters.segments_dropped.fetch_add(1, Relaxed);
            if let Err(error) = self.shared.engine.segment_drop(id) {
                tracing::warn!(segment = id, %error, "a dropped part of the log stays on disk until the next start");
            }
        }
    }
}
