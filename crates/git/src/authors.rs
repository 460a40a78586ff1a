//! Who wrote what a range of commits changed, by one `git log` however many
//! files there are.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::GitError;
use crate::program::bounded;
use crate::repository::{ObjectId, Repository};

const COMMAND: &str = "log";
/// Of one range: about 60 bytes a changed path and commit, so a million paths.
const LOG_BYTES_MAX: u64 = 64 << 20;
/// A longer range is one that nobody pushes by hand; its head speaks for it.
const COMMITS_MAX: &str = "10000";
/// Of `Name <address>`: more is not a name.
const AUTHOR_CHARS_MAX: usize = 256;
/// A NUL before each author: no path is empty, so an empty field announces one.
const FORMAT: &str = "--format=format:%x00%an <%ae>";

/// For each path the author of the newest commit that touched it.
#[derive(Clone, Debug, Default)]
pub struct Authors {
    head: Option<Arc<str>>,
    by_path: HashMap<Box<[u8]>, Arc<str>>,
}

impl Authors {
    /// Of the head commit for a path that no commit of the range names, such as
    /// one that only a merge changed.
    pub fn of(&self, path: &str) -> Option<Arc<str>> {
        self.by_path.get(path.as_bytes()).or(self.head.as_ref()).cloned()
    }
}

impl Repository {
    /// Of what `new` has and `old` has not. Without an `old`, or when the range
    /// is longer than the limits, the head's author stands for all of it.
    pub async fn authors(&self, old: Option<&ObjectId>, new: &ObjectId, path: &str) -> Result<Authors, GitError> {
        let head = self.log(&["--max-count=1", "--no-patch", new.as_str()], "").await?;
        let head = head.and_then(|output| parse(&output).head);
        let Some(old) = old else { return Ok(Authors { head, by_path: HashMap::new() }) };
        let range = format!("{old}..{new}");
        let count = format!("--max-count={COMMITS_MAX}");
        let output = self.log(&["--name-only", "--no-renames", &count, &range], path).await?;
        let by_path = output.map(|output| parse(&output).by_path).unwrap_or_default();
        Ok(Authors { head, by_path })
    }

    async fn log(&self, arguments: &[&str], path: &str) -> Result<Option<Vec<u8>>, GitError> {
        let mut command = self.command();
        command.args([COMMAND, "-z", "--no-mailmap", FORMAT]).args(arguments).arg("--");
        if !path.is_empty() {
            command.arg(path);
        }
        bounded(COMMAND, self.dir(), &mut command, LOG_BYTES_MAX).await
    }
}

/// `\0author\npath\0path\0`, newest commit first; its author alone if it
/// changes no file.
fn parse(output: &[u8]) -> Authors {
    let mut authors = Authors::default();
    let mut current: Option<Arc<str>> = None;
    let mut is_announced = false;
    for field in output.split(|byte| *byte == 0) {
        let path = if field.is_empty() {
            is_announced = true;
            continue;
        } else if std::mem::take(&mut is_announced) {
            let end = field.iter().position(|byte| *byte == b'\n');
            let author = author(&field[..end.unwrap_or(field.len())]);
            authors.head.get_or_insert_with(|| author.clone());
            current = Some(author);
            match end {
                Some(end) => &field[end + 1..],
                None => continue,
            }
        } else {
            field
        };
        if let Some(author) = &current {
            authors.by_path.entry(path.into()).or_insert_with(|| author.clone());
        }
    }
    authors
}

fn author(text: &[u8]) -> Arc<str> {
    let text = String::from_utf8_lossy(text);
    let shown = text.chars().filter(|character| !character.is_control()).take(AUTHOR_CHARS_MAX);
    shown.collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(output: &str, head: Option<&str>, paths: &[(&str, &str)]) {
        let authors = parse(output.as_bytes());
        assert_eq!(authors.head.as_deref(), head, "{output:?}");
        assert_eq!(authors.by_path.len(), paths.len(), "{output:?}");
        for (path, author) in paths {
            assert_eq!(authors.of(path).as_deref(), Some(*author), "{output:?}");
        }
    }

    #[test]
    fn the_newest_commit_of_each_path() {
        check("", None, &[]);
        check("\0A <a>", Some("A <a>"), &[]);
        let output = "\0B <b>\0\0A <a>\nx\0y z\0\0\0B <b>\nx\0w\0";
        check(output, Some("B <b>"), &[("x", "A <a>"), ("y z", "A <a>"), ("w", "B <b>")]);
    }

    #[test]
    fn names_are_bounded_and_plain() {
        check("\0A\x1b[31m <a>\nx\0", Some("A[31m <a>"), &[("x", "A[31m <a>")]);
        assert_eq!(author("x".repeat(5000).as_bytes()).len(), AUTHOR_CHARS_MAX);
    }
}
