//! Saves a durable index for as long as a term of the lease lasts.
//!
//! Invariant: one write is on its way at a time, under the term's fence. A
//! write whose outcome is not known ends the term, so that a late one is
//! refused and what it held is written again.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use crate::clock::stopped;
use crate::unsaved::{Before, Step};
use crate::{ApiError, Fence, Plane, StateChange, rows};

/// The index of one manager, as its terms reach it.
#[derive(Clone)]
pub(crate) struct Saver {
    pub name: Arc<str>,
    pub asking: mpsc::Sender<Ask>,
}

/// Answered by the task that applies changes, between two of them.
pub(crate) struct Ask {
    pub before: Before,
    pub answer: oneshot::Sender<Step>,
}

pub(crate) struct SaverTerm {
    pub saver: Saver,
    pub plane: Arc<dyn Plane>,
    pub fence: Fence,
    pub interval: Duration,
    /// After a stop, what is left to write has so long.
    pub drain: Duration,
    pub stop: watch::Receiver<bool>,
}

impl SaverTerm {
    /// Until it is told to stop.
    pub async fn run(mut self) -> Result<(), ApiError> {
        let rows = self.plane.state_read(&self.saver.name, rows::INDEX, None).await?;
        let row = rows.iter().find(|row| row.name == rows::INDEX);
        let mut before = Before::Term(row.and_then(|row| serde_json::from_slice(&row.value).ok()));
        let mut ends: Option<Instant> = None;
        loop {
            let Some(step) = self.ask(before).await else { return Ok(()) };
            let more = matches!(&step, Step::Write { more: true, .. } | Step::Clear);
            before = self.carry_out(step).await?;
            if ends.is_some_and(|ends| !more || Instant::now() >= ends) {
                return Ok(());
            }
            if more {
                continue;
            }
            tokio::select! {
                biased;
                () = stopped(&mut self.stop) => ends = Some(Instant::now() + self.drain),
                () = tokio::time::sleep(self.interval) => {}
            }
        }
    }

    /// `None` if the index is gone, and the manager with it.
    async fn ask(&self, before: Before) -> Option<Step> {
        let (answer, answered) = oneshot::channel();
        self.saver.asking.send(Ask { before, answer }).await.ok()?;
        answered.await.ok()
    }

    async fn carry_out(&self, step: Step) -> Result<Before, ApiError> {
        match step {
            Step::Nothing => Ok(Before::Saved),
            Step::Write { changes, .. } => self.write(changes).await.map(|()| Before::Saved),
            Step::Clear => self.clear().await.map(|()| Before::Cleared),
        }
    }

    async fn clear(&self) -> Result<(), ApiError> {
        self.write(vec![rows::remove(rows::INDEX.into())]).await?;
        let mut after: Option<String> = None;
        loop {
            let rows = self.plane.state_read(&self.saver.name, rows::RECORDS, after.as_deref()).await?;
            let Some(last) = rows.last() else { return Ok(()) };
            after = Some(last.name.clone());
            self.write(rows.into_iter().map(|row| rows::remove(row.name)).collect()).await?;
        }
    }

    async fn write(&self, changes: Vec<StateChange>) -> Result<(), ApiError> {
        self.plane.state_write(&self.saver.name, Some(&self.fence), changes).await
    }
}
