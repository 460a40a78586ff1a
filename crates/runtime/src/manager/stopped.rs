//! What is kept of controllers that do not run.

use super::Manager;
use crate::{ApiError, ControllerReport, Fault, Fence, rows};

impl Manager {
    /// Stops a controller for good: it drains, and then its durable state goes.
    /// After an error some of that is left, and it can be asked again.
    pub async fn forget(&self, name: &str) -> Result<(), ApiError> {
        self.stop(name).await;
        let fence = self.fence()?;
        for family in rows::OF_CONTROLLERS {
            let mut after: Option<String> = None;
            loop {
                let found = self.0.plane.state_read(name, family, after.as_deref()).await?;
                let Some(last) = found.last() else { break };
                after = Some(last.name.clone());
                let changes = found.into_iter().map(|row| rows::remove(row.name)).collect();
                self.0.plane.state_write(name, Some(&fence), changes).await?;
            }
        }
        Ok(())
    }

    /// Says in the report of a controller that was stopped why it does not run.
    /// It is said until it runs again.
    pub async fn explain(&self, name: &str, why: &str) -> Result<(), ApiError> {
        let fence = self.fence()?;
        let found = self.0.plane.state_read(name, rows::REPORT, None).await?;
        let row = found.iter().find(|row| row.name == rows::REPORT);
        let said = row.and_then(|row| serde_json::from_slice::<ControllerReport>(&row.value).ok());
        let Some(said) = said else { return Ok(()) };
        let report = said.clone().stopped(&fence, why);
        if report == said {
            return Ok(());
        }
        let report = serde_json::to_vec(&report).map_err(|error| ApiError::new(Fault::Invalid, error.to_string()))?;
        self.0.plane.state_write(name, Some(&fence), vec![rows::put(rows::REPORT.into(), report)]).await
    }

    fn fence(&self) -> Result<Fence, ApiError> {
        let fence = self.0.term.borrow().clone();
        fence.ok_or_else(|| ApiError::new(Fault::LeaseLost, "another manager holds the lease"))
    }
}
