//! The rules of a commit: transactions become rows and events, or conflicts.
//!
//! Invariant: a transaction is judged against the durable state plus the
//! transactions of the same batch that were admitted before it, and leaves no
//! trace in the batch when it is refused. Only [`Stage`] mints versions.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use tidegate_model::{EventType, ObjectKey, ResourceVersion};

use crate::engine::{Change, Table};
use crate::event::EventParts;
use crate::head::{Head, Segment};
use crate::row::{self, ObjectRow};
use crate::view::{counter_key, mark_key};
use crate::{CommitError, Committed, Event, Op, Rebased, StoreError, Transaction, View, Write};

/// A batch in the making: many transactions, one write of the engine.
pub(crate) struct Stage<'a> {
    view: &'a View,
    now_ms: u64,
    stride: u64,
    head: Head,
    admitted: Delta,
}

/// What transactions change, on top of what is below them.
#[derive(Default)]
struct Delta {
    objects: HashMap<Bytes, Option<ObjectRow>>,
    /// Of what was merged.
    counters: HashMap<Vec<u8>, i64>,
    marks: HashMap<Vec<u8>, Option<Bytes>>,
    events: Vec<EventParts>,
}

/// A finished batch: first `changes` must be durable, then `head` is the head
/// and `events` may be seen.
pub(crate) struct Staged {
    pub head: Head,
    pub changes: Vec<Change>,
    pub events: Vec<Arc<Event>>,
}

impl<'a> Stage<'a> {
    pub fn new(view: &'a View, head: Head, now_ms: u64, stride: u64) -> Self {
        Self { view, now_ms, stride, head, admitted: Delta::default() }
    }

    pub fn admit(&mut self, transaction: Transaction) -> Result<Committed, CommitError> {
        let newest = self.head.newest;
        let mut delta = Delta::default();
        let outcome = self.apply(transaction, &mut delta);
        match &outcome {
            Ok(_) => self.admitted.merge(delta),
            // Nobody has seen the versions of a refused transaction.
            Err(_) => self.head.newest = newest,
        }
        outcome.map(|versions| Committed { version: self.head.newest, versions })
    }

    fn apply(
        &mut self,
        transaction: Transaction,
        delta: &mut Delta,
    ) -> Result<Vec<Option<ResourceVersion>>, CommitError> {
        let Transaction { writes, marks } = transaction;
        delta.objects.reserve(writes.len());
        delta.events.reserve(writes.len());
        delta.marks.extend(marks.into_iter().map(|(name, value)| (mark_key(&name), value)));
        writes.into_iter().enumerate().map(|(index, write)| self.apply_write(index, write, delta)).collect()
    }

    fn apply_write(
        &mut self,
        index: usize,
        write: Write,
        delta: &mut Delta,
    ) -> Result<Option<ResourceVersion>, CommitError> {
        let encoded = Bytes::from(row::encode_key(&write.key));
        let current = self.current(&encoded, &write.key, delta)?;
        let version = current.as_ref().map(|row| row.version);
        let op = if write.expect.holds(version) {
            write.op
        } else {
            match rebased(&write, current.as_ref()) {
                Rebased::Op(op) => op,
                Rebased::Skip => return Ok(None),
                Rebased::Conflict => {
                    return Err(CommitError::Conflict {
                        index,
                        key: write.key,
                        expected: write.expect,
                        current: version,
                    });
                }
            }
        };
        Ok(self.change(encoded, write.key, current, op, delta))
    }

    fn current(&self, encoded: &Bytes, key: &ObjectKey, delta: &Delta) -> Result<Option<ObjectRow>, StoreError> {
        match delta.objects.get(encoded).or_else(|| self.admitted.objects.get(encoded)) {
            Some(row) => Ok(row.clone()),
            None => self.view.row(encoded, key),
        }
    }

    fn change(
        &mut self,
        encoded: Bytes,
        key: ObjectKey,
        current: Option<ObjectRow>,
        op: Op,
        delta: &mut Delta,
    ) -> Option<ResourceVersion> {
        let version = ResourceVersion::from_raw(self.head.newest.raw() + self.stride);
        let (event, row) = match (op, current) {
            (Op::Delete, None) => return None,
            (Op::Delete, Some(last)) => (self.deleted(version, &key, &last), None),
            (Op::Put(object), current) => {
                let (version_at, labels) = (object.version_at(), object.labels.clone());
                let row = ObjectRow::new(version, version_at, labels, &object.stamp(version));
                (self.written(version, &key, current.as_ref(), &row), Some(row))
            }
        };
        self.head.newest = version;
        delta.objects.insert(encoded, row);
        delta.events.push(event);
        Some(version)
    }

    fn deleted(&self, version: ResourceVersion, key: &ObjectKey, last: &ObjectRow) -> EventParts {
        EventParts {
            version,
            kind: EventType::Deleted,
            key: key.clone(),
            labels: last.labels.clone(),
            previous_labels: None,
            object: last.restamped(version),
            time_ms: self.now_ms,
        }
    }

    fn written(
        &self,
        version: ResourceVersion,
        key: &ObjectKey,
        current: Option<&ObjectRow>,
        row: &ObjectRow,
    ) -> EventParts {
        EventParts {
            version,
            kind: if current.is_some() { EventType::Modified } else { EventType::Added },
            key: key.clone(),
            labels: row.labels.clone(),
            previous_labels: current.map(|row| row.labels.clone()).filter(|previous| *previous != row.labels),
            object: row.json(),
            time_ms: self.now_ms,
        }
    }

    /// The rows of everything that was admitted, in the segment that the head
    /// says is being filled. `None` if there is nothing to write.
    pub fn finish(self) -> Result<Option<Staged>, StoreError> {
        let Self { view, mut head, admitted, .. } = self;
        let Delta { objects, counters, marks, events } = admitted;
        if events.is_empty() && marks.is_empty() {
            return Ok(None);
        }
        let mut changes = Vec::with_capacity(objects.len() + events.len() + counters.len() + marks.len() + 2);
        let segment = head.segments.last_mut().expect("the committer opens a segment before it stages");
        changes.extend(events.iter().map(|event| log_row(event, segment)));
        let rows = objects.into_iter();
        changes.extend(rows.map(|(key, row)| Change { table: Table::Objects, key, value: row.map(|row| row.raw) }));
        for (key, delta) in counters.into_iter().filter(|(_, delta)| *delta != 0) {
            let count = view.counter(&key)?.saturating_add_signed(delta);
            changes.push(counter_row(key, count));
        }
        let marks = marks.into_iter();
        changes.extend(marks.map(|(key, value)| Change { table: Table::Meta, key: key.into(), value }));
        changes.extend(head.changes());
        Ok(Some(Staged {
            head,
            changes,
            events: events.into_iter().map(|parts| Arc::new(Event::new(parts))).collect(),
        }))
    }
}

/// What the writer makes of the newest object. It is the writer's code in the
/// committer's thread: a panic costs its transaction, not the store.
fn rebased(write: &Write, current: Option<&ObjectRow>) -> Rebased {
    let Some(rebase) = &write.rebase else { return Rebased::Conflict };
    let newest = current.cloned().map(|row| row.into_object(write.key.clone()));
    catch_unwind(AssertUnwindSafe(|| rebase(newest.as_ref()))).unwrap_or_else(|_| {
        tracing::error!(key = %write.key, "a rebase panicked: its transaction is refused as a conflict");
        Rebased::Conflict
    })
}

/// A count of zero has no row.
pub(crate) fn counter_row(key: Vec<u8>, count: u64) -> Change {
    let value = (count > 0).then(|| Bytes::copy_from_slice(&count.to_be_bytes()));
    Change { table: Table::Meta, key: key.into(), value }
}

pub(crate) fn log_row(event: &EventParts, segment: &mut Segment) -> Change {
    let value = row::encode_event(event);
    segment.add(event.version, value.len(), event.time_ms);
    Change { table: Table::Log(segment.id), key: row::version_key(event.version), value: Some(value) }
}

impl Delta {
    /// Those of one push come kind by kind and namespace by namespace, so a
    /// counter is looked up once for many of them.
    fn count(&mut self, events: &[EventParts]) {
        let counted = |event: &EventParts| match event.kind {
            EventType::Added => 1,
            EventType::Deleted => -1,
            EventType::Modified => 0,
        };
        let is_same =
            |one: &ObjectKey, next: &ObjectKey| one.resource == next.resource && one.namespace == next.namespace;
        for run in events.chunk_by(|one, next| is_same(&one.key, &next.key)) {
            let (key, delta) = (&run[0].key, run.iter().map(counted).sum::<i64>());
            if delta == 0 {
                continue;
            }
            *self.counters.entry(counter_key(&key.resource, None)).or_default() += delta;
            if let Some(namespace) = &key.namespace {
                *self.counters.entry(counter_key(&key.resource, Some(namespace))).or_default() += delta;
            }
        }
    }

    fn merge(&mut self, later: Delta) {
        self.count(&later.events);
        self.marks.extend(later.marks);
        // A large one is alone in its batch: nothing of it is moved.
        if self.events.is_empty() {
            (self.objects, self.events) = (later.objects, later.events);
        } else {
            self.objects.extend(later.objects);
            self.events.extend(later.events);
        }
    }
}
