//! A bare repository, filled by git itself and read by us.

// A helper that fails is a test that fails.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::pin::Pin;
use std::process::Command;
use std::time::Duration;

use tidegate_git::{Blob, BlobLimits, EntryKind, GitError, ObjectId, Program, Quarantine, RefUpdate, Repository};

const LIMITS: BlobLimits = BlobLimits { blob_bytes_max: 1000, blobs_max: 100, bytes_max: 10_000 };

fn program(home: &Path) -> Program {
    Program { git: "git".into(), search_path: std::env::var_os("PATH").unwrap(), home: home.to_owned() }
}

/// Hermetic git in `dir`; what it prints.
fn git(dir: &Path, script: &str) -> String {
    let mut command = Command::new("sh");
    command.args(["-ec", script]).current_dir(dir).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    command.env("HOME", dir).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), "Ada").env(format!("GIT_{role}_EMAIL"), "ada@example.com");
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn id(text: &str) -> ObjectId {
    ObjectId::parse(text).unwrap()
}

/// A bare repository `r.git`, and a work tree `w` with two commits pushed.
async fn with_two_commits(dir: &Path) -> (Repository, ObjectId, ObjectId) {
    let repository = Repository::new(program(dir), dir.join("r.git"));
    repository.init("main").await.unwrap();
    git(dir, "git clone -q r.git w; cd w; mkdir b; echo 1 > a; echo 2 > b/c; git add .; git commit -qm 1");
    git(dir, "cd w; git push -q origin HEAD:main");
    let first = git(dir, "cd w; git rev-parse HEAD");
    git(dir, "cd w; git rm -q a; echo 3 > b/c; ln -s c b/l; git add .; git commit -qm 2; git push -q origin HEAD:main");
    let second = git(dir, "cd w; git rev-parse HEAD");
    (repository, id(&first), id(&second))
}

#[tokio::test]
async fn heads_and_history() {
    let dir = tempfile::tempdir().unwrap();
    let (repository, first, second) = with_two_commits(dir.path()).await;
    assert_eq!(repository.head("main").await.unwrap(), Some(second.clone()));
    assert_eq!(repository.head("other").await.unwrap(), None);
    assert!(repository.is_ancestor(&first, &second).await.unwrap());
    assert!(!repository.is_ancestor(&second, &first).await.unwrap());
    let nobody = id(&"1".repeat(40));
    assert!(matches!(repository.is_ancestor(&nobody, &first).await, Err(GitError::Failed { .. })));
}

#[tokio::test]
async fn another_branch_to_check_out() {
    let dir = tempfile::tempdir().unwrap();
    let (repository, ..) = with_two_commits(dir.path()).await;
    git(dir.path(), "cd w; git push -q origin HEAD:trunk");
    repository.init("trunk").await.unwrap();
    assert_eq!(git(dir.path(), "git clone -q r.git again; git -C again branch --show-current"), "trunk");
    assert!(repository.init("no..branch").await.is_err());
}

#[tokio::test]
async fn differences_by_path() {
    let dir = tempfile::tempdir().unwrap();
    let (repository, first, second) = with_two_commits(dir.path()).await;
    let empty = ObjectId::empty_tree();
    let paths = async |old: &ObjectId, new: &ObjectId, path: &str| {
        let changes = repository.diff(old, new, path).await.unwrap();
        let shown = changes.iter().map(|change| {
            let sign = match (&change.old, &change.new) {
                (None, Some(new)) if new.kind == EntryKind::Symlink => "@",
                (None, _) => "+",
                (_, None) => "-",
                _ => "~",
            };
            format!("{sign}{}", String::from_utf8_lossy(&change.path))
        });
        shown.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(paths(&empty, &first, "").await, "+a +b/c");
    assert_eq!(paths(&first, &second, "").await, "-a ~b/c @b/l");
    assert_eq!(paths(&first, &second, "b").await, "~b/c @b/l");
    assert_eq!(paths(&first, &second, "*").await, "", "a path is no pattern");
    assert_eq!(paths(&second, &empty, "b").await, "-b/c -b/l");
}

#[tokio::test]
async fn contents_within_limits() {
    let dir = tempfile::tempdir().unwrap();
    let (repository, ..) = with_two_commits(dir.path()).await;
    let hash = |content: &str| {
        id(&git(&dir.path().join("r.git"), &format!("printf '{content}' | git hash-object -w --stdin")))
    };
    let (one, empty, long) = (hash("1\\n\\n2"), hash(""), hash(&"x".repeat(1001)));
    let blobs = repository.blobs(vec![one.clone(), long.clone(), empty.clone(), one.clone()], LIMITS).await.unwrap();
    assert_eq!(blobs[&one], Blob::Content("1\n\n2".into()));
    assert_eq!(blobs[&empty], Blob::Content("".into()));
    assert_eq!(blobs[&long], Blob::TooLarge(1001));
    let tight = |limits| repository.blobs(vec![one.clone(), empty.clone()], limits);
    assert!(matches!(tight(BlobLimits { blobs_max: 1, ..LIMITS }).await, Err(GitError::TooMuch { .. })));
    assert!(matches!(tight(BlobLimits { bytes_max: 3, ..LIMITS }).await, Err(GitError::TooMuch { .. })));
    let absent = repository.blobs(vec![id(&"1".repeat(40))], LIMITS).await.unwrap_err().to_string();
    assert!(absent.contains("is not there"), "{absent}");
}

#[tokio::test]
async fn objects_in_quarantine_are_seen_by_whom_they_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let (repository, first, _) = with_two_commits(dir.path()).await;
    let third = id(&git(dir.path(), "cd w; echo 4 > d; git add .; git commit -qm 3; git rev-parse HEAD"));
    assert!(repository.diff(&first, &third, "").await.is_err());
    let quarantined = repository.with_quarantine(Quarantine {
        object_directory: dir.path().join("w/.git/objects").into(),
        alternates: dir.path().join("r.git/objects").into(),
    });
    assert_eq!(quarantined.diff(&first, &third, "d").await.unwrap().len(), 1);
}

/// Git hangs, whatever it is asked: each way of asking has an end, and leaves no
/// process.
#[tokio::test]
async fn a_git_that_hangs_is_given_up_and_ended() {
    let dir = tempfile::tempdir().unwrap();
    let (_, first, second) = with_two_commits(dir.path()).await;
    std::fs::create_dir(dir.path().join("hanging")).unwrap();
    let script = dir.path().join("hanging/git");
    // In one step, so that whoever sees the file sees all of it.
    let text =
        format!("#!/bin/sh\necho $$ > '{0}/new' && mv '{0}/new' '{0}/pid'\nexec sleep 3600\n", dir.path().display());
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let search_path = format!("{}:{}", dir.path().join("hanging").display(), std::env::var("PATH").unwrap());
    let program = Program { search_path: search_path.into(), ..program(dir.path()) };
    let hanging = &Repository::new(program, dir.path().join("r.git"));
    let update = |at| RefUpdate { name: format!("refs/heads/{at}"), old: None, new: Some(first.clone()) };
    let updates: Vec<_> = (0..20).map(update).collect();
    let asked: [(&str, Asked<'_>); 4] = [
        ("an answer", Box::pin(async { hanging.head("main").await.map(drop) })),
        ("an answer of any length", Box::pin(async { hanging.authors(Some(&first), &second, "").await.map(drop) })),
        ("a move", Box::pin(async { hanging.move_refs(&updates[..1]).await.map(drop) })),
        ("a move in steps", Box::pin(async { hanging.move_refs(&updates).await.map(drop) })),
    ];
    for (what, asked) in asked {
        let pid = dir.path().join("pid");
        let given_up = async {
            while !pid.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            // It hangs. From here on nobody waits.
            tokio::time::pause();
            std::future::pending::<()>().await;
        };
        let error = tokio::select! {
            asked = asked => asked.unwrap_err(),
            () = given_up => unreachable!(),
        };
        tokio::time::resume();
        assert!(matches!(error, GitError::TooSlow { seconds: 120, .. }), "{what}: {error}");
        let process = format!("/proc/{}/stat", std::fs::read_to_string(&pid).unwrap().trim());
        // `PID (NAME) STATE …`
        while std::fs::read_to_string(&process).is_ok_and(|stat| !stat.contains(") Z")) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        std::fs::remove_file(pid).unwrap();
    }
}

type Asked<'a> = Pin<Box<dyn Future<Output = Result<(), GitError>> + 'a>>;
