//! Who may reach a repository, and by which of git's ways.

use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use rustix::process::Signal;

use super::super::process::{PATIENCE, Running, said};
use super::{CONTROL, CRD, Hosted, admin, git, url, widget};

#[test]
fn tokens_and_permissions() {
    let hosted = Hosted::start();
    let site = &hosted.site;
    let robot = site.say("token create --service-account default/robot").good();
    let ask = |repository: &str, token: &str| {
        let said = said(&mut git(&site.path(""), &["ls-remote", &url(site, repository, token)]));
        (said.code, said.err)
    };
    assert_eq!(ask(CONTROL, &admin(site)).0, Some(0));
    let plain = url(site, CONTROL, &admin(site));
    let plain = said(&mut git(&site.path(""), &["ls-remote", plain.trim_end_matches(".git")]));
    assert_eq!(plain.code, Some(0), "with or without .git: {}", plain.err);
    let (code, told) = ask(CONTROL, "nonsense");
    assert!(code == Some(128) && told.contains("Authentication failed"), "{told}");
    let (code, told) = ask(CONTROL, robot.trim());
    assert!(code == Some(128) && told.contains("403") && told.contains("may not fetch"), "{told}");
    // Who may not look is not told whether there is anything.
    let (_, told) = ask("system/nothing", robot.trim());
    assert!(told.contains("403") && told.contains("may not fetch"), "{told}");
    let (_, told) = ask("system/nothing", &admin(site));
    assert!(told.contains("there is no hosted repository system/nothing"), "{told}");

    let reader = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: fetch, namespace: system}\n\
                  rules:\n- {apiGroups: [tidegate.dev], resources: [repositories], verbs: [fetch]}\n---\n\
                  apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: fetch, namespace: system}\n\
                  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: fetch}\n\
                  subjects:\n- {kind: ServiceAccount, name: robot, namespace: default}\n";
    hosted.tree.write("fetch.yaml", reader).commit().pushed();
    assert_eq!(ask(CONTROL, robot.trim()).0, Some(0), "a role is in force when its push returns");
    let push = hosted.tree.git(&["push", &url(site, CONTROL, robot.trim()), "HEAD:other"]);
    assert!(push.err.contains("403") && push.err.contains("may not push"), "{}", push.err);
}

#[test]
fn a_challenge_for_git_and_a_header_for_everybody_else() {
    let hosted = Hosted::start();
    let get = |headers: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", hosted.site.port)).unwrap();
        let path = "/git/system/control.git/info/refs?service=git-upload-pack";
        write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{headers}\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let anonymous = get("");
    assert!(anonymous.starts_with("HTTP/1.1 401") && anonymous.contains("www-authenticate: Basic"), "{anonymous}");
    let bearer = get(&format!("authorization: Bearer {}\r\n", admin(&hosted.site)));
    assert!(bearer.contains("001e# service=git-upload-pack"), "{bearer}");
    let second = get(&format!("authorization: Bearer {}\r\ngit-protocol: version=2\r\n", admin(&hosted.site)));
    assert!(second.contains("000eversion 2"), "{second}");
}

/// Asks without a token first, as git does; then with one, on the same
/// connection. A challenge that git cannot answer any more it takes for a
/// refusal.
#[test]
fn a_drain_calls_no_token_wrong() {
    let mut hosted = Hosted::start_with(&["--drain-time", "1h", "--controllers=off"]);
    let port = hosted.site.port;
    let mut connections: Vec<_> = (0..2).map(|_| Asking::open(port)).collect();
    for connection in &mut connections {
        assert!(connection.ask("").starts_with("HTTP/1.1 401"));
        connection.read_until("`\n");
    }
    hosted.server.signal(Signal::TERM);
    hosted.server.err.until("draining");
    let [mut first, mut second] = <[Asking; 2]>::try_from(connections).ok().unwrap();
    let answer = first.ask(&format!("authorization: Bearer {}\r\n", admin(&hosted.site)));
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("connection: close"), "{answer}");
    let anonymous = second.ask("");
    assert!(anonymous.starts_with("HTTP/1.1 503") && anonymous.contains("retry-after: 1"), "{anonymous}");
    assert_eq!(hosted.server.wait().code(), Some(0));
}

/// However early it comes.
#[test]
fn a_good_token_is_good_from_the_first_answer() {
    let Hosted { site, mut server, .. } = Hosted::start();
    let robot = site.say("token create --service-account default/robot").good();
    let query = r#"{"query":"{ resources(apiVersion: \"v1\", kind: \"Namespace\") { resourceVersion } }"}"#;
    let of_robot = format!(
        "POST /graphql HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{query}",
        robot.trim(),
        query.len()
    );
    for _ in 0..5 {
        server.kill();
        server = Running::start(&mut site.serve_command());
        let (mut asking, answer) = Asking::first_answer(site.port, &of_robot);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let body = asking.read_until("}}");
        assert!(body.contains("resourceVersion") && !body.contains("errors"), "{body}");
    }
}

/// A connection that stays open.
struct Asking(TcpStream);

impl Asking {
    fn open(port: u16) -> Self {
        let started = Instant::now();
        loop {
            match TcpStream::connect(("127.0.0.1", port)) {
                Ok(stream) => return Self(stream),
                Err(error) => assert!(started.elapsed() < PATIENCE, "nobody listens: {error}"),
            }
        }
    }

    /// A child that the killed server had just forked may hold its port for a
    /// moment longer, and answers nothing.
    fn first_answer(port: u16, request: &str) -> (Self, String) {
        let started = Instant::now();
        loop {
            let mut asking = Self::open(port);
            match asking.try_send(request) {
                Ok(answer) => return (asking, answer),
                Err(error) => assert!(started.elapsed() < PATIENCE, "nobody answers: {error}"),
            }
        }
    }

    fn ask(&mut self, headers: &str) -> String {
        let path = "/git/system/control.git/info/refs?service=git-receive-pack";
        self.send(&format!("GET {path} HTTP/1.1\r\nhost: x\r\n{headers}\r\n"))
    }

    /// The head of the answer, with its body left to be read.
    fn send(&mut self, request: &str) -> String {
        self.try_send(request).unwrap()
    }

    fn try_send(&mut self, request: &str) -> io::Result<String> {
        self.0.write_all(request.as_bytes())?;
        self.try_read_until("\r\n\r\n")
    }

    fn read_until(&mut self, end: &str) -> String {
        self.try_read_until(end).unwrap()
    }

    fn try_read_until(&mut self, end: &str) -> io::Result<String> {
        let (mut read, mut byte) = (Vec::new(), [0]);
        while !read.ends_with(end.as_bytes()) {
            let text = || String::from_utf8_lossy(&read).into_owned();
            match self.0.read(&mut byte)? {
                0 => return Err(io::Error::other(format!("it broke off after {:?}", text()))),
                _ => read.push(byte[0]),
            }
        }
        String::from_utf8(read).map_err(io::Error::other)
    }
}

#[test]
fn a_missing_or_old_git_is_named_at_the_start() {
    use std::os::unix::fs::PermissionsExt;
    let site = super::super::process::Site::new();
    let folder = site.path("bin");
    fs::create_dir(&folder).unwrap();
    let refused = said(site.serve_command().env("PATH", &folder));
    assert!(refused.code == Some(1) && refused.err.contains("install git 2.36 or newer"), "{}", refused.err);
    fs::write(folder.join("git"), "#!/bin/sh\necho git version 2.30.2\n").unwrap();
    fs::set_permissions(folder.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    let refused = said(site.serve_command().env("PATH", &folder));
    assert!(refused.code == Some(1) && refused.err.contains("2.30.2, and 2.36 is needed"), "{}", refused.err);
}

#[test]
fn shallow_and_partial_clones() {
    let hosted = Hosted::start();
    hosted.tree.write("crd.yaml", CRD).commit();
    for size in 1..4 {
        hosted.tree.write("a.yaml", &widget("a", size)).commit();
    }
    hosted.tree.pushed();
    let source = url(&hosted.site, CONTROL, &admin(&hosted.site));
    let clone = |args: &[&str], name: &str| {
        said(&mut git(&hosted.site.path(""), &[&["clone", "-q"], args, &[&source, name]].concat())).good();
        hosted.site.path(name)
    };
    let shallow = clone(&["--depth", "1"], "shallow");
    assert_eq!(said(&mut git(&shallow, &["rev-list", "--count", "HEAD"])).good(), "1\n");
    said(&mut git(&shallow, &["fetch", "-q", "--unshallow"])).good();
    assert_eq!(said(&mut git(&shallow, &["rev-list", "--count", "HEAD"])).good(), "4\n");

    let partial = clone(&["--filter=blob:none", "--no-checkout"], "partial");
    let missing = said(&mut git(&partial, &["rev-list", "--objects", "--missing=print", "HEAD"])).good();
    assert!(missing.lines().any(|line| line.starts_with('?')), "{missing}");
    said(&mut git(&partial, &["checkout", "-q", "main"])).good();
    assert!(fs::read_to_string(partial.join("a.yaml")).unwrap().contains("size: 3"));
}

/// Git packs long requests with gzip: many refs that it has already.
#[test]
fn a_fetch_with_a_long_list_of_what_it_has() {
    let hosted = Hosted::start();
    for index in 0..60 {
        hosted.tree.write("note.txt", &index.to_string()).commit();
    }
    hosted.tree.pushed();
    let other = super::Tree::clone(&hosted.site, CONTROL, "other");
    for index in 0..60 {
        other.write("mine.txt", &index.to_string()).commit();
    }
    hosted.tree.write("note.txt", "the last").commit().pushed();
    other.git(&["pull", "-q", "--rebase", "origin", "main"]).good();
    assert!(fs::read_to_string(other.dir.join("note.txt")).unwrap().contains("the last"));
}

/// Its history ends where the clone was cut off, which the server need not know.
#[test]
fn a_push_from_a_shallow_clone() {
    let hosted = Hosted::start();
    hosted.tree.write("crd.yaml", CRD).write("a.yaml", &widget("a", 1)).commit();
    hosted.tree.write("a.yaml", &widget("a", 2)).commit().pushed();
    let source = url(&hosted.site, CONTROL, &admin(&hosted.site));
    said(&mut git(&hosted.site.path(""), &["clone", "-q", "--depth", "1", &source, "shallow"])).good();
    let shallow = super::Tree { dir: hosted.site.path("shallow") };
    let told = shallow.write("a.yaml", &widget("a", 3)).commit().pushed();
    assert!(told.contains("+0 ~1 -0 objects"), "{told}");
    // What is cut off cannot be the whole of another repository's branch.
    let other =
        "apiVersion: tidegate.dev/v1\nkind: Repository\nmetadata: {name: other, namespace: default}\nspec: {}\n";
    shallow.write("other.yaml", other).commit().pushed();
    let told = shallow.git(&["push", &url(&hosted.site, "default/other", &admin(&hosted.site)), "HEAD:draft"]);
    assert!(told.code == Some(1) && told.err.contains("missing necessary objects"), "{}", told.err);
}

#[test]
fn all_refs_of_a_push_move_or_none() {
    let hosted = Hosted::start();
    let tree = &hosted.tree;
    tree.write("crd.yaml", CRD).write("a.yaml", &widget("a", 1)).commit().pushed();
    tree.git(&["tag", "-a", "-m", "one", "v1"]).good();
    let told = tree.git(&["push", "origin", "HEAD:refs/heads/draft", "v1"]);
    assert!(told.code == Some(0) && told.err.contains("stored; only main is projected"), "{}", told.err);
    let refs = || said(&mut git(&hosted.bare(), &["for-each-ref", "--format=%(refname)"])).good();
    assert_eq!(refs(), "refs/heads/draft\nrefs/heads/main\nrefs/tags/v1\n");
    // One of them is refused, and so all are.
    tree.write("a.yaml", &widget("a", 101)).commit();
    let told = tree.git(&["push", "origin", "HEAD:main", "HEAD:refs/heads/second"]);
    assert!(told.code == Some(1) && told.err.contains("a.yaml:5: spec.size"), "{}", told.err);
    assert_eq!(told.err.matches("[remote rejected]").count(), 2, "{}", told.err);
    assert!(!refs().contains("second"));
    tree.git(&["push", "-q", "origin", ":draft", ":v1"]).good();
    assert_eq!(refs(), "refs/heads/main\n");
    let told = tree.git(&["push", "origin", "HEAD:refs/heads/a/../b"]);
    assert_ne!(told.code, Some(0));
    let told = tree.git(&["push", "origin", "HEAD~1:refs/heads/main/below"]);
    assert!(told.code == Some(1) && told.err.contains("refs/heads/main"), "{}", told.err);
}

/// Each push leaves a pack, and many are made into few.
#[test]
fn packs_of_many_pushes() {
    let hosted = Hosted::start();
    hosted.tree.write("crd.yaml", CRD).commit().pushed();
    let packs = || {
        let entries = fs::read_dir(hosted.bare().join("objects/pack")).unwrap();
        entries.filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|end| end == "pack")).count()
    };
    let mut most = 0;
    for size in 1..40 {
        hosted.tree.write("a.yaml", &widget("a", size)).commit().pushed();
        most = most.max(packs());
    }
    // The last push may have returned before its packs were looked at.
    crate::process::until("there are few", || packs() <= 33);
    assert!(most >= 30, "each push left one: {most}");
    said(&mut git(&hosted.bare(), &["fsck", "--full", "--strict"])).good();
    assert_eq!(hosted.field("widget a", "/spec/size"), "39");
}
