//! Watches start and stop as the plan says.

use tidegate_model::mirror::ResourceKey;
use tokio::task::AbortHandle;

use super::list::List;
use super::state::Engine;
use crate::change::Listed;
use crate::claims::{ClaimId, TypeId};
use crate::ingest::{ClaimWatch, Seen, watch_claim};

/// One running watch.
pub(super) struct Watched {
    pub run: u64,
    pub watch: ClaimWatch,
    task: AbortHandle,
    /// Everything that there is, kept while a destination waits for it.
    pub list: Option<List>,
    /// A list is on its way.
    pub is_listing: bool,
    pub error: Option<String>,
}

impl Watched {
    pub fn listed(&mut self, list: Vec<Listed>) {
        self.is_listing = false;
        self.list = Some(List::new(list));
    }

    /// Keeps a list that waits for others up to date.
    pub fn note(&mut self, seen: &Seen) {
        if let Some(list) = &mut self.list {
            list.note(&seen.key, &seen.what);
        }
    }

    /// Asks for the list unless it is here or on its way.
    pub fn want_list(&mut self) {
        if self.list.is_none() && !self.is_listing {
            self.is_listing = true;
            self.watch.ask_list();
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Engine {
    pub(super) fn follow_claims(&mut self) {
        self.claims.retain(|id, _| {
            let is_wanted = self.desired.claims.contains(id);
            if !is_wanted {
                tracing::info!(watch = %id.of, namespace = id.namespace, "watch stopped");
            }
            is_wanted
        });
        let wanted: Vec<_> = self.desired.claims.iter().filter(|id| !self.claims.contains_key(id)).cloned().collect();
        for id in wanted {
            self.start_claim(id);
        }
        self.parts.shared.metrics.watches.set(self.claims.len().try_into().unwrap_or(i64::MAX));
    }

    fn start_claim(&mut self, id: ClaimId) {
        tracing::info!(watch = %id.of, namespace = id.namespace, "watch started");
        self.claim_runs += 1;
        let run = self.claim_runs;
        let watch = ClaimWatch::new(run, self.parts.shared.metrics.scanned.clone());
        let (api, folder) = (self.parts.api.clone(), self.parts.options.work_dir.clone());
        let watching = watch_claim(api, id.clone(), watch.clone(), folder, self.claim_messages.clone());
        let task = self.tasks.spawn(watching);
        // The first list is told without being asked for.
        self.claims.insert(id, Watched { run, watch, task, list: None, is_listing: true, error: None });
    }
}

pub(super) fn type_of(key: &ResourceKey) -> TypeId {
    TypeId::new(&key.group, &key.version, &key.resource)
}
