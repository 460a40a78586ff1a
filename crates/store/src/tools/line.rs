//! The lines of an export, and how each is known to be whole.
//!
//! A line is the xxh3 of its JSON in sixteen hex digits, a space, and the
//! JSON: one `header`, then `object`s, `event`s and `mark`s, then one `trailer`
//! with their counts and a sum over the sums of all lines before it, so that a
//! line that is changed, lost, added or moved is noticed.

use std::collections::BTreeMap;
use std::io::{BufRead, Read, Write};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tidegate_model::{EventType, GroupResource, Labels, ObjectKey};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::ToolError;

pub const EXPORT_FORMAT: u32 = 1;
/// Twice what a transaction may have.
const LINE_BYTES_MAX: u64 = 256 << 20;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Line {
    Header(Header),
    Object(ObjectLine),
    Event(EventLine),
    Mark(MarkLine),
    Trailer(Trailer),
}

/// Versions are text, as everywhere outside of the store.
#[derive(Serialize, Deserialize)]
pub struct Header {
    pub format: u32,
    pub epoch: String,
    pub newest: String,
    /// The oldest cursor that the exported log can resume.
    pub oldest: String,
    pub objects: u64,
    pub events: u64,
}

#[derive(Serialize, Deserialize)]
pub struct ObjectLine {
    pub key: KeyLine,
    pub version: String,
    pub labels: BTreeMap<String, String>,
    pub version_at: usize,
    pub object: Box<RawValue>,
}

#[derive(Serialize, Deserialize)]
pub struct EventLine {
    pub key: KeyLine,
    pub version: String,
    pub kind: String,
    pub time_ms: u64,
    pub labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_labels: Option<BTreeMap<String, String>>,
    pub object: Box<RawValue>,
}

#[derive(Serialize, Deserialize)]
pub struct KeyLine {
    pub group: String,
    pub resource: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    pub name: String,
}

#[derive(Serialize, Deserialize)]
pub struct MarkLine {
    pub name: String,
    /// In base64: the store does not know what it is.
    pub value: String,
}

#[derive(Serialize, Deserialize, PartialEq, Eq, Clone, Debug)]
pub struct Trailer {
    pub objects: u64,
    pub events: u64,
    pub marks: u64,
    pub sum: String,
}

/// Writes lines and sums them up.
pub struct Writer<W> {
    stream: W,
    sum: Xxh3,
}

impl<W: Write> Writer<W> {
    pub fn new(stream: W) -> Self {
        Self { stream, sum: Xxh3::new() }
    }

    pub fn write(&mut self, line: &Line) -> Result<(), ToolError> {
        let failed = |source| ToolError::Stream { doing: "write", source };
        let json = serde_json::to_string(line).map_err(|error| failed(error.into()))?;
        let sum = format!("{:016x}", xxh3_64(json.as_bytes()));
        self.sum.update(sum.as_bytes());
        writeln!(self.stream, "{sum} {json}").map_err(failed)
    }

    pub fn sum(&self) -> String {
        format!("{:016x}", self.sum.digest())
    }

    pub fn finish(mut self) -> Result<(), ToolError> {
        self.stream.flush().map_err(|source| ToolError::Stream { doing: "write", source })
    }
}

/// Reads lines; each is checked before it is believed.
pub struct Reader<R> {
    stream: R,
    sum: Xxh3,
    pub line: u64,
    text: Vec<u8>,
}

impl<R: BufRead> Reader<R> {
    pub fn new(stream: R) -> Self {
        Self { stream, sum: Xxh3::new(), line: 0, text: Vec::new() }
    }

    /// `None` at the end of the stream.
    pub fn next(&mut self) -> Result<Option<Line>, ToolError> {
        self.text.clear();
        self.line += 1;
        let read = self.stream.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut self.text);
        if read.map_err(|source| ToolError::Stream { doing: "read", source })? == 0 {
            return Ok(None);
        }
        let text = self.text.strip_suffix(b"\n").ok_or_else(|| self.damaged("it is cut off"))?;
        let (sum, json) = text.split_at_checked(17).ok_or_else(|| self.damaged("it is too short"))?;
        if format!("{:016x} ", xxh3_64(json)).as_bytes() != sum {
            return Err(self.damaged("its sum is wrong"));
        }
        let line = serde_json::from_slice(json).map_err(|_| self.damaged("it is not a line of an export"))?;
        if !matches!(line, Line::Trailer(_)) {
            self.sum.update(&sum[..16]);
        }
        Ok(Some(line))
    }

    pub fn sum(&self) -> String {
        format!("{:016x}", self.sum.digest())
    }

    pub fn damaged(&self, reason: &'static str) -> ToolError {
        ToolError::Damaged { line: self.line, reason }
    }
}

impl From<&ObjectKey> for KeyLine {
    fn from(key: &ObjectKey) -> Self {
        let GroupResource { group, plural } = &key.resource;
        let namespace = key.namespace.as_deref().map(Into::into);
        Self { group: group.to_string(), resource: plural.to_string(), namespace, name: key.name.to_string() }
    }
}

impl KeyLine {
    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(GroupResource::new(&self.group, &self.resource), self.namespace.as_deref(), &self.name)
    }
}

pub fn label_map(labels: &Labels) -> BTreeMap<String, String> {
    labels.iter().map(|(key, value)| (key.into(), value.into())).collect()
}

pub fn kind_of(text: &str) -> Option<EventType> {
    [EventType::Added, EventType::Modified, EventType::Deleted].into_iter().find(|kind| kind.as_str() == text)
}
