//! The controller manager, as `serve` and `control` run it.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use tidegate_controllers::hooks::HookOptions;
use tidegate_controllers::repository::{self, Repositories};
use tidegate_runtime::{Manager, ManagerOptions, Plane};

/// All managers of one store compete for this lease.
const LEASE: (&str, &str) = ("system", "controller-manager");

/// What the built-in controllers need besides the API.
pub struct Needs {
    pub plane: Arc<dyn Plane>,
    /// No other living manager may have the name.
    pub holder: String,
    /// Files `NAMESPACE/NAME/KEY`.
    pub secrets_dir: Option<PathBuf>,
    pub repositories: Arc<dyn Repositories>,
}

pub fn manager(needs: Needs) -> Result<Manager> {
    let Needs { plane, holder, secrets_dir, repositories } = needs;
    let (namespace, name) = LEASE;
    let manager = Manager::new(plane, ManagerOptions::new(namespace, name, &holder));
    tidegate_controllers::add_to(&manager, HookOptions { secrets_dir })?;
    repository::add_to(&manager, repositories)?;
    Ok(manager)
}
