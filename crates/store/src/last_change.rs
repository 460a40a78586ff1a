//! When each resource last changed: whoever has seen that version has seen all
//! of it, however far the store has gone on with others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tidegate_model::{GroupResource, ResourceVersion};

use crate::Event;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LastChange {
    pub version: ResourceVersion,
    pub time_ms: u64,
}

pub(crate) struct LastChanges {
    /// What came before is not known by resource: it may have been all of them.
    opened: LastChange,
    since: Mutex<HashMap<GroupResource, LastChange>>,
}

impl LastChanges {
    pub fn new(version: ResourceVersion, time_ms: u64) -> Self {
        Self { opened: LastChange { version, time_ms }, since: Mutex::default() }
    }

    pub fn of(&self, resource: &GroupResource) -> LastChange {
        self.since.lock().unwrap_or_else(PoisonError::into_inner).get(resource).copied().unwrap_or(self.opened)
    }

    pub fn note(&self, events: &[Arc<Event>]) {
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        // Those of one push come kind by kind.
        for run in events.chunk_by(|one, next| one.key.resource == next.key.resource) {
            let Some(last) = run.last() else { continue };
            since.insert(last.key.resource.clone(), LastChange { version: last.version, time_ms: last.time_ms });
        }
    }
}
