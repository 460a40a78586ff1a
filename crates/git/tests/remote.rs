//! Hosts that misbehave, and our own ends of the conversation. Hosts that
//! behave are real servers in the tests of the program.

// A helper that fails is a test that fails.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use tidegate_git::credentials::{Credentials, Secret};
use tidegate_git::{Access, FetchError, ObjectId, PlainHttp, Program, Remote, RemoteLimits, RemoteUrl, Repository};

const INTO: &str = "refs/tidegate/fetched";

async fn repository(dir: &Path) -> Repository {
    let program = Program { git: "git".into(), search_path: std::env::var_os("PATH").unwrap(), home: dir.to_owned() };
    let repository = Repository::new(program, dir.join("a folder.git"));
    repository.init("main").await.unwrap();
    repository
}

fn remote(url: &str, limits: RemoteLimits) -> Remote {
    let url = RemoteUrl::parse(url, PlainHttp::LoopbackOnly).unwrap();
    let credentials = Credentials::Basic { username: Secret::new("ada"), password: Secret::new("hidden") };
    Remote { url, access: Access { credentials, ca: None }, limits }
}

/// Calls `talk` for each connection, until the test ends.
fn host(talk: impl Fn(TcpStream, &str) + Send + 'static) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = format!("http://{}/r.git", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut request = [0; 8192];
            let mut stream = stream;
            let count = stream.read(&mut request).unwrap_or_default();
            talk(stream, &String::from_utf8_lossy(&request[..count]));
        }
    });
    address
}

fn answer(stream: &mut TcpStream, head: &str) {
    let _ = stream.write_all(format!("HTTP/1.1 {head}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").as_bytes());
}

async fn reason(url: &str, limits: RemoteLimits) -> (&'static str, String) {
    let dir = tempfile::tempdir().unwrap();
    let repository = repository(dir.path()).await;
    let error = repository.fetch(&remote(url, limits), "main", INTO).await.unwrap_err();
    assert!(dir.path().join("credentials").read_dir().unwrap().next().is_none(), "credentials were left");
    let FetchError::Remote(error) = error else { panic!("{error}") };
    assert!(!format!("{error} {error:?}").contains("hidden"), "{error:?}");
    (error.reason(), error.to_string())
}

#[tokio::test]
async fn refusals_have_their_reason() {
    for (head, expected) in [
        ("401 Unauthorized\r\nWWW-Authenticate: Basic realm=x", "AuthenticationFailed"),
        ("403 Forbidden", "AuthenticationFailed"),
        ("404 Not Found", "RepositoryNotFound"),
        ("500 Oops", "Unreachable"),
        ("302 Found\r\nLocation: file:///etc/passwd", "Unreachable"),
    ] {
        let url = host(move |mut stream, _| answer(&mut stream, head));
        let (reason, message) = reason(&url, RemoteLimits::default()).await;
        assert_eq!(reason, expected, "{head}: {message}");
    }
    // Somebody's port, where nobody listens.
    let nobody = tokio::net::TcpSocket::new_v4().unwrap();
    nobody.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = nobody.local_addr().unwrap();
    let (reason, message) = reason(&format!("http://{address}/a"), RemoteLimits::default()).await;
    assert_eq!(reason, "Unreachable", "{message}");
}

/// The credentials of one host are not those of the one that it points to.
#[tokio::test]
async fn a_redirect_to_another_host_gets_no_credentials() {
    let (sender, seen) = std::sync::mpsc::channel();
    let other = host(move |mut stream, request| {
        sender.send(request.to_owned()).unwrap();
        answer(&mut stream, "401 Unauthorized\r\nWWW-Authenticate: Basic realm=x");
    });
    let target = other.replace("127.0.0.1", "localhost");
    let url = host(move |mut stream, request| {
        let head = if request.contains("Authorization: Basic") {
            format!("302 Found\r\nLocation: {target}/info/refs?service=git-upload-pack")
        } else {
            "401 Unauthorized\r\nWWW-Authenticate: Basic realm=x".to_owned()
        };
        answer(&mut stream, &head);
    });
    let (reason, message) = reason(&url, RemoteLimits::default()).await;
    assert_eq!(reason, "AuthenticationFailed", "{message}");
    let requests: Vec<String> = seen.try_iter().collect();
    assert!(!requests.is_empty(), "the redirect was followed");
    assert!(!requests.iter().any(|request| request.contains("Authorization")), "{requests:?}");
}

#[tokio::test]
async fn a_host_that_stalls_or_drips_is_given_up() {
    let dripping = host(|mut stream, _| {
        std::thread::spawn(move || {
            let _ =
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\n");
            while stream.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(200));
            }
        });
    });
    let silent = host(|stream, _| std::mem::forget(stream));
    for url in [dripping, silent] {
        let stall = RemoteLimits { stall_max: Duration::from_secs(1), ..RemoteLimits::default() };
        assert_eq!(reason(&url, stall).await.0, "TimedOut");
        let short = RemoteLimits { time_max: Duration::from_secs(1), ..RemoteLimits::default() };
        let (reason, message) = reason(&url, short).await;
        assert_eq!(reason, "TimedOut");
        assert_eq!(message, "it took longer than 1 s");
    }
}

#[tokio::test]
async fn a_ref_moves_only_from_where_it_is_expected() {
    let dir = tempfile::tempdir().unwrap();
    let repository = repository(dir.path()).await;
    let script = "git() { command git --git-dir='a folder.git' -c user.name=a -c user.email=b \"$@\"; }; \
                  t=$(git mktree </dev/null); git commit-tree -m 1 $t; git commit-tree -m 2 $t";
    let output = std::process::Command::new("sh").args(["-ec", script]).current_dir(dir.path()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let ids: Vec<ObjectId> = text.lines().filter_map(ObjectId::parse).collect();
    let [first, second] = &ids[..] else { panic!("{}", String::from_utf8_lossy(&output.stderr)) };
    let name = "refs/heads/main";
    repository.update_ref(name, None, first).await.unwrap();
    assert!(repository.update_ref(name, None, second).await.is_err());
    assert!(repository.update_ref(name, Some(second), second).await.is_err());
    assert_eq!(repository.head("main").await.unwrap().as_ref(), Some(first));
    repository.update_ref(name, Some(first), second).await.unwrap();
    assert_eq!(repository.resolve(name).await.unwrap().as_ref(), Some(second));
    repository.tidy().await.unwrap();
}

/// A fetch that is killed, or given up, holds its lock and has begun a pack: it
/// leaves neither, and what is not its own stays.
#[tokio::test]
async fn a_failed_fetch_takes_its_own_leftovers_along() {
    for (what, end, expected) in [("killed", "kill -9 $$", "FetchFailed"), ("given up", "sleep 3600", "TimedOut")] {
        let dir = tempfile::tempdir().unwrap();
        let repository = repository(dir.path()).await;
        let program = dir.path().join("git");
        let files = format!("{INTO}.lock refs/heads/main.lock objects/pack/tmp_pack_x objects/pack/other");
        let script = format!("#!/bin/sh\nmkdir -p refs/tidegate\ntouch {files}\n{end}\n");
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let search_path = std::env::var_os("PATH").unwrap();
        let wrapped = Program { git: program, search_path, home: dir.path().to_owned() };
        let failing = Repository::new(wrapped, repository.dir().to_owned());
        // Longer than a script takes, on a machine that is busy with others.
        let limits = RemoteLimits { time_max: Duration::from_secs(5), ..RemoteLimits::default() };
        let error = failing.fetch(&remote("http://127.0.0.1:1/a", limits), "main", INTO).await.unwrap_err();
        let FetchError::Remote(error) = error else { panic!("{what}: {error}") };
        assert_eq!(error.reason(), expected, "{what}: {error}");
        assert!(what != "killed" || error.to_string().contains("SIGKILL"), "{error}");
        let left: Vec<_> = files.split(' ').filter(|file| repository.dir().join(file).exists()).collect();
        assert_eq!(left, ["refs/heads/main.lock", "objects/pack/other"], "{what}");
    }
}
