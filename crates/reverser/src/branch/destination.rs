//! What one destination asks of the branch.

use std::fmt;
use std::sync::Arc;

use tidegate_git::Signer;

use crate::secrets::SecretPolicy;

/// Cheap to clone.
#[derive(Clone)]
pub struct Destination {
    pub base_folder: BaseFolder,
    pub secrets: SecretPolicy,
    /// Signs each commit of this destination.
    pub signer: Option<Arc<dyn Signer>>,
}

impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Destination({:?}, {:?}, signed: {})", self.base_folder, self.secrets, self.signer.is_some())
    }
}

/// A relative folder; empty for the root.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct BaseFolder(Arc<str>);

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is no base folder: use a relative path with `/`, without `..`, `.git` and `\\`, such as clusters/prod")]
pub struct BaseFolderError(String);

impl BaseFolder {
    pub fn parse(text: &str) -> Result<Self, BaseFolderError> {
        let is_part = |part: &str| !part.is_empty() && part != "." && part != ".." && !is_git(part);
        let is_odd = |c: char| c == '\\' || c.is_control();
        let fits = text.is_empty() || text.split('/').all(is_part) && !text.contains(is_odd);
        if fits { Ok(Self(text.into())) } else { Err(BaseFolderError(text.to_owned())) }
    }

    /// Whether one holds the other: two destinations must not.
    pub fn overlaps(&self, other: &Self) -> bool {
        let holds =
            |a: &str, b: &str| a.is_empty() || b.strip_prefix(a).is_some_and(|b| b.is_empty() || b.starts_with('/'));
        holds(&self.0, &other.0) || holds(&other.0, &self.0)
    }

    pub fn join(&self, path: &str) -> String {
        match (&*self.0, path) {
            ("", path) => path.to_owned(),
            (base, "") => base.to_owned(),
            (base, path) => format!("{base}/{path}"),
        }
    }

    /// `path` without this folder, if it is below.
    pub(super) fn strip<'p>(&self, path: &'p str) -> Option<&'p str> {
        if self.0.is_empty() { Some(path) } else { path.strip_prefix(&*self.0)?.strip_prefix('/') }
    }
}

/// In all the forms that some file system takes for it.
fn is_git(part: &str) -> bool {
    let part = part.to_ascii_lowercase();
    matches!(part.trim_end_matches(['.', ' ']), ".git" | "git~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders() {
        for (text, ok) in [
            ("", true),
            ("a", true),
            ("clusters/prod", true),
            ("a.b/c d", true),
            ("/a", false),
            ("a/", false),
            ("a//b", false),
            ("..", false),
            ("a/../b", false),
            ("./a", false),
            ("a\\b", false),
            (".git", false),
            ("a/.GIT", false),
            ("a/.git./b", false),
            ("a\nb", false),
        ] {
            assert_eq!(BaseFolder::parse(text).is_ok(), ok, "{text}");
        }
    }

    #[test]
    fn overlaps() {
        for (a, b, expected) in [
            ("", "a", true),
            ("a", "a", true),
            ("a", "a/b", true),
            ("a", "ab", false),
            ("a/b", "a/c", false),
            ("", "", true),
        ] {
            let parse = |text| BaseFolder::parse(text).unwrap();
            assert_eq!((parse(a).overlaps(&parse(b)), parse(b).overlaps(&parse(a))), (expected, expected), "{a} {b}");
        }
    }
}
