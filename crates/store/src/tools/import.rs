//! A store from an export.
//!
//! Invariant: until the last line was read and checked, the directory is not
//! touched; an import that fails leaves it as it was.

use std::collections::HashMap;
use std::io::BufRead;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use tidegate_model::ResourceVersion;

use super::export::tell;
use super::line::{EXPORT_FORMAT, EventLine, Header, Line, MarkLine, ObjectLine, Reader, Trailer, kind_of};
use super::{Progress, ToolError};
use crate::engine::{Change, Engine, Table};
use crate::event::EventParts;
use crate::head::{Head, Segment};
use crate::row::{self, ObjectRow};
use crate::stage::{counter_row, log_row};
use crate::view::{counter_key, mark_key};
use crate::{Options, line_start, open};

/// Bytes of one write.
const BATCH_BYTES_MAX: usize = 8 << 20;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Restore {
    /// A store that moves: versions, log and epoch stay, cursors survive.
    KeepEpoch,
    /// A backup that may be older than what clients have seen: the objects
    /// keep their versions, the log begins anew on a line above all of them,
    /// and every cursor of before is refused as expired.
    NewEpoch,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Imported {
    pub objects: u64,
    pub events: u64,
    pub marks: u64,
    pub newest: ResourceVersion,
}

pub fn import(
    dir: &Path,
    stream: impl BufRead,
    restore: Restore,
    options: &Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<Imported, ToolError> {
    if std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(ToolError::NotEmpty(dir.into()));
    }
    let outcome = fill(dir, stream, restore, options, progress);
    if outcome.is_err()
        && let Err(error) = open::discard_draft(dir)
    {
        tracing::warn!(dir = %dir.display(), %error, "failed to remove what the import left beside it: delete that");
    }
    outcome
}

fn fill(
    dir: &Path,
    stream: impl BufRead,
    restore: Restore,
    options: &Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<Imported, ToolError> {
    let mut reader = Reader::new(stream);
    // Before anything is created: most wrong files are wrong here.
    let header = match reader.next()? {
        Some(Line::Header(header)) if header.format == EXPORT_FORMAT => header,
        Some(Line::Header(_)) => return Err(reader.damaged("its format is newer than this program")),
        _ => return Err(reader.damaged("an export begins with a header")),
    };
    let head = exported_head(&header).ok_or_else(|| reader.damaged(VERSION))?;
    let new_line = match restore {
        Restore::KeepEpoch => None,
        Restore::NewEpoch => Some(line_start::restored(options, head.newest)?),
    };
    let engine = open::open_draft(dir, options)?;
    let mut target = Target::new(&engine, options, head, new_line);
    loop {
        match reader.next()? {
            None => return Err(reader.damaged("the export ends without a trailer: it is cut off")),
            Some(Line::Header(_)) => return Err(reader.damaged("a second header")),
            Some(Line::Object(line)) => {
                target.object(line).map_err(|reason| reader.damaged(reason))?;
                tell(progress, "objects", target.done.objects, Some(header.objects));
            }
            Some(Line::Event(line)) => {
                target.event(line).map_err(|reason| reader.damaged(reason))?;
                tell(progress, "log", target.done.events, Some(header.events));
            }
            Some(Line::Mark(line)) => target.mark(line).map_err(|reason| reader.damaged(reason))?,
            Some(Line::Trailer(trailer)) if trailer == target.trailer(reader.sum()) => break,
            Some(Line::Trailer(_)) => return Err(reader.damaged("lines are missing or were moved")),
        }
        target.write_if_large()?;
    }
    if reader.next()?.is_some() {
        return Err(reader.damaged("it follows the trailer"));
    }
    let imported = target.finish()?;
    drop(engine);
    open::finish(dir)?;
    Ok(imported)
}

const VERSION: &str = "a version is off the number line";

fn exported_head(header: &Header) -> Option<Head> {
    let version = |text: &str| text.parse::<ResourceVersion>().ok();
    let (epoch, newest, floor) = (version(&header.epoch)?, version(&header.newest)?, version(&header.oldest)?);
    Some(Head { epoch, newest, floor, segments: Vec::new() })
}

/// The store in the making.
struct Target<'a> {
    engine: &'a dyn Engine,
    options: &'a Options,
    /// As exported.
    head: Head,
    /// Where the log begins anew; without it, the log is imported too.
    new_line: Option<ResourceVersion>,
    last_event: ResourceVersion,
    counts: HashMap<Vec<u8>, u64>,
    changes: Vec<Change>,
    bytes: usize,
    done: Trailer,
}

impl<'a> Target<'a> {
    fn new(engine: &'a dyn Engine, options: &'a Options, head: Head, new_line: Option<ResourceVersion>) -> Self {
        let done = Trailer { objects: 0, events: 0, marks: 0, sum: String::new() };
        let (counts, changes) = (HashMap::new(), Vec::new());
        Self { engine, options, last_event: head.floor, head, new_line, counts, changes, bytes: 0, done }
    }

    fn object(&mut self, line: ObjectLine) -> Result<(), &'static str> {
        let key = line.key.key();
        let version = self.version(&line.version)?;
        let json = line.object.get().as_bytes();
        let row = ObjectRow::new(version, line.version_at, line.labels.into_iter().collect(), json);
        // As strict as any later read of it.
        let row = ObjectRow::decode(row.raw)?;
        if let Some(reason) = row::key_refusal(&key) {
            return Err(reason);
        }
        for namespace in [None, key.namespace.as_deref()].iter().take(1 + usize::from(key.namespace.is_some())) {
            *self.counts.entry(counter_key(&key.resource, *namespace)).or_default() += 1;
        }
        self.push(Change { table: Table::Objects, key: row::encode_key(&key).into(), value: Some(row.raw) });
        self.done.objects += 1;
        Ok(())
    }

    fn event(&mut self, line: EventLine) -> Result<(), &'static str> {
        let event = EventParts {
            version: self.version(&line.version)?,
            kind: kind_of(&line.kind).ok_or("unknown kind of an event")?,
            key: line.key.key(),
            labels: line.labels.into_iter().collect(),
            previous_labels: line.previous_labels.map(|labels| labels.into_iter().collect()),
            object: Bytes::copy_from_slice(line.object.get().as_bytes()),
            time_ms: line.time_ms,
        };
        if event.version <= self.last_event {
            return Err("an event is not after the one before it");
        }
        self.last_event = event.version;
        self.done.events += 1;
        if self.new_line.is_none() {
            self.log(&event)?;
        }
        Ok(())
    }

    fn log(&mut self, event: &EventParts) -> Result<(), &'static str> {
        if self.head.is_full(self.options, event.time_ms) {
            let sealed = self.head.segments.last().map(Segment::change);
            sealed.into_iter().for_each(|change| self.push(change));
            let id = self.head.segments.len() as u64 + 1;
            self.engine.segment_create(id).map_err(|_| "a part of the log could not be created")?;
            self.head.segments.push(Segment::new(id, event.version, event.time_ms));
        }
        let segment = self.head.segments.last_mut().expect("there is one that is not full");
        let change = log_row(event, segment);
        self.push(change);
        Ok(())
    }

    fn mark(&mut self, line: MarkLine) -> Result<(), &'static str> {
        let value = BASE64.decode(&line.value).map_err(|_| "a mark is not base64")?;
        self.push(Change { table: Table::Meta, key: mark_key(&line.name).into(), value: Some(value.into()) });
        self.done.marks += 1;
        Ok(())
    }

    fn version(&self, text: &str) -> Result<ResourceVersion, &'static str> {
        let version = text.parse().map_err(|_| VERSION)?;
        if version > self.head.newest { Err("a version is newer than the header's newest") } else { Ok(version) }
    }

    fn push(&mut self, change: Change) {
        self.bytes += change.value.as_ref().map_or(0, Bytes::len);
        self.changes.push(change);
    }

    fn write_if_large(&mut self) -> Result<(), ToolError> {
        if self.bytes > BATCH_BYTES_MAX {
            self.bytes = 0;
            self.engine.write(std::mem::take(&mut self.changes), self.head.newest)?;
        }
        Ok(())
    }

    /// What the last line must say.
    fn trailer(&self, sum: String) -> Trailer {
        Trailer { sum, ..self.done.clone() }
    }

    fn finish(mut self) -> Result<Imported, ToolError> {
        if let Some(start) = self.new_line {
            self.head = Head::new(start);
        }
        let counters = std::mem::take(&mut self.counts).into_iter().map(|(key, count)| counter_row(key, count));
        self.changes.extend(counters);
        self.changes.extend(self.head.changes());
        self.engine.write(self.changes, self.head.newest)?;
        let Trailer { objects, marks, .. } = self.done;
        Ok(Imported { objects, events: self.head.window().events, marks, newest: self.head.newest })
    }
}
