//! Repository objects take effect by themselves: another branch or folder is
//! projected when its object says so, without a push to the repository.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tidegate_model::{EventType, Object, ResourceVersion};
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
        let mut seen = Seen::default();
        loop {
            match watcher.next().await {
                Ok(items) => self.catch_up(seen.changed(&items)).await,
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

/// Which object, in which generation, each event was last about: a status
/// says nothing of what is to be projected, and is written often.
#[derive(Default)]
struct Seen(BTreeMap<RepositoryId, (String, i64)>);

impl Seen {
    fn changed(&mut self, items: &[WatchItem]) -> BTreeSet<RepositoryId> {
        let events = items.iter().filter_map(|item| match item {
            WatchItem::Event { event, .. } => Some(event),
            _ => None,
        });
        let mut changed = BTreeSet::new();
        for event in events {
            let key = &event.key;
            let id = RepositoryId::new(key.namespace.as_deref().unwrap_or_default(), &key.name);
            let Some(id) = id else { continue };
            let object = Object::from_json(&event.object).filter(|_| event.kind != EventType::Deleted);
            let now = object.map(|object| (object.uid().unwrap_or_default().to_owned(), object.generation()));
            let before = match now.clone() {
                Some(now) => self.0.insert(id.clone(), now),
                None => self.0.remove(&id),
            };
            if now.is_none() || before != now {
                changed.insert(id);
            }
        }
        changed
    }
}
