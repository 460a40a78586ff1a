//! The catalogue as the manager keeps it, and the reconciler of its kinds.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use bytes::Bytes;
use serde_json::Value;
use tidegate_model::{Object, ObjectKey};
use tidegate_runtime::{
    AddError, BoxError, Change, Client, Controller, Durable, Index, Item, Kind, Manager, Next, Preview, ReconcileError,
    Reconciler, SavedRecord, Touched,
};

use super::part::{Ahead, Summary};
use super::record::RECORD_FORMAT;
use super::{API_VERSION, Catalog, CatalogKind, Facts, NamespaceId, Reviewed, Slot, Touched as Concerned};
use crate::report::Report;

/// Adds a controller for each kind of the catalogue; they share one index.
pub fn add_to(manager: &Manager) -> Result<(), AddError> {
    let index = Arc::new(CatalogIndex::default());
    let handle = manager.durable_index(index.clone());
    for kind in CatalogKind::ALL {
        let reconciler = CatalogReconciler::new(kind, index.clone(), manager.client());
        manager.add(Controller::new(kind.plural(), kind.of_runtime(), reconciler).index(&handle))?;
    }
    Ok(())
}

/// One writer, many readers.
#[derive(Default)]
pub struct CatalogIndex {
    whole: RwLock<Catalog>,
    ahead: Arc<Ahead>,
}

impl CatalogIndex {
    /// What there is to write: `None` if the object is gone or its status
    /// says it already. While the index is loaded, also if it takes more than
    /// what a preview of it has.
    pub fn due(&self, key: &ObjectKey) -> Option<Due> {
        self.ahead.due(key).unwrap_or_else(|| self.read().due(key))
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, Catalog> {
        self.whole.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Catalog> {
        self.whole.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What there is to write of an object.
#[derive(Clone, PartialEq, Debug)]
pub struct Due {
    pub report: Report,
    /// What it refers to and is not in the index, which is why it is not ready.
    pub missing: Vec<ObjectKey>,
}

impl Catalog {
    pub(super) fn due(&self, key: &ObjectKey) -> Option<Due> {
        let (kind, namespace) = (CatalogKind::of(&key.resource)?, key.namespace.as_deref()?);
        let report = self.plan(kind, namespace, &key.name)?;
        if self.says(kind, namespace, &key.name, &report) {
            return None;
        }
        let namespace = self.namespaces.find(namespace)?;
        let slot = self.find(kind, namespace, &key.name)?;
        Some(Due { report, missing: self.missing(kind, namespace, slot) })
    }

    fn missing(&self, kind: CatalogKind, namespace: NamespaceId, slot: Slot) -> Vec<ObjectKey> {
        let Some(facts) = self.facts(kind, slot) else { return Vec::new() };
        let exists =
            |kind, name| self.find(kind, namespace, name).is_some_and(|slot| self.common(kind, slot).is_some());
        let above = if kind == CatalogKind::CategoryTaxonomy { self.taxonomy.missing_above(slot) } else { None };
        let above = above.map(|name| (CatalogKind::CategoryTaxonomy, name));
        let missing = facts.references().filter(|(kind, name)| !exists(*kind, name)).chain(above);
        let key = |(kind, name): (CatalogKind, &str)| ObjectKey {
            resource: kind.resource(),
            namespace: Some(self.namespaces.name(namespace)),
            name: name.into(),
        };
        let mut missing: Vec<ObjectKey> = missing.take(MISSING_MAX).map(key).collect();
        missing.dedup();
        missing
    }
}

/// So many are looked for before they are reported: one that is there tells
/// that the index is behind.
const MISSING_MAX: usize = 16;

impl Index for CatalogIndex {
    fn kinds(&self) -> Vec<Kind> {
        CatalogKind::ALL.map(CatalogKind::of_runtime).into()
    }

    fn apply(&self, kind: &Kind, changes: &[Change<'_>], touched: &mut Touched) {
        let Some(kind) = CatalogKind::of(&kind.resource) else { return };
        // Read before the lock is taken: readers wait for the index alone.
        let objects = objects_of(changes);
        let facts = facts_of(kind, &objects);
        let mut catalog = self.write();
        let mut concerned = Concerned::default();
        for (key, facts) in facts {
            let namespace = key.namespace.as_deref().unwrap_or_default();
            let itself = catalog.change(kind, namespace, &key.name, facts, &mut concerned);
            concerned.extend(kind, itself);
            touched.changed(key.clone());
        }
        catalog.review(concerned).tell(touched);
    }

    fn keys(&self, kind: &Kind) -> Vec<ObjectKey> {
        CatalogKind::of(&kind.resource).map(|kind| self.read().keys_of(kind)).unwrap_or_default()
    }

    /// Every object is in the index with what its status says, so it is known
    /// at any time who is due.
    fn audit(&self, touched: &mut Touched) {
        touched.extend(self.read().due_keys());
    }
}

impl Durable for CatalogIndex {
    fn name(&self) -> &'static str {
        "index.catalog"
    }

    fn format(&self) -> u32 {
        RECORD_FORMAT
    }

    fn record(&self, key: &ObjectKey) -> Option<Bytes> {
        let (kind, namespace) = (CatalogKind::of(&key.resource)?, key.namespace.as_deref()?);
        self.read().record(kind, namespace, &key.name).map(Into::into)
    }

    fn load(&self, kind: &Kind, records: &[SavedRecord<'_>]) -> Result<(), BoxError> {
        let Some(kind) = CatalogKind::of(&kind.resource) else { return Ok(()) };
        let mut catalog = self.write();
        for record in records {
            catalog.restore(kind, record.namespace.unwrap_or_default(), record.name, record.value)?;
        }
        Ok(())
    }

    fn recheck(&self, touched: &mut Touched) {
        self.write().review_all().tell(touched);
    }

    fn summary(&self) -> Value {
        Summary::of(&self.read()).to_json()
    }

    fn preview(&self, summary: &Value) -> Option<Box<dyn Preview>> {
        Some(Box::new(self.ahead.begin(Summary::from_json(summary)?)))
    }
}

impl Reviewed {
    fn tell(self, touched: &mut Touched) {
        self.changed.into_iter().for_each(|key| touched.changed(key));
        touched.extend(self.due);
    }
}

pub(super) fn objects_of<'c>(changes: &[Change<'c>]) -> Vec<(&'c ObjectKey, Option<Object>)> {
    changes.iter().filter_map(object_of).collect()
}

/// `None` of what is gone.
pub(super) fn facts_of<'o>(
    kind: CatalogKind,
    objects: &'o [(&'o ObjectKey, Option<Object>)],
) -> Vec<(&'o ObjectKey, Option<Facts<'o>>)> {
    let facts = |object: &'o Option<Object>| object.as_ref().map(|object| Facts::of(kind, object));
    objects.iter().map(|(key, object)| (*key, facts(object))).collect()
}

fn object_of<'c>(change: &Change<'c>) -> Option<(&'c ObjectKey, Option<Object>)> {
    match change {
        Change::Gone(key) => Some((key, None)),
        Change::Put(item) => match item.object() {
            Ok(object) => Some((&item.key, Some(object))),
            Err(error) => {
                tracing::error!(%error, "an object of the catalogue is left as it was known");
                None
            }
        },
    }
}

/// Writes an object's report into its status.
pub struct CatalogReconciler {
    kind: Kind,
    index: Arc<CatalogIndex>,
    client: Client,
}

impl CatalogReconciler {
    pub fn new(kind: CatalogKind, index: Arc<CatalogIndex>, client: Client) -> Self {
        Self { kind: kind.of_runtime(), index, client }
    }

    /// Whether one of them exists, whatever the index says.
    async fn is_there(&self, missing: &[ObjectKey]) -> Result<bool, ReconcileError> {
        for key in missing {
            let Some(kind) = CatalogKind::of(&key.resource) else { continue };
            if self.client.get(&kind.of_runtime(), key).await?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Reconciler for CatalogReconciler {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(Due { missing, .. }) = self.index.due(key) else { return Ok(Next::AwaitChange) };
        // Kinds are watched one by one: of what came in one push, the index
        // may know the half. It wakes us when it knows the rest.
        if self.is_there(&missing).await? {
            return Ok(Next::AwaitChange);
        }
        let patch = |item: &Item| {
            // The same for an index that has not seen this generation: what it
            // knows is of another spec.
            let due = self.index.due(key).filter(|due| due.missing == missing);
            let report = due.map(|due| due.report).filter(|report| report.generation() == item.generation());
            Ok(report.map(|report| report.patch()))
        };
        self.client.report(&self.kind, key, patch).await?;
        Ok(Next::AwaitChange)
    }
}

impl CatalogKind {
    pub fn of_runtime(self) -> Kind {
        Kind::new(API_VERSION, self.kind(), self.plural())
    }
}
