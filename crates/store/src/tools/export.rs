//! A store as one stream of text: everything but its engine.

use std::io::{BufWriter, Write};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use serde_json::value::RawValue;

use super::line::{EXPORT_FORMAT, EventLine, Header, Line, MarkLine, ObjectLine, Trailer, Writer, label_map};
use super::{PROGRESS_ROWS, Progress, ToolError};
use crate::engine::{Engine, Table};
use crate::head::Head;
use crate::row::{self, ObjectRow, corrupt};
use crate::view::{MetaSort, decode_counter, meta_rows};
use crate::{Options, StoreError, View, line_start, open};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exported {
    pub objects: u64,
    pub events: u64,
    pub marks: u64,
}

/// Writes objects, log and marks with their versions and the epoch, so that
/// clients of a store that is imported from it resume where they were.
pub fn export(dir: &Path, stream: impl Write, progress: &mut dyn FnMut(Progress)) -> Result<Exported, ToolError> {
    let engine = open::open_existing(dir, &Options::default())?;
    let snapshot = engine.snapshot()?;
    let head = Head::load(&*snapshot)?.map_or_else(|| line_start::first(&Options::default()).map(Head::new), Ok)?;
    let view = View::new(head, snapshot);
    let mut writer = Writer::new(BufWriter::new(stream));
    writer.write(&header(&view)?)?;
    let objects = export_objects(&view, &mut writer, progress)?;
    let events = export_events(&view, &mut writer, progress)?;
    let marks = export_marks(&view, &mut writer)?;
    let sum = writer.sum();
    writer.write(&Line::Trailer(Trailer { objects, events, marks, sum }))?;
    writer.finish()?;
    Ok(Exported { objects, events, marks })
}

fn header(view: &View) -> Result<Line, ToolError> {
    let head = view.head();
    Ok(Line::Header(Header {
        format: EXPORT_FORMAT,
        epoch: head.epoch.to_string(),
        newest: head.newest.to_string(),
        oldest: head.floor.to_string(),
        objects: object_count(view)?,
        events: head.window().events,
    }))
}

/// By the counters of whole resources, whose keys have two separators.
fn object_count(view: &View) -> Result<u64, StoreError> {
    let mut count = 0;
    for item in meta_rows(view.snapshot(), MetaSort::Counters) {
        let (key, value) = item?;
        if key.iter().filter(|byte| **byte == 0).count() == 2 {
            count += decode_counter(&value).map_err(corrupt("a counter"))?;
        }
    }
    Ok(count)
}

fn export_objects<W: Write>(
    view: &View,
    writer: &mut Writer<W>,
    progress: &mut dyn FnMut(Progress),
) -> Result<u64, ToolError> {
    let (mut done, total) = (0, object_count(view)?);
    for item in view.snapshot().range(Table::Objects, &[], &[0xff]) {
        let (key, value) = item?;
        let key = row::decode_key(&key).map_err(corrupt("a key"))?;
        let row = ObjectRow::decode(value).map_err(corrupt(key.to_string()))?;
        writer.write(&Line::Object(ObjectLine {
            key: (&key).into(),
            version: row.version.to_string(),
            labels: label_map(&row.labels),
            version_at: row.version_at,
            object: raw(&row.json()).map_err(corrupt(key.to_string()))?,
        }))?;
        done += 1;
        tell(progress, "objects", done, Some(total));
    }
    Ok(done)
}

fn export_events<W: Write>(
    view: &View,
    writer: &mut Writer<W>,
    progress: &mut dyn FnMut(Progress),
) -> Result<u64, ToolError> {
    let mut done = 0;
    for item in view.log(view.head().floor) {
        let (key, value) = item?;
        let version = row::decode_version(&key).map_err(corrupt("a version of the log"))?;
        let place = || corrupt(format!("event {version}"));
        let event = row::decode_event(version, &value).map_err(place())?;
        writer.write(&Line::Event(EventLine {
            key: (&event.key).into(),
            version: version.to_string(),
            kind: event.kind.to_string(),
            time_ms: event.time_ms,
            labels: label_map(&event.labels),
            previous_labels: event.previous_labels.as_ref().map(label_map),
            object: raw(&event.object).map_err(place())?,
        }))?;
        done += 1;
        tell(progress, "log", done, Some(view.window().events));
    }
    Ok(done)
}

fn export_marks<W: Write>(view: &View, writer: &mut Writer<W>) -> Result<u64, ToolError> {
    let mut done = 0;
    for item in meta_rows(view.snapshot(), MetaSort::Marks) {
        let (key, value) = item?;
        let name = String::from_utf8_lossy(key.get(2..).unwrap_or_default()).into_owned();
        writer.write(&Line::Mark(MarkLine { name, value: BASE64.encode(&value) }))?;
        done += 1;
    }
    Ok(done)
}

/// The bytes as they are: whatever reads them back finds the same ones.
fn raw(json: &Bytes) -> Result<Box<RawValue>, &'static str> {
    let text = std::str::from_utf8(json).map_err(|_| "an object is not UTF-8")?;
    RawValue::from_string(text.into()).map_err(|_| "an object is not JSON")
}

pub(super) fn tell(progress: &mut dyn FnMut(Progress), step: &str, done: u64, total: Option<u64>) {
    if done.is_multiple_of(PROGRESS_ROWS) || Some(done) == total {
        progress(Progress { step: step.into(), done, total });
    }
}
