//! A controller's writes of state.
//!
//! Invariant: one is on its way at a time, so they take effect in the order in
//! which they were decided.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::ledger::Save;
use crate::{ApiError, Fence, Plane, StateChange, StateRow, rows};

pub(crate) struct Saves {
    plane: Arc<dyn Plane>,
    controller: Arc<str>,
    fence: Fence,
    rows_max: usize,
    running: Option<Running>,
}

struct Running {
    write: BoxFuture<'static, Result<Vec<StateRow>, ApiError>>,
    /// `None` for keys that become known.
    save: Option<Save>,
}

/// What has been written.
pub(crate) enum Saved {
    Known,
    /// And what operators ask for.
    Save {
        save: Save,
        requests: Vec<StateRow>,
    },
}

impl Saves {
    pub fn new(plane: Arc<dyn Plane>, controller: Arc<str>, fence: Fence, rows_max: usize) -> Self {
        Self { plane, controller, fence, rows_max: rows_max.max(1), running: None }
    }

    pub fn is_running(&self) -> bool {
        self.running.is_some()
    }

    pub fn begin_known(&mut self, changes: Vec<StateChange>) {
        self.running = Some(Running { write: self.write(changes, false), save: None });
    }

    pub fn begin(&mut self, save: Save) {
        self.running = Some(Running { write: self.write(save.changes.clone(), true), save: Some(save) });
    }

    fn write(&self, changes: Vec<StateChange>, then_read: bool) -> BoxFuture<'static, Result<Vec<StateRow>, ApiError>> {
        let (plane, controller, fence, rows_max) =
            (self.plane.clone(), self.controller.clone(), self.fence.clone(), self.rows_max);
        Box::pin(async move {
            // In order: what is said to be recorded comes before the
            // checkpoint that relies on it.
            for chunk in changes.chunks(rows_max) {
                plane.state_write(&controller, Some(&fence), chunk.to_vec()).await?;
            }
            match then_read {
                true => plane.state_read(&controller, rows::RELEASE, None).await,
                false => Ok(Vec::new()),
            }
        })
    }

    /// `None` at once if none is on its way. Cancel safe.
    pub async fn ended(&mut self) -> Result<Option<Saved>, ApiError> {
        let Some(running) = &mut self.running else { return Ok(None) };
        let requests = (&mut running.write).await?;
        let save = self.running.take().and_then(|running| running.save);
        Ok(Some(save.map_or(Saved::Known, |save| Saved::Save { save, requests })))
    }
}
