//! Repository objects take effect by themselves: another branch or folder is
//! projected when its object says so, without a push to the repository.

use std::collections::BTreeSet;
use std::sync::Arc;

use tidegate_model::ResourceVersion;
use tidegate_store::{Selection, Start, Store, WatchError, WatchItem};

use super::hosting::Hosting;
use super::id::RepositoryId;
use super::projector::Projector;

pub struct Follower {
    pub store: Store,
    pub hosting: Arc<Hosting>,
    pub projector: Arc<Projector>,
}

impl Follower {
    /// Everything up to `from` is in force already. Ends with the store.
    pub async fn run(self, mut from: ResourceVersion) {
        loop {
            match self.follow(from).await {
                WatchError::Closed => return,
                error => tracing::warn!(%error, "looking at all repositories again"),
            }
            from = self.store.view().version();
            match self.hosting.list() {
                Ok(ids) => self.catch_up(ids).await,
                Err(error) => tracing::error!(%error, "the repositories cannot be listed"),
            }
        }
    }

    async fn follow(&self, from: ResourceVersion) -> WatchError {
        let selection = Selection::all(RepositoryId::resource());
        let mut watcher = match self.store.watch(selection, Start::After(from)) {
            Ok(watcher) => watcher,
            Err(error) => return error,
        };
        loop {
            match watcher.next().await {
                Ok(items) => self.catch_up(changed(&items)).await,
                Err(error) => return error,
            }
        }
    }

    /// By what the object says now, never by the event.
    async fn catch_up(&self, ids: impl IntoIterator<Item = RepositoryId>) {
        for id in ids {
            self.projector.catch_up_or_report(&self.hosting, &id).await;
        }
    }
}

fn changed(items: &[WatchItem]) -> BTreeSet<RepositoryId> {
    let events = items.iter().filter_map(|item| match item {
        WatchItem::Event { event, .. } => Some(&event.key),
        _ => None,
    });
    events.filter_map(|key| RepositoryId::new(key.namespace.as_deref().unwrap_or_default(), &key.name)).collect()
}
