//! The preview of an index at work: reads the records that changes need, and
//! stops when it cannot be right or takes too much.
//!
//! Invariant: all records that it is given are of the moment that the index
//! was saved at.

use std::collections::HashMap;
use std::sync::Arc;

use tidegate_model::ObjectKey;

use crate::index::Stage;
use crate::index_load::Saved;
use crate::indexer::change;
use crate::plane::STATE_NAMES_MAX;
use crate::{ApiError, BoxError, Change, Durable, Kind, Plane, Preview, StateRow, Touched, WatchEvent, rows};

/// Events that wait for the whole index. With more, what the changes need is no
/// small part of it any more.
const EVENTS_MAX: usize = 10_000;
/// Of their objects, which have about 2 KiB each; one batch may go beyond.
const EVENT_BYTES_MAX: usize = 64 << 20;
/// Of about 200 bytes each; an event needs four or five.
const RECORDS_MAX: usize = 5 * EVENTS_MAX;
/// Records that call for others, one after the other: a category for its
/// parent, and so on. Each is a round trip to the server.
const ROUNDS_MAX: usize = 128;

pub(crate) struct Previewing {
    plane: Arc<dyn Plane>,
    index: Arc<dyn Durable>,
    kinds: Vec<Kind>,
    saved: Saved,
    preview: Box<dyn Preview>,
    spent: Spent,
    is_open: bool,
}

/// What is kept until the whole index is there, within limits.
#[derive(Default, Debug)]
struct Spent {
    events: usize,
    event_bytes: usize,
    records: usize,
}

#[derive(Debug, thiserror::Error)]
enum Stopped {
    #[error("there are more than {EVENTS_MAX} changes, or {} MiB of them", EVENT_BYTES_MAX >> 20)]
    Events,
    #[error("the changes need more than {RECORDS_MAX} records, or {ROUNDS_MAX} reads one after the other")]
    Records,
    #[error("the index is saved anew")]
    Moved,
    #[error("records cannot be read now: {0}")]
    Api(#[from] ApiError),
    #[error("a record cannot be read: {0}")]
    Record(#[from] BoxError),
}

impl Previewing {
    /// `None` if the index has no preview, or its records are not of one moment.
    pub fn new(plane: &Arc<dyn Plane>, index: &Arc<dyn Durable>, kinds: &[Kind], saved: &Saved) -> Option<Self> {
        let preview = if saved.torn { None } else { index.preview(&saved.summary) }?;
        Some(Self {
            plane: plane.clone(),
            index: index.clone(),
            kinds: kinds.to_vec(),
            saved: saved.clone(),
            preview,
            spent: Spent::default(),
            is_open: true,
        })
    }

    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// How many it was given.
    pub fn changes(&self) -> usize {
        self.spent.events
    }

    pub fn close(&mut self) {
        self.is_open = false;
        self.preview.close();
    }

    /// Which keys may run now.
    pub async fn take(&mut self, kind: &Kind, events: &[WatchEvent]) -> Touched {
        let mut touched = Touched::of(Stage::Preview);
        let changes: Vec<Change<'_>> = events.iter().filter_map(change).collect();
        let bytes = events.iter().map(bytes_of).sum();
        match self.prepare(kind, &changes, bytes).await {
            Ok(()) => self.preview.apply(kind, &changes, &mut touched),
            Err(reason) => {
                tracing::info!(index = self.index.name(), %reason, "changes wait until all records of the index are loaded");
                self.close();
            }
        }
        touched
    }

    async fn prepare(&mut self, kind: &Kind, changes: &[Change<'_>], bytes: usize) -> Result<(), Stopped> {
        self.spent.on_events(changes.len(), bytes)?;
        let mut needs = self.preview.needs(kind, changes);
        for _ in 0..ROUNDS_MAX {
            if needs.is_empty() {
                return Ok(());
            }
            self.spent.on_records(needs.len())?;
            self.read(&needs).await?;
            needs = self.preview.needs(kind, &[]);
        }
        Err(Stopped::Records)
    }

    async fn read(&mut self, keys: &[ObjectKey]) -> Result<(), Stopped> {
        let names: Vec<String> = keys.iter().map(rows::record_name).collect();
        let mut found: HashMap<String, StateRow> = HashMap::new();
        for names in names.chunks(STATE_NAMES_MAX) {
            let rows = self.plane.state_get(self.index.name(), names).await?;
            found.extend(rows.into_iter().map(|row| (row.name.clone(), row)));
        }
        // Read afterwards: whoever saves changes it with the first record.
        let row = self.plane.state_get(self.index.name(), &[rows::INDEX.into()]).await?;
        let now = row.first().and_then(|row| Saved::parse(row, &*self.index, &self.kinds));
        if now.as_ref() != Some(&self.saved) {
            return Err(Stopped::Moved);
        }
        for (key, name) in keys.iter().zip(&names) {
            self.preview.load(key, found.get(name).map(|row| &*row.value))?;
        }
        Ok(())
    }
}

impl Spent {
    fn on_events(&mut self, events: usize, bytes: usize) -> Result<(), Stopped> {
        self.events += events;
        self.event_bytes += bytes;
        if self.events > EVENTS_MAX || self.event_bytes > EVENT_BYTES_MAX { Err(Stopped::Events) } else { Ok(()) }
    }

    fn on_records(&mut self, records: usize) -> Result<(), Stopped> {
        self.records += records;
        if self.records > RECORDS_MAX { Err(Stopped::Records) } else { Ok(()) }
    }
}

/// What is kept of it: a deletion brings the last state along.
fn bytes_of(event: &WatchEvent) -> usize {
    match event {
        WatchEvent::Added(item) | WatchEvent::Modified(item) | WatchEvent::Deleted(item) => item.json.len(),
        WatchEvent::Bookmark(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Batches of events and their bytes, and which of them is one too many.
    fn check(batches: &[(usize, usize)], refused: Option<usize>) {
        let mut spent = Spent::default();
        let found = batches.iter().position(|(events, bytes)| spent.on_events(*events, *bytes).is_err());
        assert_eq!(found, refused, "{batches:?}");
    }

    #[test]
    fn what_is_kept_has_limits() {
        check(&[(1, 2_000), (EVENTS_MAX - 1, 2_000)], None);
        check(&[(EVENTS_MAX, 0), (0, 0), (1, 0)], Some(2));
        check(&[(1, EVENT_BYTES_MAX), (0, 0)], None);
        check(&[(1, EVENT_BYTES_MAX - 1), (1, 1), (1, 1)], Some(2));
        check(&[(1, EVENT_BYTES_MAX + 1)], Some(0));
        let mut spent = Spent::default();
        assert!(spent.on_records(RECORDS_MAX).is_ok());
        assert!(spent.on_records(1).is_err());
    }
}
