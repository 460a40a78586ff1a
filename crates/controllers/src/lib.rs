//! Reconcilers of the core kinds, and the hook that reconciles everybody
//! else's.
//!
//! Each is a pure plan over what is known, and a thin shell that reads,
//! compares and writes. State is reached through `tidegate_runtime` alone.

pub mod catalog;
pub mod definitions;
pub mod hooks;
pub mod namespaces;
pub mod report;
pub mod repository;

use tidegate_runtime::{AddError, Manager};

/// All controllers but that of repositories, which needs a server that
/// fetches: see [`repository::add_to`].
pub fn add_to(manager: &Manager, hooks: hooks::HookOptions) -> Result<(), AddError> {
    namespaces::add_to(manager)?;
    definitions::add_to(manager)?;
    catalog::add_to(manager)?;
    hooks::add_to(manager, hooks)
}
