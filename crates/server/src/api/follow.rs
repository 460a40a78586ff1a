//! Follows the objects that govern the server itself: definitions of kinds,
//! roles and service accounts. They take effect through the watch, as they
//! would if another process had written them.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate_model::{EventType, GroupResource, Object, ObjectKey, ResourceVersion};
use tidegate_store::{Selection, Start, Store, StoreError, View, WatchError, WatchItem};
use tokio::sync::watch;

use super::kinds::{CrdKinds, KindsInForce};
use crate::identity::Identities;

/// Between two tries to read a store that fails.
const RELOAD_PAUSE: Duration = Duration::from_secs(1);

/// For a definition to take effect: it takes milliseconds, unless the store
/// cannot be read.
const EFFECT_TIME_MAX: Duration = Duration::from_secs(5);

/// Told of the kinds in force, before a change of them counts as visible.
pub type OnKinds = Arc<dyn Fn(&Arc<KindsInForce>) + Send + Sync>;

#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    #[error("failed to read the kinds, roles and accounts of the store")]
    Read(#[from] StoreError),
    #[error("failed to watch the kinds, roles and accounts of the store")]
    Watch(#[from] WatchError),
}

pub(super) struct Follower {
    kinds: watch::Receiver<Arc<KindsInForce>>,
    /// How far each governing resource has taken effect.
    progress: HashMap<GroupResource, watch::Receiver<ResourceVersion>>,
    store: Store,
    definitions: GroupResource,
}

fn definitions() -> GroupResource {
    GroupResource::new("apiextensions.k8s.io", "customresourcedefinitions")
}

fn governing() -> [GroupResource; 6] {
    let rbac = |plural| GroupResource::new("rbac.authorization.k8s.io", plural);
    [
        definitions(),
        GroupResource::new("", "serviceaccounts"),
        rbac("roles"),
        rbac("rolebindings"),
        rbac("clusterroles"),
        rbac("clusterrolebindings"),
    ]
}

impl Follower {
    pub fn start(store: Store, identities: Arc<Identities>, on_kinds: OnKinds) -> Result<Self, FollowError> {
        let view = store.view();
        let effect = Arc::new(Effect {
            identities,
            crds: Mutex::default(),
            kinds: watch::Sender::new(Arc::new(CrdKinds::default().in_force())),
            on_kinds,
        });
        let kinds = effect.kinds.subscribe();
        let mut progress = HashMap::new();
        for resource in governing() {
            let known = effect.load(&view, &resource, &HashSet::new())?;
            let (sender, receiver) = watch::channel(view.version());
            progress.insert(resource.clone(), receiver);
            let follow = Follow { store: store.clone(), effect: effect.clone(), resource, known, progress: sender };
            tokio::spawn(follow.run(view.version()));
        }
        effect.publish_kinds();
        Ok(Self { kinds, progress, store, definitions: definitions() })
    }

    pub fn kinds(&self) -> Arc<KindsInForce> {
        self.kinds.borrow().clone()
    }

    pub fn subscribe(&self) -> watch::Receiver<Arc<KindsInForce>> {
        let mut receiver = self.kinds.clone();
        receiver.mark_unchanged();
        receiver
    }

    /// The kinds as every definition has them that a view or a watch has shown
    /// by now. They take effect a moment after their commit is seen, and
    /// somebody who saw one may be here before.
    pub async fn kinds_as_seen(&self) -> Option<Arc<KindsInForce>> {
        let seen = self.store.last_change(&self.definitions).version;
        if let Some(progress) = self.progress.get(&self.definitions) {
            let mut progress = progress.clone();
            let reached = progress.wait_for(|reached| *reached >= seen);
            tokio::time::timeout(EFFECT_TIME_MAX, reached).await.ok()?.ok()?;
        }
        Some(self.kinds())
    }

    /// Waits until the write of `key` at `version` has taken effect.
    pub async fn reached(&self, key: &ObjectKey, version: ResourceVersion) {
        if let Some(progress) = self.progress.get(&key.resource) {
            // An error means that the store was closed: nobody asks any more.
            let _ = progress.clone().wait_for(|reached| *reached >= version).await;
        }
    }
}

/// Where changes go.
struct Effect {
    identities: Arc<Identities>,
    crds: Mutex<CrdKinds>,
    kinds: watch::Sender<Arc<KindsInForce>>,
    on_kinds: OnKinds,
}

impl Effect {
    /// Everything of `resource`, and the end of what was known and is gone.
    fn load(
        &self,
        view: &View,
        resource: &GroupResource,
        known: &HashSet<ObjectKey>,
    ) -> Result<HashSet<ObjectKey>, StoreError> {
        let mut changes: HashMap<ObjectKey, Option<Object>> = known.iter().map(|key| (key.clone(), None)).collect();
        for stored in view.scan(&Selection::all(resource.clone()), None) {
            let stored = stored?;
            changes.insert(stored.key, Object::from_json(&stored.json));
        }
        let known = changes.iter().filter(|(_, object)| object.is_some()).map(|(key, _)| key.clone()).collect();
        self.apply(changes.iter().map(|(key, object)| (key, object.as_ref())));
        Ok(known)
    }

    /// Says whether kinds are concerned.
    fn apply<'a>(&self, changes: impl Iterator<Item = (&'a ObjectKey, Option<&'a Object>)>) -> bool {
        let (crds, others): (Vec<_>, Vec<_>) =
            changes.partition(|(key, _)| &*key.resource.plural == "customresourcedefinitions");
        self.identities.apply(others);
        let mut known = self.crds.lock().expect("no panic under this lock");
        for (key, object) in &crds {
            known.apply(&key.name, *object);
        }
        !crds.is_empty()
    }

    fn publish_kinds(&self) {
        let kinds = Arc::new(self.crds.lock().expect("no panic under this lock").in_force());
        (self.on_kinds)(&kinds);
        self.kinds.send_replace(kinds);
    }
}

/// One resource, followed for as long as the store is open.
struct Follow {
    store: Store,
    effect: Arc<Effect>,
    resource: GroupResource,
    known: HashSet<ObjectKey>,
    progress: watch::Sender<ResourceVersion>,
}

impl Follow {
    async fn run(mut self, mut from: ResourceVersion) {
        loop {
            match self.follow(from).await {
                WatchError::Closed => return,
                error => tracing::warn!(resource = %self.resource, %error, "reading again what governs the server"),
            }
            from = self.reload().await;
        }
    }

    async fn follow(&mut self, from: ResourceVersion) -> WatchError {
        let mut watcher = match self.store.watch(Selection::all(self.resource.clone()), Start::After(from)) {
            Ok(watcher) => watcher,
            Err(error) => return error,
        };
        loop {
            match watcher.next().await {
                Ok(items) => self.take(&items),
                Err(error) => return error,
            }
        }
    }

    fn take(&mut self, items: &[WatchItem]) {
        let mut reached = None;
        let mut changes = Vec::new();
        for item in items {
            let WatchItem::Event { event, .. } = item else { continue };
            let gone = event.kind == EventType::Deleted;
            if gone {
                self.known.remove(&event.key)
            } else {
                self.known.insert(event.key.clone())
            };
            changes.push((event.key.clone(), if gone { None } else { Object::from_json(&event.object) }));
            reached = Some(event.version);
        }
        let Some(reached) = reached else { return };
        if self.effect.apply(changes.iter().map(|(key, object)| (key, object.as_ref()))) {
            self.effect.publish_kinds();
        }
        self.progress.send_replace(reached);
    }

    /// Until it can be read: what is known stays in force meanwhile, and is
    /// compared with what is there then.
    async fn reload(&mut self) -> ResourceVersion {
        loop {
            let view = self.store.view();
            match self.effect.load(&view, &self.resource, &self.known) {
                Ok(known) => {
                    self.known = known;
                    self.effect.publish_kinds();
                    self.progress.send_replace(view.version());
                    return view.version();
                }
                Err(error) => {
                    tracing::error!(resource = %self.resource, %error, "what governs the server cannot be read: trying again");
                    tokio::time::sleep(RELOAD_PAUSE).await;
                }
            }
        }
    }
}
