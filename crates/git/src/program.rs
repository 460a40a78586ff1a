//! The `git` program, called so that nothing of the user's own set-up counts.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Output, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};

use crate::error::GitError;

/// The first with `--http-backend-info-refs` in both services.
const VERSION_MIN: (u32, u32) = (2, 36);
const VERSION_MIN_TEXT: &str = "2.36";
/// For calls that read: the slowest is the log of a push of a million files.
const CALL_TIME_MAX: Duration = Duration::from_secs(120);
/// Of one git, beside the files that it maps: a pack of two million objects
/// takes a third of it.
const MEMORY_MAX: u64 = 1 << 30;
/// Of what git says on stderr, for a message.
const MESSAGE_CHARS_MAX: usize = 500;

/// Where git is, and what its children may find.
#[derive(Clone, Debug)]
pub struct Program {
    pub git: PathBuf,
    /// The `PATH` of git and of its hooks.
    pub search_path: OsString,
    /// Where git looks for a home: a directory without a configuration.
    pub home: PathBuf,
}

impl Program {
    /// Names a git that is missing or too old before anybody needs it.
    pub async fn check(&self) -> Result<(), GitError> {
        let output = self.command(&self.home).arg("--version").output().await;
        let program = self.git.display().to_string();
        let output = output.map_err(|source| GitError::Missing { program, needed: VERSION_MIN_TEXT, source })?;
        let text = String::from_utf8_lossy(&output.stdout);
        match version(&text) {
            Some(found) if found >= VERSION_MIN => Ok(()),
            _ => Err(GitError::TooOld { found: text.trim().to_owned(), needed: VERSION_MIN_TEXT }),
        }
    }

    /// Git in `dir`, with an environment of its own.
    pub(crate) fn command(&self, dir: &Path) -> Command {
        self.isolated(&self.git, dir)
    }

    /// `program` in `dir`, with nothing of our own environment.
    pub(crate) fn isolated(&self, program: &Path, dir: &Path) -> Command {
        let mut command = Command::new(self.found(program));
        command
            .current_dir(dir)
            .env_clear()
            .env("PATH", &self.search_path)
            .env("HOME", &self.home)
            .env("LC_ALL", "C")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_LITERAL_PATHSPECS", "1")
            // An object is what its id says, whatever `refs/replace` says.
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// With its folder: a name that has to be looked for is started by a fork,
    /// which costs in proportion to the memory of this process.
    fn found(&self, program: &Path) -> PathBuf {
        let folders = std::env::split_paths(&self.search_path).filter(|folder| folder.is_absolute());
        let is_name = program.components().count() == 1;
        let found = folders.map(|folder| folder.join(program)).find(|path| is_name && path.is_file());
        found.unwrap_or_else(|| program.to_owned())
    }
}

/// A push of a few hundred bytes can have more paths, or larger objects, than
/// any machine has room for: git is then told that there is no more memory.
pub(crate) fn bound_memory(child: &Child) {
    bound(child, Bound::Memory(MEMORY_MAX));
}

/// So much of its time, on however many cores; then it is ended by a signal.
pub(crate) fn bound_processor(child: &Child, seconds: u64) {
    bound(child, Bound::Processor(seconds));
}

/// Whether that is why it ended.
pub(crate) fn has_used_up_processor(status: ExitStatus) -> bool {
    status.signal() == Some(rustix::process::Signal::XCPU.as_raw())
}

enum Bound {
    Memory(u64),
    Processor(u64),
}

#[cfg(target_os = "linux")]
fn bound(child: &Child, bound: Bound) {
    use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

    let (resource, limit) = match bound {
        Bound::Memory(bytes) => (Resource::Data, Rlimit { current: Some(bytes), maximum: Some(bytes) }),
        Bound::Processor(seconds) => {
            // It may be raised later, up to what we have ourselves.
            let maximum = getrlimit(Resource::Cpu).maximum;
            let current = Some(maximum.map_or(seconds, |maximum| seconds.min(maximum)));
            (Resource::Cpu, Rlimit { current, maximum })
        }
    };
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // One that has ended needs no limit.
        let _ = prlimit(Some(pid), resource, limit);
    }
}

#[cfg(not(target_os = "linux"))]
fn bound(_child: &Child, _bound: Bound) {}

/// Runs a call that must end by itself, whatever its exit code.
pub(crate) async fn finish(name: &'static str, command: &mut Command) -> Result<Output, GitError> {
    let ended = tokio::time::timeout(CALL_TIME_MAX, command.output()).await;
    let output = ended.map_err(|_| GitError::TooSlow { command: name, seconds: CALL_TIME_MAX.as_secs() })?;
    output.map_err(|source| GitError::Io { command: name, source })
}

/// As [`finish`], for a call that reads `input`.
pub(crate) async fn finish_fed(name: &'static str, command: &mut Command, input: &[u8]) -> Result<Output, GitError> {
    let io_failed = |source| GitError::Io { command: name, source };
    let talk = async {
        let mut child = command.stdin(Stdio::piped()).spawn().map_err(io_failed)?;
        let stdin = child.stdin.take();
        let feed = async {
            if let Some(mut stdin) = stdin {
                // Whoever ends before it has read everything says why.
                let _ = stdin.write_all(input).await;
            }
        };
        let ((), output) = tokio::join!(feed, child.wait_with_output());
        output.map_err(io_failed)
    };
    let ended = tokio::time::timeout(CALL_TIME_MAX, talk).await;
    ended.map_err(|_| GitError::TooSlow { command: name, seconds: CALL_TIME_MAX.as_secs() })?
}

/// As [`finish_fed`], in two steps: the second comes when git has printed the
/// line `ready` and `between` is done.
pub(crate) async fn finish_in_steps(
    name: &'static str,
    command: &mut Command,
    [first, second]: [&[u8]; 2],
    ready: &str,
    between: impl Future<Output = std::io::Result<()>>,
) -> Result<Output, GitError> {
    let talk = async {
        let mut child = command.stdin(Stdio::piped()).spawn()?;
        let no_pipe = || std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        let mut stdin = child.stdin.take().ok_or_else(no_pipe)?;
        let mut lines = BufReader::new(child.stdout.take().ok_or_else(no_pipe)?).lines();
        // Whoever ends before it has read everything says why.
        let _ = stdin.write_all(first).await;
        while let Some(line) = lines.next_line().await? {
            if line == ready {
                between.await?;
                let _ = stdin.write_all(second).await;
                break;
            }
        }
        drop(stdin);
        let output = child.wait_with_output().await;
        // Until then git has somebody to print for.
        drop(lines);
        output
    };
    let ended = tokio::time::timeout(CALL_TIME_MAX, talk).await;
    let output = ended.map_err(|_| GitError::TooSlow { command: name, seconds: CALL_TIME_MAX.as_secs() })?;
    output.map_err(|source| GitError::Io { command: name, source })
}

/// As [`finish`], for a call that must succeed.
pub(crate) async fn succeed(name: &'static str, dir: &Path, command: &mut Command) -> Result<Vec<u8>, GitError> {
    let output = finish(name, command).await?;
    if output.status.success() { Ok(output.stdout) } else { Err(failed(name, dir, &output.stderr)) }
}

/// As [`succeed`], with at most so much output; `None` if there is more.
pub(crate) async fn bounded(
    name: &'static str,
    dir: &Path,
    command: &mut Command,
    bytes_max: u64,
) -> Result<Option<Vec<u8>>, GitError> {
    let io_failed = |source| GitError::Io { command: name, source };
    let read = async {
        let mut child = command.spawn().map_err(io_failed)?;
        bound_memory(&child);
        let mut output = Vec::new();
        if let Some(stdout) = child.stdout.take() {
            stdout.take(bytes_max + 1).read_to_end(&mut output).await.map_err(io_failed)?;
        }
        if output.len() as u64 > bytes_max {
            return Ok(None);
        }
        let ended = child.wait_with_output().await.map_err(io_failed)?;
        if ended.status.success() { Ok(Some(output)) } else { Err(failed(name, dir, &ended.stderr)) }
    };
    let read = tokio::time::timeout(CALL_TIME_MAX, read).await;
    read.map_err(|_| GitError::TooSlow { command: name, seconds: CALL_TIME_MAX.as_secs() })?
}

pub(crate) fn failed(name: &'static str, dir: &Path, stderr: &[u8]) -> GitError {
    let message = String::from_utf8_lossy(stderr).trim().chars().take(MESSAGE_CHARS_MAX).collect();
    GitError::Failed { command: name, dir: dir.to_owned(), message }
}

/// `git version 2.39.5 (Apple Git-154)` → `(2, 39)`.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.trim().strip_prefix("git version ")?.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn output_is_bounded() {
        let dir = std::env::temp_dir();
        let program = Program { git: "git".into(), search_path: std::env::var_os("PATH").unwrap(), home: dir.clone() };
        let run = async |bytes_max| bounded("--version", &dir, program.command(&dir).arg("--version"), bytes_max).await;
        assert!(run(1000).await.unwrap().unwrap().starts_with(b"git version"));
        assert_eq!(run(3).await.unwrap(), None);
        let failed = bounded("nonsense", &dir, program.command(&dir).arg("nonsense"), 1000).await.unwrap_err();
        assert!(failed.to_string().contains("'nonsense' is not a git command"), "{failed}");
    }

    #[test]
    fn versions() {
        for (text, expected) in [
            ("git version 2.39.5\n", Some((2, 39))),
            ("git version 2.36.1 (Apple Git-154)", Some((2, 36))),
            ("git version 2.40.windows.1", Some((2, 40))),
            ("git version 3.0", Some((3, 0))),
            ("hg 6", None),
            ("", None),
        ] {
            assert_eq!(version(text), expected, "{text}");
        }
    }

    #[tokio::test]
    async fn a_missing_git_is_named() {
        let home = std::env::temp_dir();
        let program = Program { git: "no-such-git".into(), search_path: "/nowhere".into(), home };
        let error = program.check().await.unwrap_err().to_string();
        assert!(error.contains("no-such-git") && error.contains("install git 2.36"), "{error}");
    }
}
