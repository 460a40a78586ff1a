//! A consistent, durable state of the store, with its version.

use std::sync::Arc;

use bytes::Bytes;
use tidegate_model::{GroupResource, ObjectKey, ResourceVersion};

use crate::engine::{Rows, Snapshot, Table};
use crate::head::{Head, Window};
use crate::row::{self, ObjectRow, corrupt};
use crate::{Selection, StoreError, StoredObject};

const COUNTER_PREFIX: &[u8] = b"c/";
const MARK_PREFIX: &[u8] = b"m/";

/// Cheap to clone. As long as it is held, the engine keeps what it shows.
#[derive(Clone)]
pub struct View(Arc<Inner>);

struct Inner {
    head: Head,
    snapshot: Arc<dyn Snapshot>,
}

impl View {
    pub(crate) fn new(head: Head, snapshot: Arc<dyn Snapshot>) -> Self {
        Self(Arc::new(Inner { head, snapshot }))
    }

    pub fn version(&self) -> ResourceVersion {
        self.0.head.newest
    }

    pub fn window(&self) -> Window {
        self.0.head.window()
    }

    pub fn get(&self, key: &ObjectKey) -> Result<Option<StoredObject>, StoreError> {
        Ok(self.row(&row::encode_key(key), key)?.map(|row| row.into_object(key.clone())))
    }

    /// In the order of namespace and name, beginning after the key `after`.
    pub fn scan(
        &self,
        selection: &Selection,
        after: Option<&ObjectKey>,
    ) -> impl Iterator<Item = Result<StoredObject, StoreError>> + Send + use<> {
        let selection = selection.clone();
        self.scan_all(&selection, after)
            .filter(move |object| object.as_ref().map_or(true, |object| selection.labels.matches(&object.labels)))
    }

    /// As [`Self::scan`], with the objects that the labels do not select: for
    /// whoever bounds its work by what was read.
    pub(crate) fn scan_all(
        &self,
        selection: &Selection,
        after: Option<&ObjectKey>,
    ) -> impl Iterator<Item = Result<StoredObject, StoreError>> + Send + use<> {
        let (from, until) = bounds(selection, after);
        let selection = selection.clone();
        let rows = if from < until { Some(self.0.snapshot.range(Table::Objects, &from, &until)) } else { None };
        let prefix = row::resource_prefix(&selection.resource, None);
        rows.into_iter().flatten().filter_map(move |item| decode(&selection, &prefix, item).transpose())
    }

    pub fn count(&self, resource: &GroupResource, namespace: Option<&str>) -> Result<u64, StoreError> {
        self.counter(&counter_key(resource, namespace))
    }

    pub fn mark(&self, name: &str) -> Result<Option<Bytes>, StoreError> {
        self.0.snapshot.get(Table::Meta, &mark_key(name))
    }

    /// The marks whose names begin with `prefix`, in order, after the name
    /// `after`.
    pub fn marks(
        &self,
        prefix: &str,
        after: Option<&str>,
    ) -> impl Iterator<Item = Result<(String, Bytes), StoreError>> + Send + use<> {
        let start = mark_key(prefix);
        // The first possible name after `after` has one more byte, a NUL.
        let from =
            after.map_or_else(|| start.clone(), |after| [&mark_key(after)[..], &[0]].concat().max(start.clone()));
        // Names are UTF-8, which has no such byte.
        let until = [&start[..], &[0xFF]].concat();
        let rows = self.0.snapshot.range(Table::Meta, &from, &until);
        rows.map(|row| {
            let (key, value) = row?;
            Ok((String::from_utf8_lossy(&key[MARK_PREFIX.len()..]).into_owned(), value))
        })
    }

    pub(crate) fn head(&self) -> &Head {
        &self.0.head
    }

    pub(crate) fn snapshot(&self) -> &dyn Snapshot {
        &*self.0.snapshot
    }

    pub(crate) fn row(&self, encoded: &[u8], key: &ObjectKey) -> Result<Option<ObjectRow>, StoreError> {
        let row = self.0.snapshot.get(Table::Objects, encoded)?;
        row.map(|row| ObjectRow::decode(row).map_err(|reason| corrupt(key.to_string())(reason))).transpose()
    }

    pub(crate) fn counter(&self, key: &[u8]) -> Result<u64, StoreError> {
        let row = self.0.snapshot.get(Table::Meta, key)?;
        row.map_or(Ok(0), |row| decode_counter(&row).map_err(corrupt("a counter")))
    }

    /// The event rows after `cursor`, across segments.
    pub(crate) fn log(&self, cursor: ResourceVersion) -> Rows {
        let inner = self.0.clone();
        let (from, until) = (row::version_key(cursor.next()), u64::MAX.to_be_bytes());
        let segments = inner.head.segments.clone();
        let kept = segments.into_iter().filter(move |segment| segment.last > cursor);
        Box::new(kept.flat_map(move |segment| inner.snapshot.range(Table::Log(segment.id), &from, &until)))
    }
}

pub(crate) fn counter_key(resource: &GroupResource, namespace: Option<&str>) -> Vec<u8> {
    [COUNTER_PREFIX, &row::resource_prefix(resource, namespace)].concat()
}

pub(crate) fn mark_key(name: &str) -> Vec<u8> {
    [MARK_PREFIX, name.as_bytes()].concat()
}

/// All rows of one sort.
pub(crate) fn meta_rows(snapshot: &dyn Snapshot, sort: MetaSort) -> Rows {
    let (from, until): (&[u8], &[u8]) = match sort {
        MetaSort::Counters => (COUNTER_PREFIX, b"c0"),
        MetaSort::Marks => (MARK_PREFIX, b"m0"),
    };
    snapshot.range(Table::Meta, from, until)
}

#[derive(Clone, Copy)]
pub(crate) enum MetaSort {
    Counters,
    Marks,
}

pub(crate) fn decode_counter(row: &[u8]) -> Result<u64, &'static str> {
    row::Reader { rest: row }.u64()
}

fn bounds(selection: &Selection, after: Option<&ObjectKey>) -> (Vec<u8>, Vec<u8>) {
    let prefix = selection.key_prefix();
    let exact = match (&selection.namespace, &selection.name) {
        (Some(_), Some(name)) => Some([&prefix[..], name.as_bytes()].concat()),
        _ => None,
    };
    let until = exact.as_ref().map_or_else(|| row::prefix_end(&prefix), |key| [key, &[0][..]].concat());
    let from = exact.unwrap_or(prefix);
    // The first possible key after `after` has one more byte, a NUL.
    let after = after.map(|key| [&row::encode_key(key)[..], &[0]].concat());
    (after.map_or(from.clone(), |after| after.max(from)), until)
}

fn decode(
    selection: &Selection,
    prefix: &[u8],
    item: Result<(Bytes, Bytes), StoreError>,
) -> Result<Option<StoredObject>, StoreError> {
    let (key, value) = item?;
    let key = row::decode_key_in(&selection.resource, prefix, &key).map_err(corrupt("a key"))?;
    if !selection.covers(&key) {
        return Ok(None);
    }
    let row = ObjectRow::decode(value).map_err(|reason| corrupt(key.to_string())(reason))?;
    Ok(Some(row.into_object(key)))
}
