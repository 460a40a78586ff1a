//! The bytes of the store's rows.
//!
//! Invariant: decoding never panics and never trusts a length, because rows
//! come from a disk. Integers are big-endian where they are keys, so that rows
//! sort as numbers do.

use bytes::Bytes;
use tidegate_model::{EventType, GroupResource, Labels, ObjectKey, ResourceVersion};

use crate::event::EventParts;
use crate::{StoreError, StoredObject};

/// A key is group, plural, namespace and name with a NUL between them; their
/// own limits (253 + 63 + 63 + 253 bytes) leave ample room.
pub const KEY_BYTES_MAX: usize = 1024;

const OBJECT_FORMAT: u8 = 1;
const EVENT_FORMAT: u8 = 1;
const SEPARATOR: u8 = 0;

/// An object row, decoded as far as its header.
#[derive(Clone, Debug)]
pub struct ObjectRow {
    pub version: ResourceVersion,
    /// Where the version's digits are in the JSON, so that a delete can stamp
    /// the last state again.
    pub version_at: usize,
    pub labels: Labels,
    /// The whole row; the JSON is its tail.
    pub raw: Bytes,
    json_at: usize,
}

impl ObjectRow {
    pub fn new(version: ResourceVersion, version_at: usize, labels: Labels, json: &[u8]) -> Self {
        let mut raw = Vec::with_capacity(64 + json.len());
        raw.push(OBJECT_FORMAT);
        raw.extend(version.raw().to_be_bytes());
        push_len(&mut raw, version_at);
        push_labels(&mut raw, &labels);
        let json_at = raw.len();
        raw.extend(json);
        Self { version, version_at, labels, raw: raw.into(), json_at }
    }

    pub fn decode(raw: Bytes) -> Result<Self, &'static str> {
        let mut reader = Reader { rest: &raw };
        if reader.byte()? != OBJECT_FORMAT {
            return Err("unknown format of an object row");
        }
        let version = reader.version()?;
        let version_at = reader.len()?;
        let labels = reader.labels()?;
        let json_at = raw.len() - reader.rest.len();
        if version_at + ResourceVersion::DIGITS > reader.rest.len() {
            return Err("the place of the version is outside of the object");
        }
        Ok(Self { version, version_at, labels, raw, json_at })
    }

    pub fn json(&self) -> Bytes {
        self.raw.slice(self.json_at..)
    }

    /// The last state at the version of its delete.
    pub fn restamped(&self, version: ResourceVersion) -> Bytes {
        let mut json = self.raw[self.json_at..].to_vec();
        json[self.version_at..self.version_at + ResourceVersion::DIGITS]
            .copy_from_slice(version.to_string().as_bytes());
        json.into()
    }

    pub fn into_object(self, key: ObjectKey) -> StoredObject {
        StoredObject { key, version: self.version, json: self.json(), labels: self.labels }
    }
}

pub fn encode_event(event: &EventParts) -> Bytes {
    let mut raw = Vec::with_capacity(128 + event.object.len());
    raw.push(EVENT_FORMAT);
    raw.push(match event.kind {
        EventType::Added => 1,
        EventType::Modified => 2,
        EventType::Deleted => 3,
    });
    raw.extend(event.time_ms.to_be_bytes());
    let key = encode_key(&event.key);
    push_len(&mut raw, key.len());
    raw.extend(&key);
    push_labels(&mut raw, &event.labels);
    raw.push(u8::from(event.previous_labels.is_some()));
    if let Some(previous) = &event.previous_labels {
        push_labels(&mut raw, previous);
    }
    raw.extend(&event.object);
    raw.into()
}

/// The object's key in an event row: what a replay looks at before it decodes.
pub fn event_key(raw: &[u8]) -> Result<&[u8], &'static str> {
    let mut reader = Reader { rest: raw };
    reader.event_head()?;
    reader.block()
}

pub fn decode_event(version: ResourceVersion, raw: &Bytes) -> Result<EventParts, &'static str> {
    let mut reader = Reader { rest: raw };
    let (kind, time_ms) = reader.event_head()?;
    let key = decode_key(reader.block()?)?;
    let labels = reader.labels()?;
    let previous_labels = match reader.byte()? {
        0 => None,
        _ => Some(reader.labels()?),
    };
    let object = raw.slice(raw.len() - reader.rest.len()..);
    Ok(EventParts { version, kind, key, labels, previous_labels, object, time_ms })
}

pub fn encode_key(key: &ObjectKey) -> Vec<u8> {
    let mut bytes = resource_prefix(&key.resource, Some(key.namespace.as_deref().unwrap_or_default()));
    bytes.extend(key.name.as_bytes());
    bytes
}

/// All keys of a resource, or of one of its namespaces, begin with this.
pub fn resource_prefix(resource: &GroupResource, namespace: Option<&str>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(96);
    for part in [&*resource.group, &*resource.plural].into_iter().chain(namespace) {
        bytes.extend(part.as_bytes());
        bytes.push(SEPARATOR);
    }
    bytes
}

/// The first key after all that begin with `prefix`, which a separator ends.
pub fn prefix_end(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    if let Some(last) = end.last_mut() {
        *last = SEPARATOR + 1;
    }
    end
}

pub fn decode_key(bytes: &[u8]) -> Result<ObjectKey, &'static str> {
    let text = std::str::from_utf8(bytes).map_err(|_| "a key is not UTF-8")?;
    let mut parts = text.split('\0');
    let (Some(group), Some(plural), Some(namespace), Some(name), None) =
        (parts.next(), parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err("a key does not have four parts");
    };
    Ok(ObjectKey::new(GroupResource::new(group, plural), (!namespace.is_empty()).then_some(namespace), name))
}

/// As [`decode_key`], for a key that begins with `prefix`, which is that of
/// `resource`: shares its text, because a list has many objects of one resource.
pub fn decode_key_in(resource: &GroupResource, prefix: &[u8], bytes: &[u8]) -> Result<ObjectKey, &'static str> {
    let rest = bytes.strip_prefix(prefix).ok_or("a key is outside of its resource")?;
    let text = std::str::from_utf8(rest).map_err(|_| "a key is not UTF-8")?;
    let (namespace, name) = text.split_once('\0').ok_or("a key does not have four parts")?;
    Ok(ObjectKey::new(resource.clone(), (!namespace.is_empty()).then_some(namespace), name))
}

/// Why the key cannot be a row's key.
pub fn key_refusal(key: &ObjectKey) -> Option<&'static str> {
    let parts = [&key.resource.group, &key.resource.plural, &key.name];
    let parts = || parts.into_iter().chain(&key.namespace);
    match () {
        () if parts().any(|part| part.contains('\0')) => Some("it contains a NUL"),
        () if key.name.is_empty() || key.resource.plural.is_empty() => Some("its name or resource is empty"),
        () if key.namespace.as_deref() == Some("") => Some("its namespace is empty: leave it out for cluster scope"),
        () if parts().map(|part| part.len() + 1).sum::<usize>() > KEY_BYTES_MAX => Some("it is longer than 1024 bytes"),
        () => None,
    }
}

pub fn version_key(version: ResourceVersion) -> Bytes {
    Bytes::copy_from_slice(&version.raw().to_be_bytes())
}

pub fn decode_version(bytes: &[u8]) -> Result<ResourceVersion, &'static str> {
    let raw: [u8; 8] = bytes.try_into().map_err(|_| "a version is not eight bytes")?;
    // The text form knows the line's bounds.
    format!("{:016}", u64::from_be_bytes(raw)).parse().map_err(|_| "a version is off the number line")
}

pub fn corrupt(place: impl Into<String>) -> impl FnOnce(&'static str) -> StoreError {
    move |reason| StoreError::Corrupt { place: place.into(), reason }
}

fn push_len(raw: &mut Vec<u8>, len: usize) {
    raw.extend(u32::try_from(len).expect("a transaction is far below 4 GiB").to_be_bytes());
}

fn push_labels(raw: &mut Vec<u8>, labels: &Labels) {
    push_len(raw, labels.len());
    for text in labels.iter().flat_map(|(key, value)| [key, value]) {
        push_len(raw, text.len());
        raw.extend(text.as_bytes());
    }
}

pub struct Reader<'a> {
    pub rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], &'static str> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or("the row is too short")?;
        self.rest = rest;
        Ok(taken)
    }

    pub fn byte(&mut self) -> Result<u8, &'static str> {
        Ok(self.take(1)?[0])
    }

    pub fn u64(&mut self) -> Result<u64, &'static str> {
        Ok(u64::from_be_bytes(self.take(8)?.try_into().expect("eight bytes were taken")))
    }

    pub fn version(&mut self) -> Result<ResourceVersion, &'static str> {
        decode_version(self.take(8)?)
    }

    fn len(&mut self) -> Result<usize, &'static str> {
        Ok(u32::from_be_bytes(self.take(4)?.try_into().expect("four bytes were taken")) as usize)
    }

    fn block(&mut self) -> Result<&'a [u8], &'static str> {
        let len = self.len()?;
        self.take(len)
    }

    fn text(&mut self) -> Result<&'a str, &'static str> {
        std::str::from_utf8(self.block()?).map_err(|_| "a label is not UTF-8")
    }

    fn labels(&mut self) -> Result<Labels, &'static str> {
        let count = self.len()?;
        // Not trusted as a capacity: each pair is read before the next.
        (0..count).map(|_| Ok((self.text()?, self.text()?))).collect()
    }

    fn event_head(&mut self) -> Result<(EventType, u64), &'static str> {
        if self.byte()? != EVENT_FORMAT {
            return Err("unknown format of an event row");
        }
        let kind = match self.byte()? {
            1 => EventType::Added,
            2 => EventType::Modified,
            3 => EventType::Deleted,
            _ => return Err("unknown kind of an event"),
        };
        Ok((kind, self.u64()?))
    }
}
