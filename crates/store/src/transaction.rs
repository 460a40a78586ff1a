//! What a writer asks for, and what it gets.

use std::sync::Arc;

use bytes::Bytes;
use tidegate_model::{EncodedObject, Labels, ObjectKey, ResourceVersion};

/// All of it is applied, in order, or none. Its events have consecutive
/// places on the number line.
#[derive(Clone, Default)]
pub struct Transaction {
    pub writes: Vec<Write>,
    /// Small named values that change with the objects, such as the projected
    /// commit of a repository; `None` removes one.
    pub marks: Vec<(String, Option<Bytes>)>,
}

#[derive(Clone)]
pub struct Write {
    pub key: ObjectKey,
    pub expect: Expect,
    pub op: Op,
    /// What to do instead when `expect` does not hold; `None` is a conflict.
    pub rebase: Option<Rebase>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expect {
    Any,
    Absent,
    Version(ResourceVersion),
}

#[derive(Clone)]
pub enum Op {
    Put(EncodedObject),
    /// Of an absent object: nothing happens, no version is minted.
    Delete,
}

/// Asked with the newest object, by the committer's thread: it must be quick
/// and pure. A Git projection merges again here, instead of failing because a
/// status write came in between.
pub type Rebase = Arc<dyn Fn(Option<&StoredObject>) -> Rebased + Send + Sync>;

pub enum Rebased {
    Op(Op),
    Skip,
    Conflict,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Committed {
    /// The store's newest version with this transaction: what a reader needs
    /// to have seen to have seen it.
    pub version: ResourceVersion,
    /// For each write the version that it minted; `None` if it was skipped.
    pub versions: Vec<Option<ResourceVersion>>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredObject {
    pub key: ObjectKey,
    pub version: ResourceVersion,
    pub labels: Labels,
    pub json: Bytes,
}

impl Transaction {
    pub fn one(key: ObjectKey, expect: Expect, op: Op) -> Self {
        Self { writes: vec![Write { key, expect, op, rebase: None }], marks: Vec::new() }
    }

    pub(crate) fn bytes(&self) -> usize {
        let writes = self.writes.iter().map(|write| match &write.op {
            Op::Put(object) => object.len(),
            Op::Delete => 0,
        });
        let marks = self.marks.iter().map(|(name, value)| name.len() + value.as_ref().map_or(0, Bytes::len));
        writes.sum::<usize>() + marks.sum::<usize>()
    }
}

impl Expect {
    pub(crate) fn holds(self, current: Option<ResourceVersion>) -> bool {
        match self {
            Self::Any => true,
            Self::Absent => current.is_none(),
            Self::Version(version) => current == Some(version),
        }
    }
}
