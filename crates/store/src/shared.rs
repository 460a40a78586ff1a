//! What the committer publishes and every reader may look at.
//!
//! Invariant: the committer alone replaces the view. A reader never waits for
//! a writer, and never sees half a transaction or one that is not durable.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use tidegate_model::ResourceVersion;

use crate::engine::Engine;
use crate::hub::Hub;
use crate::last_change::LastChanges;
use crate::list::HeldViews;
use crate::stats::Counters;
use crate::{Options, View, WatchError};

pub(crate) struct Shared {
    pub options: Options,
    pub engine: Arc<dyn Engine>,
    pub hub: Arc<Hub>,
    pub last_changes: LastChanges,
    pub counters: Counters,
    pub held: HeldViews,
    view: ArcSwap<View>,
    /// Set once, by a write that failed: what is on disk is then unknown.
    failure: OnceLock<String>,
}

impl Shared {
    pub fn new(engine: Arc<dyn Engine>, options: Options, view: View) -> Self {
        Self {
            hub: Hub::new(view.version(), &options),
            last_changes: LastChanges::new(view.version(), options.clock.now_ms()),
            counters: Counters::default(),
            held: HeldViews::new(&options),
            view: ArcSwap::from_pointee(view),
            failure: OnceLock::new(),
            options,
            engine,
        }
    }

    pub fn view(&self) -> View {
        View::clone(&self.view.load())
    }

    pub fn publish(&self, view: View) {
        self.view.store(Arc::new(view));
    }

    pub fn failure(&self) -> Option<&String> {
        self.failure.get()
    }

    pub fn fail(&self, reason: String) -> String {
        tracing::error!(%reason, "the store takes no more writes: restart it once the cause is gone");
        self.failure.get_or_init(|| reason).clone()
    }

    /// The cursor, if nothing after it is missing in `view`.
    pub fn check_cursor(&self, view: &View, cursor: ResourceVersion) -> Result<ResourceVersion, WatchError> {
        let (oldest, current) = (view.head().floor, view.version());
        if cursor < oldest {
            self.counters.watches_expired.fetch_add(1, Relaxed);
            return Err(WatchError::Expired { oldest, current });
        }
        if cursor > current { Err(WatchError::Future { current }) } else { Ok(cursor) }
    }
}
