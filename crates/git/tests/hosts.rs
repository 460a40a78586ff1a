//! Real hosts, over HTTP and over SSH.

// A helper that fails is a test that fails.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;

use tidegate_git::credentials::SecretFiles;
use tidegate_git::{Access, FetchError, ObjectId, PlainHttp, Program, Remote, RemoteLimits, RemoteUrl, Repository};
use tidegate_testkit::git_http::{GitHttp, Mode, PASSWORD, USERNAME};
use tidegate_testkit::sshd::{Sshd, generate_key};

const INTO: &str = "refs/tidegate/fetched";

/// A commit on `main` of the bare repository, with a file that does not pack.
fn commit(bare: &Path, bytes: usize) -> ObjectId {
    let script = format!(
        "t=$(head -c {bytes} /dev/urandom | git hash-object -w --stdin); t=$(printf '100644 blob %s\\ta\\n' $t | git mktree)\n\
         c=$(git -c user.name=a -c user.email=b commit-tree -m 1 $t); git update-ref refs/heads/main $c; echo $c"
    );
    let output = Command::new("sh").args(["-ec", &script]).current_dir(bare).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    ObjectId::parse(text.trim()).unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

/// `Err` with the reason of a condition.
async fn fetch(url: &str, files: &[(&str, &str)], limits: RemoteLimits) -> Result<ObjectId, (&'static str, String)> {
    let dir = tempfile::tempdir().unwrap();
    let program =
        Program { git: "git".into(), search_path: std::env::var_os("PATH").unwrap(), home: dir.path().to_owned() };
    let repository = Repository::new(program, dir.path().join("r.git"));
    repository.init("main").await.unwrap();
    let url = RemoteUrl::parse(url, PlainHttp::LoopbackOnly).unwrap();
    let files: SecretFiles = files.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect();
    let access = Access::read(Some(&files), &url).unwrap();
    let fetched = repository.fetch(&Remote { url, access, limits }, "main", INTO).await;
    let packs = dir.path().join("r.git/objects/pack");
    let names = packs.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(names.filter(|name| name.starts_with("tmp")).collect::<Vec<_>>(), Vec::<String>::new());
    assert!(dir.path().join("credentials").read_dir().unwrap().next().is_none(), "credentials were left");
    fetched.map_err(|error| match error {
        FetchError::Remote(error) => (error.reason(), error.to_string()),
        error => panic!("{error}"),
    })
}

fn reason(outcome: Result<ObjectId, (&'static str, String)>) -> &'static str {
    outcome.unwrap_err().0
}

#[tokio::test]
async fn over_http_with_a_login() {
    let host = GitHttp::start();
    let bare = host.create("a.git");
    let (url, login) = (host.url("a.git"), [("username", USERNAME), ("password", PASSWORD)]);
    let limits = RemoteLimits::default();
    assert_eq!(reason(fetch(&url, &login, limits).await), "BranchNotFound");
    let head = commit(&bare, 10);
    assert_eq!(fetch(&url, &login, limits).await, Ok(head));
    let (reason_of, message) =
        fetch(&url, &[("username", USERNAME), ("password", "hidden")], limits).await.unwrap_err();
    assert!(reason_of == "AuthenticationFailed" && !message.contains("hidden"), "{message}");
    assert_eq!(reason(fetch(&host.url("absent.git"), &login, limits).await), "RepositoryNotFound");
    host.set(Mode::Unauthorized);
    assert_eq!(reason(fetch(&url, &login, limits).await), "AuthenticationFailed");
    host.set(Mode::Down);
    assert_eq!(reason(fetch(&url, &login, limits).await), "Unreachable");
}

#[tokio::test]
async fn a_pack_beyond_the_limit_leaves_nothing() {
    let host = GitHttp::start();
    let bare = host.create("a.git");
    let login = [("username", USERNAME), ("password", PASSWORD)];
    let limits = RemoteLimits { pack_bytes_max: 1 << 20, ..RemoteLimits::default() };
    let head = commit(&bare, 900 << 10);
    assert_eq!(fetch(&host.url("a.git"), &login, limits).await, Ok(head));
    commit(&bare, 2 << 20);
    let (reason, message) = fetch(&host.url("a.git"), &login, limits).await.unwrap_err();
    assert_eq!((reason, &*message), ("TooLarge", "it is larger than 1 MiB"));
}

#[tokio::test]
async fn over_ssh_with_a_key_and_a_known_host() {
    let mut host = Sshd::start();
    let bare = host.create("a.git");
    let head = commit(&bare, 10);
    let limits = RemoteLimits::default();
    let (url, key, known) = (host.url("a.git"), host.private_key(), host.known_hosts());
    assert_eq!(fetch(&url, &[("ssh-privatekey", &key), ("known_hosts", &known)], limits).await, Ok(head.clone()));

    let keys = tempfile::tempdir().unwrap();
    let path = keys.path().join("locked");
    generate_key(&path, "open sesame");
    let locked = std::fs::read_to_string(&path).unwrap();
    let files = [("identity", &*locked), ("known_hosts", &*known), ("ssh-password", "open sesame")];
    assert_eq!(reason(fetch(&url, &files, limits).await), "AuthenticationFailed", "nobody knows this key yet");
    host.authorize(&std::fs::read_to_string(path.with_extension("pub")).unwrap());
    assert_eq!(fetch(&url, &files, limits).await, Ok(head));
    let files = [("identity", &*locked), ("known_hosts", &*known), ("ssh-password", "wrong")];
    assert_eq!(reason(fetch(&url, &files, limits).await), "AuthenticationFailed");

    let other = Sshd::start().known_hosts();
    let other = format!("{} {}", known.split(' ').next().unwrap(), other.split_once(' ').unwrap().1);
    for known in ["example.com ssh-ed25519 AAAA\n", &other] {
        let files = [("identity", &*key), ("known_hosts", known)];
        assert_eq!(reason(fetch(&url, &files, limits).await), "HostKeyUnknown", "{known}");
    }
    let files = [("identity", &*key), ("known_hosts", &*known)];
    assert_eq!(reason(fetch(&host.url("absent.git"), &files, limits).await), "RepositoryNotFound");
    host.down();
    assert_eq!(reason(fetch(&url, &files, limits).await), "Unreachable");
}
