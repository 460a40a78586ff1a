//! What of a repository is in force: kept in the store, changed in the same
//! transaction as the objects.

use bytes::Bytes;
use tidegate_git::ObjectId;
use tidegate_store::{StoreError, View};

use super::id::RepositoryId;

/// The projected commit, and the folder of it that was projected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mark {
    pub commit: ObjectId,
    pub path: String,
}

impl Mark {
    pub fn name(id: &RepositoryId) -> String {
        format!("projected/{id}")
    }

    /// `None` if nothing of the repository is in force.
    pub fn read(view: &View, id: &RepositoryId) -> Result<Option<Self>, StoreError> {
        let value = view.mark(&Self::name(id))?;
        Ok(value.and_then(|value| Self::decode(&String::from_utf8_lossy(&value))))
    }

    /// The commit alone for a whole tree, else `commit path`.
    pub fn encode(&self) -> Bytes {
        let text =
            if self.path.is_empty() { self.commit.to_string() } else { format!("{} {}", self.commit, self.path) };
        text.into()
    }

    fn decode(text: &str) -> Option<Self> {
        let (commit, path) = text.split_once(' ').unwrap_or((text, ""));
        Some(Self { commit: ObjectId::parse(commit)?, path: path.into() })
    }
}

/// How much a repository defines, counted along: a projection knows what it
/// adds and removes, and nothing else has to be read.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Tally {
    pub objects: u64,
    pub files: u64,
}

impl Tally {
    pub fn name(id: &RepositoryId) -> String {
        format!("tally/{id}")
    }

    /// `None` if it was never counted.
    pub fn read(view: &View, id: &RepositoryId) -> Result<Option<Self>, StoreError> {
        let value = view.mark(&Self::name(id))?;
        Ok(value.and_then(|value| Self::decode(&String::from_utf8_lossy(&value))))
    }

    pub fn encode(&self) -> Bytes {
        format!("{} {}", self.objects, self.files).into()
    }

    fn decode(text: &str) -> Option<Self> {
        let (objects, files) = text.split_once(' ')?;
        Some(Self { objects: objects.parse().ok()?, files: files.parse().ok()? })
    }

    /// After so many were added and removed, of objects and of files.
    #[must_use]
    pub fn after(self, objects: (usize, usize), files: (usize, usize)) -> Self {
        let next = |now: u64, (added, removed): (usize, usize)| (now + added as u64).saturating_sub(removed as u64);
        Self { objects: next(self.objects, objects), files: next(self.files, files) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_as_it_was_written() {
        let commit = ObjectId::parse(&"a1".repeat(20)).unwrap();
        for path in ["", "deploy", "a folder/with spaces"] {
            let mark = Mark { commit: commit.clone(), path: path.into() };
            assert_eq!(Mark::decode(std::str::from_utf8(&mark.encode()).unwrap()), Some(mark));
        }
        assert_eq!(Mark::decode("nonsense"), None);
        let tally = Tally::default().after((5, 1), (2, 0));
        assert_eq!(Tally::decode(std::str::from_utf8(&tally.encode()).unwrap()), Some(Tally { objects: 4, files: 2 }));
        assert_eq!(Tally::decode("nonsense"), None);
    }
}
