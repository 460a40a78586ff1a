//! The guarantees of a watch, as functions over a recorded history.
//!
//! Writers record what was acknowledged, watchers what they were told, readers
//! what they saw. [`History::check`] knows nothing of the store: it derives
//! from the writes alone what each watcher should have seen.

use std::collections::{BTreeMap, HashMap};

use tidegate_model::{EventType, Labels, ObjectKey, ResourceVersion};
use tidegate_store::{Event, Selection, WatchItem};

#[derive(Default)]
pub struct History {
    pub commits: Vec<Commit>,
    pub streams: Vec<Stream>,
}

/// An acknowledged transaction.
#[derive(Clone, Debug)]
pub struct Commit {
    pub writes: Vec<(ResourceVersion, Written)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    pub key: ObjectKey,
    /// `None` is a delete.
    pub labels: Option<Labels>,
}

/// What one watcher was told, across all of its connections.
pub struct Stream {
    pub name: String,
    pub selection: Selection,
    /// Where it began, and up to where it has been told everything.
    pub after: ResourceVersion,
    pub until: ResourceVersion,
    pub told: Vec<Told>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    Event(ResourceVersion, EventType),
    Bookmark(ResourceVersion),
    /// The connection ended, and the next one began at this version.
    Resumed(ResourceVersion),
}

impl Stream {
    pub fn new(name: impl Into<String>, selection: Selection, after: ResourceVersion) -> Self {
        Self { name: name.into(), selection, after, until: after, told: Vec::new() }
    }

    pub fn record(&mut self, items: &[WatchItem]) {
        self.told.extend(items.iter().map(|item| match item {
            WatchItem::Event { kind, event } => Told::Event(event.version, *kind),
            WatchItem::Bookmark { version, .. } => Told::Bookmark(*version),
        }));
    }
}

impl Written {
    pub fn of(event: &Event) -> Self {
        let labels = (event.kind != EventType::Deleted).then(|| event.labels.clone());
        Self { key: event.key.clone(), labels }
    }
}

impl History {
    /// All violations, each naming the watcher and the place.
    pub fn check(&self) -> Result<(), String> {
        let mut violations = self.atomic();
        for stream in &self.streams {
            violations.extend(ordered(stream));
            violations.extend(bookmarkable(stream));
            violations.extend(self.complete(stream));
        }
        if violations.is_empty() { Ok(()) } else { Err(violations.join("\n")) }
    }

    /// No other change has its place between those of one transaction.
    fn atomic(&self) -> Vec<String> {
        let owners = self.commits.iter().enumerate();
        let mut line: Vec<_> = owners
            .flat_map(|(owner, commit)| commit.writes.iter().map(move |(version, _)| (*version, owner)))
            .collect();
        line.sort();
        let mut violations = Vec::new();
        let mut ended: HashMap<usize, ResourceVersion> = HashMap::new();
        for pair in line.windows(2) {
            let ((at, owner), (next_at, next)) = (pair[0], pair[1]);
            if at == next_at {
                violations.push(format!("atomic: {at} was minted twice"));
            }
            if owner != next {
                ended.insert(owner, at);
            }
            if let Some(end) = ended.get(&next) {
                violations.push(format!("atomic: {next_at} continues a transaction that ended at {end}"));
            }
        }
        violations
    }

    /// Exactly the events that its selection makes of the writes: no gap, no
    /// repetition, the right kind.
    fn complete(&self, stream: &Stream) -> Option<String> {
        let told: Vec<_> = stream.told.iter().filter_map(|told| told.event()).collect();
        let expected = self.expected(stream);
        if told == expected {
            return None;
        }
        let at = told.iter().zip(&expected).position(|(told, expected)| told != expected);
        let at = at.unwrap_or(told.len().min(expected.len()));
        let around = |events: &[_]| format!("{:?}", &events[at.min(events.len())..(at + 3).min(events.len())]);
        let (told_there, expected_there) = (around(&told), around(&expected));
        Some(format!(
            "complete: {} was told {} events instead of {}; at {at}: {told_there} instead of {expected_there}",
            stream.name,
            told.len(),
            expected.len()
        ))
    }

    fn expected(&self, stream: &Stream) -> Vec<(ResourceVersion, EventType)> {
        let writes: BTreeMap<_, _> = self
            .commits
            .iter()
            .flat_map(|commit| commit.writes.iter().map(|(version, written)| (*version, written)))
            .collect();
        let mut state: HashMap<&ObjectKey, Labels> = HashMap::new();
        let mut events = Vec::new();
        for (version, Written { key, labels }) in writes {
            let selects = |labels: &Labels| selects(&stream.selection, key, labels);
            let (before, now) = (state.get(key).is_some_and(selects), labels.as_ref().is_some_and(selects));
            let kind = match (before, now) {
                (false, true) => Some(EventType::Added),
                (true, true) => Some(EventType::Modified),
                (true, false) => Some(EventType::Deleted),
                (false, false) => None,
            };
            let is_told = version > stream.after && version <= stream.until;
            events.extend(kind.filter(|_| is_told).map(|kind| (version, kind)));
            match labels {
                Some(labels) => state.insert(key, labels.clone()),
                None => state.remove(key),
            };
        }
        events
    }
}

impl Told {
    fn event(self) -> Option<(ResourceVersion, EventType)> {
        if let Self::Event(version, kind) = self { Some((version, kind)) } else { None }
    }

    fn version(self) -> ResourceVersion {
        let (Self::Event(version, _) | Self::Bookmark(version) | Self::Resumed(version)) = self;
        version
    }
}

/// Each event is after the one before it.
fn ordered(stream: &Stream) -> Vec<String> {
    let events: Vec<_> = stream.told.iter().filter_map(|told| told.event()).collect();
    let back = events.windows(2).filter(|pair| pair[0].0 >= pair[1].0);
    back.map(|pair| format!("ordered: {} was told {:?} and then {:?}", stream.name, pair[0], pair[1])).collect()
}

/// Nothing at or before a bookmark, or a version resumed from, comes after it.
fn bookmarkable(stream: &Stream) -> Vec<String> {
    let mut promised = stream.after;
    let mut violations = Vec::new();
    for told in &stream.told {
        let is_kept = match told {
            Told::Event(version, _) => *version > promised,
            Told::Bookmark(version) | Told::Resumed(version) => *version >= promised,
        };
        if !is_kept {
            violations.push(format!("bookmarkable: {} was told {told:?} after {promised}", stream.name));
        }
        promised = promised.max(told.version());
    }
    violations
}

fn selects(selection: &Selection, key: &ObjectKey, labels: &Labels) -> bool {
    selection.resource == key.resource
        && selection.namespace.as_ref().is_none_or(|namespace| Some(namespace) == key.namespace.as_ref())
        && selection.name.as_ref().is_none_or(|name| *name == key.name)
        && selection.labels.matches(labels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::{key, labels, select};

    fn at(offset: u64) -> ResourceVersion {
        ResourceVersion::from_raw(ResourceVersion::line_start(1_763_240_000).raw() + offset)
    }

    fn history(told: &[Told]) -> Result<(), String> {
        let put = |at_version, path: &str, text: &str| {
            (at(at_version), Written { key: key(path), labels: Some(labels(text)) })
        };
        let commits = vec![
            Commit { writes: vec![put(1, "a/1", "x=1"), put(2, "a/2", "x=1")] },
            Commit { writes: vec![put(3, "a/1", "x=2")] },
            Commit { writes: vec![(at(4), Written { key: key("a/2"), labels: None })] },
        ];
        let stream = Stream { until: at(4), told: told.to_vec(), ..Stream::new("w", select("x=1"), at(0)) };
        History { commits, streams: vec![stream] }.check()
    }

    /// A checker that accepts everything checks nothing.
    #[test]
    fn each_violation_is_found() {
        use EventType::{Added, Deleted, Modified};
        let right = [
            Told::Event(at(1), Added),
            Told::Event(at(2), Added),
            Told::Bookmark(at(2)),
            Told::Resumed(at(2)),
            Told::Event(at(3), Deleted),
            Told::Event(at(4), Deleted),
        ];
        assert_eq!(history(&right), Ok(()));
        let changed = |change: fn(&mut Vec<Told>)| {
            let mut told = right.to_vec();
            change(&mut told);
            history(&told).unwrap_err()
        };
        assert!(changed(|told| told.swap(0, 1)).contains("ordered"));
        assert!(changed(|told| told.insert(1, told[0])).contains("ordered"));
        assert!(changed(|told| told.truncate(4)).contains("complete"));
        assert!(changed(|told| told.truncate(5)).contains("complete"));
        assert!(changed(|told| told[4] = Told::Event(at(3), Modified)).contains("complete"));
        assert!(changed(|told| told[2] = Told::Bookmark(at(3))).contains("bookmarkable"));
        assert!(changed(|told| told.insert(5, Told::Resumed(at(2)))).contains("bookmarkable"));
    }

    #[test]
    fn a_torn_transaction_is_found() {
        let write = |offset| (at(offset), Written { key: key("a/1"), labels: None });
        let commits = vec![Commit { writes: vec![write(1), write(3)] }, Commit { writes: vec![write(2)] }];
        let torn = History { commits, streams: Vec::new() }.check().unwrap_err();
        assert!(torn.contains("atomic"), "{torn}");
    }
}
