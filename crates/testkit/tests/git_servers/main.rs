//! The Git servers of the tests serve, ask who is there, and fail on request.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tidegate_testkit::bare::{self, git};
use tidegate_testkit::git_http::{GitHttp, Mode};
use tidegate_testkit::sshd::{Sshd, generate_key};

/// A repository with one commit to push.
fn work_tree() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    git(folder.path(), &["init", "--quiet", "--initial-branch=main", "."]);
    git(folder.path(), &["commit", "--quiet", "--allow-empty", "--message", "first"]);
    folder
}

fn push(command: &mut Command, url: &str) -> Result<(), String> {
    let output = command.args(["push", "--quiet", url, "main"]).output().unwrap();
    output.status.success().then_some(()).ok_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn http_takes_pushes_and_fails_on_request() {
    let (server, tree) = (GitHttp::start(), work_tree());
    let repository = server.create("team/app.git");
    let (bad, good) = (server.url("team/app.git"), server.url_with_credentials("team/app.git"));
    let push = |url: &str| push(&mut bare::command(tree.path()), url);
    assert!(push(&bad).unwrap_err().contains("could not read Username"));
    server.refuse_pushes("team/app.git", Some("frozen for the holidays"));
    assert!(push(&good).unwrap_err().contains("frozen for the holidays"));
    server.refuse_pushes("team/app.git", None);
    for (mode, complaint) in [(Mode::Down, "Failed to connect"), (Mode::Unauthorized, "Authentication failed")] {
        server.set(mode);
        let refused = push(&good).unwrap_err();
        assert!(refused.contains(complaint), "{refused}");
    }
    server.set(Mode::Slow(Duration::from_millis(1)));
    push(&good).unwrap();
    server.set(Mode::Up);
    assert_eq!(git(&repository, &["rev-parse", "main"]), git(tree.path(), &["rev-parse", "main"]));
    assert!(git(tree.path(), &["ls-remote", &good]).ends_with("refs/heads/main"));
}

#[test]
fn ssh_takes_pushes_by_key_and_is_known_by_its_own() {
    let (mut server, tree) = (Sshd::start(), work_tree());
    let repository = server.create("app.git");
    let known_hosts = tree.path().join("known_hosts");
    std::fs::write(&known_hosts, server.known_hosts()).unwrap();
    let ssh = |key: &Path, known: &Path| {
        let mut command = bare::command(tree.path());
        command.env(
            "GIT_SSH_COMMAND",
            format!(
                "ssh -F none -o BatchMode=yes -o IdentitiesOnly=yes -o IdentityAgent=none -o StrictHostKeyChecking=yes \
                 -i {} -o UserKnownHostsFile={}",
                key.display(),
                known.display()
            ),
        );
        command
    };
    let (url, key, stranger) = (server.url("app.git"), server.private_key_path(), tree.path().join("stranger"));
    generate_key(&stranger, "");
    assert!(push(&mut ssh(&stranger, &known_hosts), &url).unwrap_err().contains("Permission denied"));
    let unknown = push(&mut ssh(&key, Path::new("/dev/null")), &url).unwrap_err();
    assert!(unknown.contains("Host key verification failed"), "{unknown}");
    server.down();
    assert!(push(&mut ssh(&key, &known_hosts), &url).unwrap_err().contains("Connection refused"));
    server.up();
    push(&mut ssh(&key, &known_hosts), &url).unwrap();
    assert_eq!(git(&repository, &["rev-parse", "main"]), git(tree.path(), &["rev-parse", "main"]));
    server.authorize(&std::fs::read_to_string(stranger.with_extension("pub")).unwrap());
    push(&mut ssh(&stranger, &known_hosts), &url).unwrap();
}
