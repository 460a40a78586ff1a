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
        let head = new.as_str();
        let Some(old) = old else { return Ok(self.newest(head).await?.authors) };
        let range = format!("{old}..{new}");
        let newest = self.newest(&range).await?;
        let by_path = match newest.commits {
            // Back to an older commit.
            0 => return Ok(self.newest(head).await?.authors),
            // As most pushes are: its author need not be asked by path.
            1 => HashMap::new(),
            _ => {
                let count = format!("--max-count={COMMITS_MAX}");
                let output = self.log(&["--name-only", "--no-renames", "--cc", &count, &range], path).await?;
                output.map(|output| parse(&output).authors.by_path).unwrap_or_default()
            }
        };
        Ok(Authors { by_path, ..newest.authors })
    }

    /// The author of the newest of these commits, and whether it is the only one.
    async fn newest(&self, commits: &str) -> Result<Log, GitError> {
        let output = self.log(&["--max-count=2", "--no-patch", commits], "").await?;
        Ok(output.map(|output| parse(&output)).unwrap_or_default())
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

#[derive(Default)]
struct Log {
    authors: Authors,
    commits: usize,
}

/// `\0author\npath\0path\0`, newest commit first; its author alone if it
/// changes no file.
fn parse(output: &[u8]) -> Log {
    let Log { mut authors, mut commits } = Log::default();
    let mut current: Option<Arc<str>> = None;
    let mut is_announced = false;
    for field in output.split(|byte| *byte == 0) {
        let path = if field.is_empty() {
            is_announced = true;
            continue;
        } else if std::mem::take(&mut is_announced) {
            commits += 1;
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
    Log { authors, commits }
}

fn author(text: &[u8]) -> Arc<str> {
    let text = String::from_utf8_lossy(text);
    let shown = text.chars().filter(|character| !character.is_control()).take(AUTHOR_CHARS_MAX);
    shown.collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(output: &str, commits: usize, head: Option<&str>, paths: &[(&str, &str)]) {
        let Log { authors, commits: counted } = parse(output.as_bytes());
        assert_eq!(counted, commits, "{output:?}");
        assert_eq!(authors.head.as_deref(), head, "{output:?}");
        assert_eq!(authors.by_path.len(), paths.len(), "{output:?}");
        for (path, author) in paths {
            assert_eq!(authors.of(path).as_deref(), Some(*author), "{output:?}");
        }
    }

    #[test]
    fn the_newest_commit_of_each_path() {
        check("", 0, None, &[]);
        check("\0A <a>", 1, Some("A <a>"), &[]);
        let output = "\0B <b>\0\0A <a>\nx\0y z\0\0\0B <b>\nx\0w\0";
        check(output, 3, Some("B <b>"), &[("x", "A <a>"), ("y z", "A <a>"), ("w", "B <b>")]);
    }

    #[test]
    fn names_are_bounded_and_plain() {
        check("\0A\x1b[31m <a>\nx\0", 1, Some("A[31m <a>"), &[("x", "A[31m <a>")]);
        assert_eq!(author("x".repeat(5000).as_bytes()).len(), AUTHOR_CHARS_MAX);
    }
}
