//! Reading the past in bounded pieces: the log for a watcher that memory has
//! left behind, the objects for one that begins with them.
//!
//! Invariant: a piece is bounded by what is read, not by what matches, so a
//! narrow selection over a long log neither blocks a thread nor fills memory.

use std::sync::Arc;

use tidegate_model::{EventType, ObjectKey, ResourceVersion};

use crate::event::EventParts;
use crate::row::{self, corrupt};
use crate::watch::WatchItem;
use crate::{Event, Selection, StoreError, StoredObject, View};

/// About a millisecond of reading.
const PIECE_ROWS_MAX: usize = 2048;
/// Of what matched: what one watcher may hold while it sends it.
pub(crate) const PIECE_BYTES_MAX: usize = 4 << 20;

/// Part of the log, and the version up to which nothing is missing.
pub(crate) struct LogPiece {
    pub items: Vec<WatchItem>,
    pub cursor: ResourceVersion,
}

pub(crate) fn read_log(
    view: &View,
    selection: &Selection,
    cursor: ResourceVersion,
    items_max: usize,
) -> Result<LogPiece, StoreError> {
    let prefix = selection.key_prefix();
    let mut piece = LogPiece { items: Vec::new(), cursor };
    let mut bytes = 0;
    for (rows, item) in view.log(cursor).enumerate() {
        if rows == PIECE_ROWS_MAX || piece.items.len() == items_max || bytes > PIECE_BYTES_MAX {
            return Ok(piece);
        }
        let (key, value) = item?;
        let version = row::decode_version(&key).map_err(corrupt("a version of the log"))?;
        let broken = |reason| corrupt(format!("event {version}"))(reason);
        if row::event_key(&value).map_err(broken)?.starts_with(&prefix) {
            let event = Event::new(row::decode_event(version, &value).map_err(broken)?);
            if let Some(kind) = selection.transition(&event) {
                bytes += event.object.len();
                piece.items.push(WatchItem::Event { kind, event: Arc::new(event) });
            }
        }
        piece.cursor = version;
    }
    // All of the view was read: there is nothing up to its version, either.
    piece.cursor = piece.cursor.max(view.version());
    Ok(piece)
}

/// Part of the objects; `after` is where the next part begins, `None` if this
/// was the last.
pub(crate) struct ObjectPiece {
    pub items: Vec<WatchItem>,
    pub after: Option<ObjectKey>,
}

pub(crate) fn read_objects(
    view: &View,
    selection: &Selection,
    after: Option<&ObjectKey>,
    items_max: usize,
) -> Result<ObjectPiece, StoreError> {
    let mut items = Vec::new();
    let mut bytes = 0;
    for (rows, object) in view.scan_all(selection, after).enumerate() {
        let object = object?;
        let key = object.key.clone();
        if selection.labels.matches(&object.labels) {
            bytes += object.json.len();
            items.push(WatchItem::Event { kind: EventType::Added, event: Arc::new(initial(object)) });
        }
        if rows + 1 >= PIECE_ROWS_MAX || items.len() >= items_max || bytes > PIECE_BYTES_MAX {
            return Ok(ObjectPiece { items, after: Some(key) });
        }
    }
    Ok(ObjectPiece { items, after: None })
}

fn initial(object: StoredObject) -> Event {
    let StoredObject { key, version, labels, json } = object;
    let kind = EventType::Added;
    Event::new(EventParts { version, kind, key, labels, previous_labels: None, object: json, time_ms: 0 })
}
