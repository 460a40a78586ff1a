//! Reads everything and says what does not fit together.

use std::collections::HashSet;
use std::path::Path;

use bytes::Bytes;
use tidegate_model::{EventType, ResourceVersion};

use super::export::tell;
use super::{Progress, ToolError};
use crate::engine::{Engine, Snapshot, Table};
use crate::head::{Head, Segment};
use crate::recovery::count_objects;
use crate::row::{self, ObjectRow};
use crate::view::{MetaSort, decode_counter, meta_rows};
use crate::{EventParts, Options, StoreError, open};

/// Problems that are kept as text; all are counted.
const PROBLEMS_KEPT_MAX: usize = 100;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CheckReport {
    pub objects: u64,
    pub events: u64,
    pub problem_count: u64,
    /// The first of them.
    pub problems: Vec<String>,
}

/// Every row decodes; counters match; the log is whole, within its window, and
/// agrees with the objects.
pub fn check(dir: &Path, progress: &mut dyn FnMut(Progress)) -> Result<CheckReport, ToolError> {
    let engine = open::open_existing(dir, &Options::default())?;
    Ok(check_engine(&engine, progress)?)
}

/// As [`check`], of an engine that is open and idle.
pub fn check_engine(engine: &dyn Engine, progress: &mut dyn FnMut(Progress)) -> Result<CheckReport, StoreError> {
    let snapshot = engine.snapshot()?;
    let Some(head) = Head::load(&*snapshot)? else { return Ok(CheckReport::default()) };
    let mut check =
        Check { snapshot: &*snapshot, head: &head, report: CheckReport::default(), vanished: HashSet::new() };
    check.objects(progress);
    check.counters()?;
    check.log(progress);
    Ok(check.report)
}

struct Check<'a> {
    snapshot: &'a dyn Snapshot,
    head: &'a Head,
    report: CheckReport,
    /// Keys with an event that is no delete, and no object: a later delete
    /// must explain it.
    vanished: HashSet<Bytes>,
}

impl Check<'_> {
    fn problem(&mut self, text: String) {
        self.report.problem_count += 1;
        if self.report.problems.len() < PROBLEMS_KEPT_MAX {
            self.report.problems.push(text);
        }
    }

    fn objects(&mut self, progress: &mut dyn FnMut(Progress)) {
        for item in self.snapshot.range(Table::Objects, &[], &[0xff]) {
            self.report.objects += 1;
            tell(progress, "objects", self.report.objects, None);
            let outcome = item.map_err(|error| error.to_string()).and_then(|(key, value)| self.object(&key, value));
            if let Err(problem) = outcome {
                self.problem(problem);
            }
        }
    }

    fn object(&self, key: &[u8], value: Bytes) -> Result<(), String> {
        let name = row::decode_key(key).map_err(|reason| format!("a key: {reason}"))?;
        let fails = |reason: &str| format!("{name}: {reason}");
        let row = ObjectRow::decode(value).map_err(fails)?;
        let json: serde_json::Value = serde_json::from_slice(&row.json()).map_err(|_| fails("it is not JSON"))?;
        if json["metadata"]["resourceVersion"].as_str() != Some(&row.version.to_string()) {
            return Err(fails("its resourceVersion is not that of its row"));
        }
        if row.version > self.head.newest {
            return Err(fails("its version is ahead of the store"));
        }
        if row.version > self.head.floor && self.event(row.version).is_none() {
            return Err(fails("its newest change is missing in the log"));
        }
        Ok(())
    }

    fn event(&self, version: ResourceVersion) -> Option<Bytes> {
        let holds = |segment: &&Segment| segment.first <= version && version <= segment.last;
        let segment = self.head.segments.iter().find(holds)?;
        self.snapshot.get(Table::Log(segment.id), &row::version_key(version)).ok()?
    }

    fn counters(&mut self) -> Result<(), StoreError> {
        let mut counts = match count_objects(self.snapshot, |_| {}) {
            Ok(counts) => counts,
            // Reported already, by the object.
            Err(_) => return Ok(()),
        };
        for item in meta_rows(self.snapshot, MetaSort::Counters) {
            let (key, value) = item?;
            let counted = counts.remove(&key[..]).unwrap_or(0);
            if decode_counter(&value) != Ok(counted) {
                self.problem(format!("the counter {:?} is not {counted}", String::from_utf8_lossy(&key)));
            }
        }
        for key in counts.into_keys() {
            self.problem(format!("the counter {:?} is missing", String::from_utf8_lossy(&key)));
        }
        Ok(())
    }

    fn log(&mut self, progress: &mut dyn FnMut(Progress)) {
        let mut last = self.head.floor;
        for segment in &self.head.segments {
            let mut seen = Segment::new(segment.id, segment.first, segment.first_ms);
            for item in self.snapshot.range(Table::Log(segment.id), &[], &[0xff; 9]) {
                self.report.events += 1;
                tell(progress, "log", self.report.events, Some(self.head.window().events));
                match item.map_err(|error| error.to_string()).and_then(|(key, value)| decode(&key, &value)) {
                    Ok((event, bytes)) => {
                        seen.add(event.version, bytes, event.time_ms);
                        self.logged(&event, &mut last);
                    }
                    Err(problem) => self.problem(problem),
                }
            }
            if seen != *segment {
                self.problem(format!("segment {} of the log holds {seen:?}, its row says {segment:?}", segment.id));
            }
        }
        if last != self.head.newest {
            self.problem(format!("the log ends at {last}, the store at {}", self.head.newest));
        }
        for key in std::mem::take(&mut self.vanished) {
            let key = String::from_utf8_lossy(&key).replace('\0', "/");
            self.problem(format!("{key}: it is gone, but nothing deleted it"));
        }
    }

    fn logged(&mut self, event: &EventParts, last: &mut ResourceVersion) {
        let version = event.version;
        if version != last.next() {
            self.problem(format!("the log goes from {last} to {version}"));
        }
        *last = version;
        let encoded = Bytes::from(row::encode_key(&event.key));
        let object = self.snapshot.get(Table::Objects, &encoded).ok().flatten().map(ObjectRow::decode);
        match (object, event.kind) {
            (None, EventType::Deleted) => drop(self.vanished.remove(&encoded)),
            (None, _) => drop(self.vanished.insert(encoded)),
            (Some(Ok(row)), _) if row.version < version => {
                self.problem(format!("{}: it is at {}, the log at {version}", event.key, row.version));
            }
            (Some(Ok(row)), _) if row.version == version && row.json() != event.object => {
                self.problem(format!("{}: it is not what event {version} says", event.key));
            }
            // Newer than this event, or reported already.
            (Some(_), _) => {}
        }
    }
}

fn decode(key: &[u8], value: &Bytes) -> Result<(EventParts, usize), String> {
    let version = row::decode_version(key).map_err(|reason| format!("a version of the log: {reason}"))?;
    let event = row::decode_event(version, value).map_err(|reason| format!("event {version}: {reason}"))?;
    Ok((event, value.len()))
}
