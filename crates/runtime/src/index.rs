//! What reconcilers know of other objects, kept up to date by the manager.

use bytes::Bytes;
use serde_json::Value;
use tidegate_model::{GroupResource, ObjectKey};
use tokio::sync::{mpsc, watch};

use crate::indexer::Subscriber;
use crate::{BoxError, Item, Kind};

/// A structure of the author's own over all objects of some kinds, written by
/// one task and read by many reconcilers.
///
/// It is filled from a list when the manager starts (or from what was saved of
/// it, see [`Durable`]), then follows the watch.
/// A change names the keys that must be reconciled because of it ("a product
/// that moves touches two categories"), in proportion to the change.
pub trait Index: Send + Sync + 'static {
    /// What it is made of. A change of one kind comes in order; there is no
    /// order between kinds.
    fn kinds(&self) -> Vec<Kind>;

    /// Takes over changes of one kind and says whom they concern, keys of the
    /// changed kind included. May be told what it knows already.
    fn apply(&self, kind: &Kind, changes: &[Change<'_>], touched: &mut Touched);

    /// What it holds of a kind: after a new list, whatever is not in the list
    /// is applied as [`Change::Gone`].
    fn keys(&self, kind: &Kind) -> Vec<ObjectKey>;

    /// Called when it has just been filled: which keys need a reconcile, going
    /// by what their status says? What changed while no manager ran is found
    /// here, because what an object was before is not known any more. An index
    /// that cannot tell calls [`Touched::everything`].
    fn audit(&self, touched: &mut Touched);
}

/// An index that is saved as it changes. A manager that starts loads its
/// records and follows the watch from where they end: what it reads of an
/// object is what the index keeps of it, and nobody is audited.
///
/// A record says all that the index holds of one object, and whether the
/// object needs a reconcile. Whenever a record becomes another, `apply` says so
/// with [`Touched::changed`]; an index that was given the records of another
/// one must be equal to it.
pub trait Durable: Index {
    /// Names its rows: letters, digits, `-` and `.`, and never the name of a
    /// controller or another index.
    fn name(&self) -> &'static str;

    /// Raised when records are written in another way: older ones are not
    /// read, and the index is filled from a list.
    fn format(&self) -> u32;

    /// `None` if nothing is held of the key.
    fn record(&self, key: &ObjectKey) -> Option<Bytes>;

    /// Takes records back, before any change is applied. After an error the
    /// index is filled from a list, over what it has taken so far.
    fn load(&self, kind: &Kind, records: &[SavedRecord<'_>]) -> Result<(), BoxError>;

    /// Called after the records when a crash has left some that are newer than
    /// others: finds out for every object whether it needs a reconcile, and
    /// says whose record was wrong about it.
    fn recheck(&self, touched: &mut Touched);

    /// Something about all records together that a [`Preview`] needs; saved
    /// with the versions that they go up to.
    fn summary(&self) -> Value {
        Value::Null
    }

    /// What works while the records are loaded, from those alone that the
    /// changes since need; `None` if reconciles have to wait for all of them.
    /// From here until it is dropped, reconcilers are answered by it.
    fn preview(&self, summary: &Value) -> Option<Box<dyn Preview>> {
        let _ = summary;
        None
    }
}

/// The part of a durable index that a few changes need, so that a start with
/// few changes does not wait for many records. What it cannot find (whoever
/// else a change concerns, what was due before) the whole index finds later;
/// what it answers must be what the whole index would.
pub trait Preview: Send {
    /// Which records are missing to apply `changes`; asked again, without
    /// changes, after each answer, because a record may call for others.
    fn needs(&mut self, kind: &Kind, changes: &[Change<'_>]) -> Vec<ObjectKey>;

    /// `None` if there is no record of the key.
    fn load(&mut self, key: &ObjectKey, record: Option<&[u8]>) -> Result<(), BoxError>;

    /// Says which keys can be answered for now. Whatever was missing is there.
    fn apply(&mut self, kind: &Kind, changes: &[Change<'_>], touched: &mut Touched);

    /// It cannot follow any more, and answers nothing from here on. What
    /// reconcilers do not do because of that they do later: the audit names
    /// it, or they fail and are tried again.
    fn close(&mut self);
}

/// A record as it was saved, and whose it is.
#[derive(Clone, Copy, Debug)]
pub struct SavedRecord<'r> {
    /// `None` for cluster scope.
    pub namespace: Option<&'r str>,
    pub name: &'r str,
    pub value: &'r [u8],
}

#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    Put(&'a Item),
    Gone(&'a ObjectKey),
}

impl Change<'_> {
    pub fn key(&self) -> &ObjectKey {
        match self {
            Self::Put(item) => &item.key,
            Self::Gone(key) => key,
        }
    }
}

/// Keys that must be reconciled; each goes to the controllers of its resource
/// that use the index.
#[derive(Clone, Default, Debug)]
pub struct Touched {
    keys: Vec<ObjectKey>,
    /// Those of `keys` that leave quarantine, too.
    renewed: Vec<ObjectKey>,
    changed: Vec<ObjectKey>,
    everything: bool,
    stage: Stage,
}

/// What it comes of.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    #[default]
    Change,
    Audit,
    /// Before the audit, and only of keys that can be answered for already.
    Preview,
}

impl Touched {
    pub fn add(&mut self, key: ObjectKey) {
        self.keys.push(key);
    }

    /// The same, and what the last verdict on the key was about is not the same
    /// any more: a key in quarantine is tried again.
    pub fn renew(&mut self, key: ObjectKey) {
        self.renewed.push(key.clone());
        self.keys.push(key);
    }

    /// The key's record is another now, or gone. Of no consequence for an
    /// index that is not [`Durable`].
    pub fn changed(&mut self, key: ObjectKey) {
        self.changed.push(key);
    }

    pub fn changed_keys(&self) -> &[ObjectKey] {
        &self.changed
    }

    pub(crate) fn take_changed(&mut self) -> Vec<ObjectKey> {
        std::mem::take(&mut self.changed)
    }

    /// Every object of every controller that uses the index.
    pub fn everything(&mut self) {
        self.everything = true;
    }

    pub fn is_everything(&self) -> bool {
        self.everything
    }

    pub fn keys(&self) -> &[ObjectKey] {
        &self.keys
    }

    pub fn renewed_keys(&self) -> &[ObjectKey] {
        &self.renewed
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty() && !self.everything
    }

    pub(crate) fn of(stage: Stage) -> Self {
        Self { stage, ..Self::default() }
    }

    pub(crate) fn stage(&self) -> Stage {
        self.stage
    }

    /// What of it concerns the objects of one resource.
    pub(crate) fn only(&self, resource: &GroupResource) -> Self {
        let of = |keys: &[ObjectKey]| keys.iter().filter(|key| key.resource == *resource).cloned().collect();
        Self {
            keys: of(&self.keys),
            renewed: of(&self.renewed),
            changed: Vec::new(),
            everything: self.everything,
            stage: self.stage,
        }
    }
}

impl Extend<ObjectKey> for Touched {
    fn extend<T: IntoIterator<Item = ObjectKey>>(&mut self, keys: T) {
        self.keys.extend(keys);
    }
}

/// An index that a manager keeps; cheap to clone. Controllers name it to be
/// woken by it, and wait with their first reconcile until it is filled.
#[derive(Clone)]
pub struct IndexHandle {
    pub(crate) filled: watch::Receiver<bool>,
    pub(crate) subscribe: mpsc::UnboundedSender<Subscriber>,
}

impl IndexHandle {
    /// Returns when the index holds what there was at the manager's start; at
    /// once afterwards.
    pub async fn filled(&self) {
        // An error means that the manager is gone, and nobody waits for long.
        let _ = self.filled.clone().wait_for(|filled| *filled).await;
    }

    pub fn is_filled(&self) -> bool {
        *self.filled.borrow()
    }
}
