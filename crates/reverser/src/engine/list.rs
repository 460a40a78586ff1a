//! A complete list of a claim that waits for others, kept up to date.

use std::collections::HashMap;

use tidegate_git::blob_id;
use tidegate_model::mirror::ResourceKey;

use crate::change::{Content, Listed, State, What};

/// Contents that changed since the list, in memory: the others are read again.
const CHANGED_BYTES_MAX: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct List {
    listed: Vec<Listed>,
    /// What each object is instead, and `None` for what is gone.
    since: HashMap<ResourceKey, Option<Listed>>,
    changed_bytes: usize,
}

impl List {
    pub fn new(listed: Vec<Listed>) -> Self {
        Self { listed, since: HashMap::new(), changed_bytes: 0 }
    }

    pub fn note(&mut self, key: &ResourceKey, what: &What) {
        let now = match what {
            What::Put(state) => Some(self.keep(key, state)),
            What::Delete(_) => None,
        };
        if let Some(Some(Listed { content: Content::Held(yaml), .. })) = self.since.insert(key.clone(), now) {
            self.changed_bytes -= yaml.len();
        }
    }

    /// In the order of the list: what is in a spool is read from its start to
    /// its end.
    pub fn objects(&self) -> impl Iterator<Item = Listed> {
        let same = self.listed.iter().filter(|listed| !self.since.contains_key(&listed.key));
        same.chain(self.since.values().flatten()).cloned()
    }

    fn keep(&mut self, key: &ResourceKey, state: &State) -> Listed {
        let mut listed = Listed::new(key.clone(), state.clone());
        if self.changed_bytes + state.yaml.len() > CHANGED_BYTES_MAX {
            listed.content = Content::Dropped(blob_id(&state.yaml).ok());
        } else {
            self.changed_bytes += state.yaml.len();
        }
        listed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Version;

    fn key(name: &str) -> ResourceKey {
        ResourceKey::new("", "v1", "configmaps", Some("n"), name)
    }

    fn version() -> Version {
        Version { uid: "u".into(), resource_version: "1".into(), field_manager: None }
    }

    fn state(content: &str) -> State {
        State { version: version(), yaml: content.to_owned().into() }
    }

    fn check(list: &List, expected: &[&str]) {
        let said = |listed: Listed| match listed.content {
            Content::Held(yaml) => format!("{} {}", listed.key.name, String::from_utf8_lossy(&yaml)),
            other => format!("{} {other:?}", listed.key.name),
        };
        let mut found: Vec<_> = list.objects().map(said).collect();
        found.sort();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_changed_since_is_in_it_once() {
        let mut list = List::new(["a", "b", "c"].map(|name| Listed::new(key(name), state("1"))).into());
        check(&list, &["a 1", "b 1", "c 1"]);
        list.note(&key("a"), &What::Put(state("2")));
        list.note(&key("b"), &What::Delete(version()));
        list.note(&key("d"), &What::Put(state("1")));
        check(&list, &["a 2", "c 1", "d 1"]);
        list.note(&key("a"), &What::Delete(version()));
        list.note(&key("b"), &What::Put(state("3")));
        list.note(&key("d"), &What::Put(state("4")));
        check(&list, &["b 3", "c 1", "d 4"]);
        assert_eq!(list.changed_bytes, 2);
    }

    #[test]
    fn contents_have_a_bound() {
        let mut list = List::new(Vec::new());
        let large = "x".repeat(CHANGED_BYTES_MAX);
        for content in ["small", &large, "small"] {
            list.note(&key("a"), &What::Put(state(content)));
            assert_eq!(list.changed_bytes, if content == large { 0 } else { 5 });
        }
        list.note(&key("a"), &What::Put(state(&large)));
        let [listed] = &list.objects().collect::<Vec<_>>()[..] else { panic!() };
        assert_eq!(listed.content, Content::Dropped(blob_id(large.as_bytes()).ok()));
    }
}
