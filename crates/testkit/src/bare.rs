//! Bare repositories that the Git servers of the tests serve.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An empty repository with `main` as its branch.
pub fn create(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    git(folder, &["init", "--quiet", "--bare", "--initial-branch=main", &path.display().to_string()]);
    path
}

/// Runs git as nobody in particular, which must succeed; what it prints.
pub fn git(folder: &Path, args: &[&str]) -> String {
    let output = command(folder).args(args).output().expect("git starts");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {args:?}: {complaint}");
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

/// As [`git`], for a command that prints nothing and reads `input`.
pub fn feed(folder: &Path, args: &[&str], input: &str) {
    assert!(try_feed(folder, args, input), "git {args:?} failed");
}

/// Whether it succeeded.
pub fn try_feed(folder: &Path, args: &[&str], input: &str) -> bool {
    let mut child = command(folder).args(args).stdin(Stdio::piped()).spawn().expect("git starts");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("git reads");
    child.wait().expect("git ends").success()
}

/// git without anything of the user's own set-up, that asks nobody.
pub fn command(folder: &Path) -> Command {
    isolated(Command::new("git"), folder)
}

/// As [`command`], without room for more than 4 KiB a file: a limit on their
/// size, which every user may set, fails as a full disk does.
pub fn command_without_room(folder: &Path) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; ulimit -f 8; exec git \"$@\"", "git"]);
    isolated(command, folder)
}

fn isolated(mut command: Command, folder: &Path) -> Command {
    command.current_dir(folder).env("HOME", folder);
    for (name, value) in [
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_AUTHOR_NAME", "test"),
        ("GIT_AUTHOR_EMAIL", "test@example.com"),
        ("GIT_COMMITTER_NAME", "test"),
        ("GIT_COMMITTER_EMAIL", "test@example.com"),
    ] {
        command.env(name, value);
    }
    command
}

/// Makes a repository refuse every push with `reason`, or none.
pub fn refuse_pushes(repository: &Path, reason: Option<&str>) {
    let hook = repository.join("hooks/pre-receive");
    match reason {
        Some(reason) => {
            fs::create_dir_all(repository.join("hooks")).expect("a folder for hooks");
            // Renamed when complete: a push may run it at any moment.
            let new = hook.with_extension("new");
            fs::write(&new, format!("#!/bin/sh\ncat >/dev/null\necho '{reason}' >&2\nexit 1\n")).expect("a hook");
            fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).expect("a hook can be run");
            fs::rename(new, hook).expect("a hook in its place");
        }
        None => {
            // Not there is as good.
            let _ = fs::remove_file(hook);
        }
    }
}
