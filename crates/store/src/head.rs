//! The head: where the number line is, and which part of the log is kept.
//!
//! Invariant: the head's rows are written in every batch that mints versions,
//! so what a snapshot holds and what its head says never differ.

use bytes::Bytes;
use tidegate_model::ResourceVersion;

use crate::StoreError;
use crate::engine::{Change, SegmentId, Snapshot, Table};
use crate::options::Options;
use crate::row::{Reader, corrupt};

/// No other row has this key: objects' keys contain NULs, versions are eight
/// bytes, and the rows beside it in `Meta` begin with a letter and a slash.
/// The journal's scan looks for it.
pub const HEAD_KEY: &[u8] = b"head";
const SEGMENT_PREFIX: &[u8] = b"s/";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The first version of the line: its epoch.
    pub epoch: ResourceVersion,
    pub newest: ResourceVersion,
    /// The oldest cursor from which nothing is missing.
    pub floor: ResourceVersion,
    /// Oldest first; the last one is being filled.
    pub segments: Vec<Segment>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub id: SegmentId,
    pub first: ResourceVersion,
    pub last: ResourceVersion,
    pub events: u64,
    pub bytes: u64,
    pub first_ms: u64,
    pub last_ms: u64,
}

/// What is kept of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The oldest cursor that can be resumed.
    pub oldest: ResourceVersion,
    pub newest: ResourceVersion,
    pub events: u64,
    pub bytes: u64,
}

impl Head {
    /// A line that begins at `start`; nothing has been minted on it.
    pub fn new(start: ResourceVersion) -> Self {
        Self { epoch: start, newest: start, floor: start, segments: Vec::new() }
    }

    /// `None` in an engine that was never written to.
    pub fn load(snapshot: &dyn Snapshot) -> Result<Option<Self>, StoreError> {
        let Some(row) = snapshot.get(Table::Meta, HEAD_KEY)? else { return Ok(None) };
        let mut head = Self::decode(&row).map_err(corrupt("the head"))?;
        for item in snapshot.range(Table::Meta, SEGMENT_PREFIX, b"s0") {
            let (key, value) = item?;
            head.segments.push(Segment::decode(&key, &value).map_err(corrupt("a segment of the log"))?);
        }
        Ok(Some(head))
    }

    /// The rows that change when `newest` and the segment being filled do.
    pub fn changes(&self) -> Vec<Change> {
        let active = self.segments.last().map(Segment::change);
        let fields = [self.epoch, self.newest, self.floor];
        let row: Vec<u8> = fields.iter().flat_map(|version| version.raw().to_be_bytes()).collect();
        let head = Change { table: Table::Meta, key: Bytes::from_static(HEAD_KEY), value: Some(row.into()) };
        [head].into_iter().chain(active).collect()
    }

    fn decode(row: &[u8]) -> Result<Self, &'static str> {
        let mut reader = Reader { rest: row };
        let (epoch, newest, floor) = (reader.version()?, reader.version()?, reader.version()?);
        Ok(Self { epoch, newest, floor, segments: Vec::new() })
    }

    /// From a head row as the journal holds it.
    pub fn newest_of(row: &[u8]) -> Option<ResourceVersion> {
        Self::decode(row).ok().map(|head| head.newest)
    }

    pub fn window(&self) -> Window {
        let sum = |field: fn(&Segment) -> u64| self.segments.iter().map(field).sum();
        Window { oldest: self.floor, newest: self.newest, events: sum(|s| s.events), bytes: sum(|s| s.bytes) }
    }

    /// Whether the next events belong into a new segment. One without events
    /// has room, however old it is.
    pub fn is_full(&self, options: &Options, now_ms: u64) -> bool {
        let Some(active) = self.segments.last() else { return true };
        if active.events == 0 {
            return false;
        }
        let pieces = u64::from(options.segments.max(1));
        let age_ms = now_ms.saturating_sub(active.first_ms);
        active.events >= (options.window.events / pieces).max(1)
            || active.bytes >= (options.window.bytes / pieces).max(1)
            || u128::from(age_ms) >= (options.window.age.as_millis() / u128::from(pieces)).max(1)
    }

    /// Whether something is outside of the window.
    pub fn is_trimmable(&self, options: &Options, now_ms: u64) -> bool {
        self.is_past(options, now_ms) || self.expired_segments(options, now_ms) > 0
    }

    /// Whether every event is older than the window, those of the segment that
    /// is being filled among them: then it must be sealed to be dropped.
    pub fn is_past(&self, options: &Options, now_ms: u64) -> bool {
        self.segments.last().is_some_and(|active| active.events > 0 && active.is_older(options, now_ms))
    }

    /// How many of the oldest segments are outside of the window. The one that
    /// is being filled stays, whatever its size: sealing it is another step.
    pub fn expired_segments(&self, options: &Options, now_ms: u64) -> usize {
        let Window { mut events, mut bytes, .. } = self.window();
        let limits = options.window;
        let sealed = self.segments.len().saturating_sub(1);
        let is_expired = |segment: &&Segment| {
            let expired = events > limits.events || bytes > limits.bytes || segment.is_older(options, now_ms);
            events -= segment.events;
            bytes -= segment.bytes;
            expired
        };
        self.segments[..sealed].iter().take_while(is_expired).count()
    }

    /// Forgets the oldest `count` segments; returns them and the rows to change.
    pub fn drop_segments(&mut self, count: usize) -> (Vec<SegmentId>, Vec<Change>) {
        let dropped: Vec<Segment> = self.segments.drain(..count).collect();
        if let Some(last) = dropped.last() {
            self.floor = self.floor.max(last.last);
        }
        let removals = dropped.iter().map(|s| Change { value: None, ..s.change() });
        let changes = self.changes().into_iter().chain(removals).collect();
        (dropped.iter().map(|segment| segment.id).collect(), changes)
    }
}

impl Segment {
    pub fn new(id: SegmentId, first: ResourceVersion, now_ms: u64) -> Self {
        Self { id, first, last: first, events: 0, bytes: 0, first_ms: now_ms, last_ms: now_ms }
    }

    /// Whether even its last event is older than the window.
    fn is_older(&self, options: &Options, now_ms: u64) -> bool {
        u128::from(now_ms.saturating_sub(self.last_ms)) > options.window.age.as_millis()
    }

    pub fn add(&mut self, version: ResourceVersion, bytes: usize, time_ms: u64) {
        if self.events == 0 {
            // It may have been waiting for its first event.
            self.first_ms = time_ms;
        }
        self.last = version;
        self.events += 1;
        self.bytes += bytes as u64;
        self.last_ms = time_ms;
    }

    pub fn change(&self) -> Change {
        let key: Vec<u8> = SEGMENT_PREFIX.iter().copied().chain(self.id.to_be_bytes()).collect();
        let fields = [self.first.raw(), self.last.raw(), self.events, self.bytes, self.first_ms, self.last_ms];
        let row: Vec<u8> = fields.iter().flat_map(|field| field.to_be_bytes()).collect();
        Change { table: Table::Meta, key: key.into(), value: Some(row.into()) }
    }

    fn decode(key: &[u8], row: &[u8]) -> Result<Self, &'static str> {
        let mut id = Reader { rest: key.get(SEGMENT_PREFIX.len()..).unwrap_or_default() };
        let mut reader = Reader { rest: row };
        Ok(Self {
            id: id.u64()?,
            first: reader.version()?,
            last: reader.version()?,
            events: reader.u64()?,
            bytes: reader.u64()?,
            first_ms: reader.u64()?,
            last_ms: reader.u64()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WindowLimits;
    use std::time::Duration;

    fn head(segments: &[(u64, u64, u64)]) -> Head {
        let mut head = Head::new(ResourceVersion::line_start(1_763_240_000));
        for (id, &(events, bytes, last_ms)) in (0..).zip(segments) {
            let mut segment = Segment::new(id, head.newest.next(), last_ms);
            for _ in 0..events {
                head.newest = head.newest.next();
                segment.add(head.newest, (bytes / events.max(1)) as usize, last_ms);
            }
            head.segments.push(segment);
        }
        head
    }

    #[test]
    fn whole_segments_leave_by_count_bytes_and_age() {
        let window = WindowLimits { events: 100, bytes: 1000, age: Duration::from_millis(500) };
        let options = Options { window, ..Options::default() };
        for (segments, expired) in [
            (&[(10, 10, 1000)][..], 0),
            (&[(60, 60, 1000), (40, 40, 1000)], 0),
            (&[(60, 60, 1000), (40, 40, 1000), (1, 1, 1000)], 1),
            (&[(1, 1, 1000), (60, 60, 1000), (60, 60, 1000)], 2),
            (&[(10, 600, 1000), (10, 600, 1000)], 1),
            (&[(10, 10, 400), (10, 10, 499), (10, 10, 500), (10, 10, 1000)], 2),
            // The one that is being filled stays.
            (&[(500, 5000, 0)], 0),
        ] {
            assert_eq!(head(segments).expired_segments(&options, 1000), expired, "{segments:?}");
        }
    }

    #[test]
    fn the_last_segment_is_past_by_age_alone() {
        let window = WindowLimits { events: 100, bytes: 1000, age: Duration::from_millis(500) };
        let options = Options { window, ..Options::default() };
        for (segments, is_past) in [
            (&[][..], false),
            (&[(10, 10, 500)], false),
            (&[(10, 10, 499)], true),
            (&[(500, 5000, 600)], false),
            (&[(10, 10, 100), (10, 10, 600)], false),
            // Without events there is nothing to drop.
            (&[(10, 10, 100), (0, 0, 100)], false),
        ] {
            assert_eq!(head(segments).is_past(&options, 1000), is_past, "{segments:?}");
        }
    }

    #[test]
    fn an_empty_segment_has_room_and_begins_with_its_first_event() {
        let options = Options::default();
        let mut head = head(&[(0, 0, 1000)]);
        let later_ms = 1000 + 10 * options.window.age.as_millis() as u64;
        assert!(!head.is_full(&options, later_ms));
        let version = head.newest.next();
        let segment = head.segments.last_mut().unwrap();
        segment.add(version, 1, later_ms);
        assert_eq!((segment.first_ms, segment.last_ms), (later_ms, later_ms));
        assert!(!head.is_full(&options, later_ms));
    }

    #[test]
    fn dropping_raises_the_floor_to_the_last_dropped_event() {
        let mut head = head(&[(10, 10, 0), (10, 10, 0)]);
        let last = head.segments[0].last;
        let (dropped, _) = head.drop_segments(1);
        assert_eq!((dropped, head.floor, head.window().events), (vec![0], last, 10));
    }
}
