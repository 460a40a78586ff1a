//! What the cluster says of one object, clean and with a name on it.

use std::sync::Arc;

use bytes::Bytes;
use tidegate_git::ObjectId;
use tidegate_model::mirror::ResourceKey;
use tokio::time::Instant;

use crate::spool::Spooled;

/// One change of one object. Whether it creates or updates its file is not
/// said here: the tree knows.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    pub key: ResourceKey,
    pub what: What,
    pub author: Author,
    /// When the event reached us: the lag is counted from here.
    pub seen_at: Instant,
}

/// An object that a complete list found.
#[derive(Clone, PartialEq, Debug)]
pub struct Listed {
    pub key: ResourceKey,
    pub version: Version,
    pub content: Content,
}

impl Listed {
    pub fn new(key: ResourceKey, State { version, yaml }: State) -> Self {
        Self { key, version, content: Content::Held(yaml) }
    }
}

/// Where what goes into Git is, as in [`State::yaml`].
#[derive(Clone, PartialEq, Debug)]
pub enum Content {
    Held(Bytes),
    Spooled(Spooled),
    /// Nowhere: the object is read again. What it was as a blob tells whether
    /// Git has it already.
    Dropped(Option<ObjectId>),
}

#[derive(Clone, PartialEq, Debug)]
pub enum What {
    Put(State),
    /// The object is gone, or somebody deleted it and finalizers hold it.
    Delete(Version),
}

/// An object as it goes into Git.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct State {
    pub version: Version,
    /// Canonical YAML of the sanitized object. Secrets too: the worker
    /// encrypts them for each destination.
    pub yaml: Bytes,
}

/// Which state of which incarnation: for the trailers of the commit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Version {
    pub uid: Arc<str>,
    pub resource_version: Arc<str>,
    /// The last field manager, where nothing better is known of the author.
    pub field_manager: Option<Arc<str>>,
}

/// People whose names one joint change keeps; more of them are `unknown`.
/// 100 bytes each, and only where contents could not be kept.
const AUTHORS_MAX: usize = 16;

/// Who made a change. Nobody else's name stands in for one that is lost.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Author {
    User {
        name: Arc<str>,
        email: Arc<str>,
    },
    Unknown,
    /// At least two of the others, in the order of their changes: what was
    /// between them is lost, so the change is no one's alone.
    Several(Arc<[Author]>),
}

impl Author {
    /// Whose a change is that holds both changes, without the state between.
    #[must_use]
    pub fn and(&self, later: &Self) -> Self {
        let mut all = self.each().to_vec();
        for author in later.each() {
            if all.contains(author) {
                continue;
            }
            let has_room = all.len() < AUTHORS_MAX;
            let author = if has_room { author } else { &Self::Unknown };
            if has_room || !all.contains(author) {
                all.push(author.clone());
            }
        }
        if let [one] = all.as_slice() { one.clone() } else { Self::Several(all.into()) }
    }

    /// Everybody who had a part in it.
    pub fn each(&self) -> &[Self] {
        match self {
            Self::Several(all) => all,
            one => std::slice::from_ref(one),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str) -> Author {
        Author::User { name: name.into(), email: "".into() }
    }

    #[test]
    fn a_joint_change_names_everybody_once() {
        let (ann, bob) = (user("ann"), user("bob"));
        assert_eq!(ann.and(&ann), ann);
        assert_eq!(Author::Unknown.and(&Author::Unknown), Author::Unknown);
        let both = ann.and(&bob).and(&ann);
        assert_eq!(both.each(), [ann.clone(), bob.clone()]);
        assert_eq!(both.and(&Author::Unknown).each(), [ann, bob, Author::Unknown]);
    }

    #[test]
    fn more_than_fit_are_unknown() {
        let crowd = (0..100).map(|at| user(&format!("p{at}"))).reduce(|all, next| all.and(&next)).unwrap();
        assert_eq!(crowd.each().len(), AUTHORS_MAX + 1);
        assert_eq!(crowd.each().last(), Some(&Author::Unknown));
    }
}
