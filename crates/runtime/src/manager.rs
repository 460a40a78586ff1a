//! The manager: runs controllers while it holds the lease.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use crate::{Client, Controller, Fence, Index, IndexHandle, Plane};

#[derive(Clone, Debug)]
pub struct ManagerOptions {
    /// The lease that the manager works under.
    pub lease_namespace: Arc<str>,
    pub lease_name: Arc<str>,
    /// Who we are. A holder that comes back under the same name takes over
    /// from its earlier life at once, so no two living managers may share it.
    pub holder: Arc<str>,
    pub lease_duration: Duration,
    pub lease_renewal: Duration,
    /// How often checkpoints, retries and quarantine are saved.
    pub save_interval: Duration,
    /// On shutdown, what is in flight has so long to finish.
    pub drain: Duration,
}

impl ManagerOptions {
    pub fn new(lease_namespace: &str, lease_name: &str, holder: &str) -> Self {
        Self {
            lease_namespace: lease_namespace.into(),
            lease_name: lease_name.into(),
            holder: holder.into(),
            lease_duration: Duration::from_secs(15),
            lease_renewal: Duration::from_secs(5),
            save_interval: Duration::from_secs(1),
            drain: Duration::from_secs(20),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AddError {
    #[error("there is a controller `{0}` already: give this one another name")]
    NameTaken(Arc<str>),
    #[error("`{0}` is not a controller's name: use letters, digits, `-` and `.`, 63 at most")]
    InvalidName(Arc<str>),
}

/// A cheap handle.
#[derive(Clone)]
pub struct Manager(Arc<Inner>);

struct Inner {
    plane: Arc<dyn Plane>,
    options: ManagerOptions,
    term: watch::Sender<Option<Fence>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    controllers: BTreeMap<Arc<str>, Controller>,
    indexes: Vec<(IndexHandle, watch::Sender<bool>)>,
}

impl Manager {
    pub fn new(plane: Arc<dyn Plane>, options: ManagerOptions) -> Self {
        Self(Arc::new(Inner { plane, options, term: watch::Sender::new(None), state: Mutex::default() }))
    }

    /// Writes under the manager's lease.
    pub fn client(&self) -> Client {
        Client::fenced(self.0.plane.clone(), self.0.term.subscribe())
    }

    /// Keeps `index` filled and up to date for as long as the manager runs.
    pub fn index(&self, index: Arc<dyn Index>) -> IndexHandle {
        let (sender, filled) = watch::channel(false);
        let handle = IndexHandle { index, filled };
        self.state(|state| state.indexes.push((handle.clone(), sender)));
        handle
    }

    /// Also while the manager runs.
    pub fn add(&self, controller: Controller) -> Result<(), AddError> {
        let name = controller.name.clone();
        if !is_name(&name) {
            return Err(AddError::InvalidName(name));
        }
        self.state(|state| match state.controllers.contains_key(&name) {
            true => Err(AddError::NameTaken(name)),
            false => {
                state.controllers.insert(name, controller);
                Ok(())
            }
        })
    }

    pub fn options(&self) -> &ManagerOptions {
        &self.0.options
    }

    fn state<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        change(&mut self.0.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 63
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'))
}
