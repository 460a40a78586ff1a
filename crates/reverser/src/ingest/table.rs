//! The version before: what the watch knew of each object.

use std::collections::HashMap;
use std::sync::Arc;

use tidegate_model::mirror::ResourceKey;

use super::prepare::Prepared;
use crate::attribution::{Base, Operation};
use crate::change::Version;

/// About 200 bytes with its key: 50,000 objects are 10 MiB.
#[derive(Debug)]
struct Entry {
    uid: Arc<str>,
    version: Arc<str>,
    hash: u64,
    /// Whether it is in Git: neither being deleted nor left out.
    is_present: bool,
    /// The list that saw it last.
    list: u64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transition {
    pub operation: Operation,
    pub base: Base,
}

#[derive(Debug, Default)]
pub struct Table {
    entries: HashMap<ResourceKey, Entry>,
    list: u64,
}

impl Table {
    pub fn start_list(&mut self) {
        self.list += 1;
    }

    /// What the list did not show is gone.
    pub fn end_list(&mut self) -> Vec<(ResourceKey, Version, Transition)> {
        let list = self.list;
        let gone: Vec<_> =
            self.entries.iter().filter(|(_, entry)| entry.list < list).map(|(key, _)| key.clone()).collect();
        let removed = gone.into_iter().filter_map(|key| Some((self.entries.remove(&key)?, key)));
        let present = removed.filter(|(entry, _)| entry.is_present);
        present
            .map(|(entry, key)| {
                let base = Base::Since(Some(entry.version.to_string()));
                let version = Version { uid: entry.uid, resource_version: entry.version, field_manager: None };
                (key, version, Transition { operation: Operation::Delete, base })
            })
            .collect()
    }

    /// An object of a list: events between may have been skipped.
    pub fn listed(&mut self, object: &Prepared) -> Option<Transition> {
        let transition = self.put(object)?;
        let base = match transition.base {
            Base::Exact(version) => Base::Since(Some(version)),
            Base::None | Base::Since(_) => Base::Since(None),
        };
        Some(Transition { base, ..transition })
    }

    /// An event of the watch, which shows every version.
    pub fn changed(&mut self, object: &Prepared) -> Option<Transition> {
        self.put(object)
    }

    pub fn gone(&mut self, object: &Prepared) -> Option<Transition> {
        let entry = self.entries.remove(&object.key).filter(|entry| entry.is_present)?;
        Some(Transition { operation: Operation::Delete, base: Base::Exact(entry.version.to_string()) })
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn put(&mut self, object: &Prepared) -> Option<Transition> {
        let Version { uid, resource_version, .. } = &object.version;
        let hash = object.content.as_ref().map(|content| content.hash);
        let entry = Entry {
            uid: uid.clone(),
            version: resource_version.clone(),
            hash: hash.unwrap_or_default(),
            is_present: hash.is_some(),
            list: self.list,
        };
        let before = self.entries.insert(object.key.clone(), entry);
        let was_present = before.as_ref().is_some_and(|before| before.is_present);
        // Another incarnation has no version before.
        let same = before.filter(|before| before.uid == *uid);
        let base = same.as_ref().map_or(Base::None, |before| Base::Exact(before.version.to_string()));
        match (hash, was_present) {
            (None, true) => Some(Transition { operation: Operation::Delete, base }),
            (None, false) => None,
            (Some(hash), true) if same.as_ref().is_some_and(|before| before.hash == hash) => None,
            (Some(_), _) => {
                let operation = if same.is_some() { Operation::Update } else { Operation::Create };
                Some(Transition { operation, base })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::prepare::Clean;
    use super::*;

    fn object(uid: &str, version: &str, hash: Option<u64>) -> Prepared {
        Prepared {
            key: ResourceKey::new("", "v1", "configmaps", Some("n"), "a"),
            version: Version { uid: uid.into(), resource_version: version.into(), field_manager: None },
            content: hash.map(|hash| Clean { yaml: Bytes::new(), hash }),
            replicas: None,
        }
    }

    fn on(operation: Operation, base: Base) -> Option<Transition> {
        Some(Transition { operation, base })
    }

    fn exact(version: &str) -> Base {
        Base::Exact(version.into())
    }

    #[test]
    fn a_life() {
        let mut table = Table::default();
        assert_eq!(table.changed(&object("u", "1", Some(7))), on(Operation::Create, Base::None));
        assert_eq!(table.changed(&object("u", "2", Some(7))), None, "a status is no change");
        assert_eq!(table.changed(&object("u", "3", Some(8))), on(Operation::Update, exact("2")));
        assert_eq!(table.changed(&object("u", "4", None)), on(Operation::Delete, exact("3")), "deletionTimestamp");
        assert_eq!(table.changed(&object("u", "5", None)), None, "a finalizer goes");
        assert_eq!(table.gone(&object("u", "6", None)), None, "it was removed before");
        assert_eq!(table.changed(&object("w", "7", Some(8))), on(Operation::Create, Base::None));
        assert_eq!(table.gone(&object("w", "8", Some(8))), on(Operation::Delete, exact("7")), "equal content or not");
        assert!(table.is_empty());
    }

    #[test]
    fn a_list_shows_what_was_missed() {
        let mut table = Table::default();
        table.start_list();
        table.listed(&object("u", "1", Some(7)));
        assert!(table.end_list().is_empty());
        table.start_list();
        assert_eq!(table.listed(&object("u", "9", Some(8))), on(Operation::Update, Base::Since(Some("1".into()))));
        assert!(table.end_list().is_empty());
        table.start_list();
        let gone = table.end_list();
        assert_eq!(gone[0].2, Transition { operation: Operation::Delete, base: Base::Since(Some("9".into())) });
    }

    #[test]
    fn a_list_that_starts_again_does_not_read_as_gone() {
        let mut table = Table::default();
        table.start_list();
        table.listed(&object("u", "1", Some(7)));
        table.end_list();
        table.start_list();
        table.start_list();
        assert_eq!(table.listed(&object("u", "1", Some(7))), None);
        assert!(table.end_list().is_empty());
    }
}
