//! The controller manager, as `serve` and `control` run it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use tidegate_controllers::hooks::HookOptions;
use tidegate_controllers::repository::{self, Repositories};
use tidegate_runtime::{Manager, ManagerOptions, Plane};

/// All managers of one store compete for this lease.
const LEASE: (&str, &str) = ("system", "controller-manager");
/// There from a server's first start; the account of the same name has it.
const ROLE: &str = "system:controller-manager";

/// What the built-in controllers need besides the API.
pub struct Needs {
    pub plane: Arc<dyn Plane>,
    pub life: Life,
    /// Files `NAMESPACE/NAME/KEY`.
    pub secrets_dir: Option<PathBuf>,
    pub repositories: Arc<dyn Repositories>,
}

/// Who the manager is to others that want the lease.
pub enum Life {
    /// The server's own. A store has one server at a time: whoever held the
    /// lease before under this name is gone.
    OfServer,
    /// Any other, of which there may be several of one name.
    Named { name: String, lease_duration: Duration },
}

impl Life {
    fn options(&self) -> ManagerOptions {
        let (namespace, lease) = LEASE;
        let options = match self {
            Self::OfServer => ManagerOptions::sole(namespace, lease, "serve"),
            Self::Named { name, lease_duration } => {
                ManagerOptions::new(namespace, lease, name).lease_duration(*lease_duration)
            }
        };
        ManagerOptions { role: Some(ROLE.into()), ..options }
    }
}

/// Only a warning: files are read at each use, so a volume may come later.
pub fn secrets_warning(dir: &Path) -> Option<String> {
    let reason = match std::fs::read_dir(dir) {
        Ok(_) => return None,
        Err(error) => error,
    };
    Some(format!(
        "the directory of secrets {} cannot be read ({reason}): until it can, what needs a secret fails; \
         another is named with --secrets-dir",
        dir.display()
    ))
}

pub fn manager(needs: Needs) -> Result<Manager> {
    let Needs { plane, life, secrets_dir, repositories } = needs;
    let manager = Manager::new(plane, life.options());
    tidegate_controllers::add_to(&manager, HookOptions { secrets_dir })?;
    repository::add_to(&manager, repositories)?;
    Ok(manager)
}
