//! Remote repositories: another server of ours is the host.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use super::super::process::{Said, Site, said, until_seen};
use super::recovery::ready;
use super::{CRD, Hosted, Tree, admin, git, widget};

/// A host with the repository `default/source`, where anything can be pushed,
/// and a server that follows it as `default/mirror`.
struct Pair {
    host: Hosted,
    source: Tree,
    near: Hosted,
}

/// It projects a folder that is never there, so that nothing is refused.
const SOURCE: &str = "apiVersion: tidegate.dev/v1\nkind: Repository\nmetadata: {name: source, namespace: default}\n\
                      spec: {path: unused, allowForce: true}\n";

fn mirror(remote: &str) -> String {
    format!(
        "apiVersion: tidegate.dev/v1\nkind: Repository\nmetadata: {{name: mirror, namespace: default}}\n\
         spec:\n  namespaces: [default]\n  remote: {{{remote}}}\n"
    )
}

impl Pair {
    fn start() -> Self {
        let host = Hosted::start();
        host.tree.write("source.yaml", SOURCE).commit().pushed();
        let source = Tree::clone(&host.site, "default/source", "source");
        source.write("a.yaml", &widget("a", 1)).commit().pushed();

        let site = Site::new();
        let server = site.serve_with(&["--secrets-dir", "secrets"]);
        let tree = Tree::clone(&site, super::CONTROL, "control");
        let pair = Self { host, source, near: Hosted { site, server, tree } };
        pair.secret("login", &[("username", "anybody"), ("password", &admin(&pair.host.site))]);
        pair.near.tree.write("crd.yaml", CRD);
        pair.follow(&format!("url: '{}', secretRef: {{name: login}}", pair.url()));
        // The first look has happened; the next comes when it is asked for.
        pair.wait("/status/observedCommit", &pair.source.head());
        pair
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/git/default/source.git", self.host.site.port)
    }

    fn follow(&self, remote: &str) {
        self.near.tree.write("mirror.yaml", &mirror(&format!("{remote}, interval: 1h"))).commit().pushed();
    }

    fn secret(&self, name: &str, files: &[(&str, &str)]) {
        let folder = self.near.site.path("secrets/default").join(name);
        fs::create_dir_all(&folder).unwrap();
        for (key, text) in files {
            fs::write(folder.join(key), text).unwrap();
        }
    }

    fn status(&self) -> serde_json::Value {
        let text = self.near.site.say("get repository mirror -o json").good();
        serde_json::from_str::<serde_json::Value>(&text).unwrap()["status"].take()
    }

    /// Until the Repository says so.
    fn wait(&self, pointer: &str, expected: &str) {
        until_seen(&format!("{pointer} is {expected}"), || {
            let status = serde_json::json!({"status": self.status()});
            let is_so = status.pointer(pointer).and_then(serde_json::Value::as_str) == Some(expected);
            is_so.then_some(()).ok_or_else(|| format!("{status:#}"))
        });
    }

    fn condition(&self, kind: &str) -> serde_json::Value {
        let status = self.status();
        let conditions = status["conditions"].as_array().unwrap().clone();
        conditions.into_iter().find(|condition| condition["type"] == kind).unwrap_or_default()
    }

    /// What the webhook's caller gets: the code and the body.
    fn call(&self, name: &str, headers: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.near.site.port)).unwrap();
        let fixed = format!("host: x\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
        write!(stream, "POST /hooks/git/default/{name} HTTP/1.1\r\n{fixed}{headers}\r\n{body}").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), body.to_owned())
    }

    fn sync(&self) -> Said {
        self.near.site.say("repo sync default/mirror")
    }

    fn synced(&self) -> String {
        self.sync().good()
    }

    fn failed(&self, reason: &str) -> String {
        let said = self.sync();
        assert_eq!(said.code, Some(1), "{}{}", said.out, said.err);
        assert!(said.err.starts_with(&format!("default/mirror: {reason}: ")), "{}", said.err);
        said.out + &said.err
    }

    fn widgets(&self) -> String {
        self.near.site.say("get widgets -o name").good().trim().replace('\n', " ")
    }
}

#[test]
fn a_remote_is_followed_through_good_and_bad_commits() {
    let pair = Pair::start();
    let first = pair.source.head();
    let told = pair.synced();
    assert!(told.starts_with(&format!("{first} is in force\n+0 ~0 -0 objects, resourceVersion ")), "{told}");
    assert_eq!(pair.near.field("repository mirror", "/status/objects"), "1");

    pair.source.write("b.yaml", &widget("b", 101)).write("a.yaml", &widget("a", 2)).commit().pushed();
    let told = pair.failed("Invalid");
    assert!(told.contains("b.yaml:5: spec.size: ") && told.contains("the last good state stays in force"), "{told}");
    assert_eq!(pair.near.field("widget a", "/spec/size"), "1");
    assert_eq!(ready(pair.near.site.port).0, 200);
    let clone = Tree::clone(&pair.near.site, "default/mirror", "clone");
    assert_eq!(clone.head(), first, "what is in force is what can be cloned");

    pair.source.write("b.yaml", &widget("b", 100)).commit().pushed();
    assert!(pair.synced().contains("+1 ~1 -0 objects"));
    assert_eq!(pair.widgets(), "widgets.example.com/a widgets.example.com/b");
    clone.git(&["pull", "-q"]).good();
    assert_eq!(clone.head(), pair.source.head());
    let refused = clone.write("c.yaml", "a: 1").commit().push(&[]);
    let expected = format!("default/mirror is fetched from {}: push there", pair.url());
    assert!(refused.code != Some(0) && refused.err.contains(&expected), "{}", refused.err);

    // History that is rewritten there projects the difference of the trees.
    pair.source.git(&["reset", "-q", "--hard", &first]).good();
    pair.source.write("c.yaml", &widget("c", 1)).commit();
    assert_eq!(pair.source.push(&["--force"]).code, Some(0));
    assert!(pair.synced().contains("+1 ~1 -1 objects"));
    assert_eq!(pair.widgets(), "widgets.example.com/a widgets.example.com/c");
}

#[test]
fn what_keeps_a_remote_from_being_fetched_changes_nothing() {
    let mut pair = Pair::start();
    pair.synced();
    let secret = "secretRef: {name: login}";
    pair.secret("login", &[("password", "wrong")]);
    let told = pair.failed("AuthenticationFailed");
    assert!(told.contains("check the secret") && !told.contains("wrong"), "{told}");
    // A rotated secret counts at once.
    pair.secret("login", &[("password", &admin(&pair.host.site))]);
    pair.synced();
    pair.secret("half", &[("username", "anybody")]);
    for (remote, reason) in [
        (format!("url: '{}'", pair.url()), "AuthenticationFailed"),
        (format!("url: '{}', secretRef: {{name: absent}}", pair.url()), "SecretNotFound"),
        (format!("url: '{}', secretRef: {{name: half}}", pair.url()), "SecretInvalid"),
        (format!("url: '{}', branch: absent, {secret}", pair.url()), "BranchNotFound"),
        (format!("url: '{}/absent.git', {secret}", pair.url()), "RepositoryNotFound"),
        ("url: 'git@example.com:a.git'".into(), "SecretNotFound"),
    ] {
        pair.follow(&remote);
        pair.failed(reason);
        assert_eq!(pair.widgets(), "widgets.example.com/a");
    }
    // To another repository, whose history is its own.
    pair.host.tree.write("other.yaml", &SOURCE.replace("name: source", "name: other")).commit().pushed();
    let other = Tree::clone(&pair.host.site, "default/other", "other");
    other.write("b.yaml", &widget("b", 1)).commit().pushed();
    pair.follow(&format!("url: '{}', {secret}", pair.url().replace("source", "other")));
    pair.synced();
    assert_eq!(pair.widgets(), "widgets.example.com/b");

    let port = pair.host.site.port;
    pair.host.server.signal(rustix::process::Signal::KILL);
    pair.host.server.wait();
    let told = pair.failed("Unreachable");
    assert!(told.contains(&format!("port {port}")) || told.contains("Connection refused"), "{told}");
    assert_eq!(pair.widgets(), "widgets.example.com/b");
    // The restarted server shows the same, without the host.
    pair.near.server.signal(rustix::process::Signal::KILL);
    pair.near.server.wait();
    pair.near.server = pair.near.site.serve_with(&["--secrets-dir", "secrets"]);
    assert_eq!(pair.widgets(), "widgets.example.com/b");
    assert_eq!(ready(pair.near.site.port).0, 200);
}

/// Refused when it is pushed. What was pushed under another configuration is
/// in force, and says that it cannot be fetched.
#[test]
fn an_address_that_the_server_does_not_fetch_from() {
    let mut pair = Pair::start();
    pair.synced();
    let plain = mirror("url: 'http://example.com/a.git', interval: 1h");
    let refused = pair.near.tree.write("mirror.yaml", &plain).commit().refused();
    let told =
        "mirror.yaml:6: spec.remote.url: http:// to example.com would send everything in the open: use https or ssh";
    assert!(refused.contains(told) && refused.contains("remote.allow_http"), "{refused}");

    pair.near.server.kill();
    let bare = pair.near.bare();
    said(&mut git(&pair.near.tree.dir, &["push", "-q", bare.to_str().unwrap(), "HEAD:main"])).good();
    pair.near.server = pair.near.site.serve_with(&["--secrets-dir", "secrets"]);
    assert_eq!(ready(pair.near.site.port).0, 200);
    pair.failed("InvalidURL");
    assert_eq!(pair.widgets(), "widgets.example.com/a");
}

/// `printf '{"ref": "refs/heads/main"}' | openssl dgst -sha256 -hmac shared`
const BODY_SIGNED: &str = "ee6c696203e76da39722a943f06143cc0378b3da8e1905a2ecc07a012582b57a";

#[test]
fn a_webhook_is_a_fetch_and_the_object_tells_what_came_of_it() {
    let pair = Pair::start();
    pair.secret("login", &[("webhook", "shared\n")]);
    let body = r#"{"ref": "refs/heads/main"}"#;
    let gitlab = "x-gitlab-event: Push Hook\r\nx-gitlab-token: shared\r\n";
    pair.source.write("b.yaml", &widget("b", 7)).commit().pushed();
    let (code, told) = pair.call("mirror", gitlab, body);
    assert_eq!((code, &*told), (202, r#"{"result":"a fetch is on its way"}"#));
    pair.wait("/status/observedCommit", &pair.source.head());
    assert_eq!(pair.near.field("widget b", "/spec/size"), "7");
    let status = pair.status();
    assert_eq!(status["syncHandledAt"], status["syncRequestedAt"]);
    assert_eq!((&status["objects"], &status["files"]), (&2.into(), &2.into()));
    assert_eq!(pair.condition("Ready")["status"], "True");

    // The other hosts sign the body instead.
    for (signature, size) in
        [("x-github-event: push\r\nx-hub-signature-256: sha256=", 8), ("x-gitea-event: push\r\nx-gitea-signature: ", 9)]
    {
        pair.source.write("b.yaml", &widget("b", size)).commit().pushed();
        assert_eq!(pair.call("mirror", &format!("{signature}{BODY_SIGNED}\r\n"), body).0, 202);
        pair.wait("/status/observedCommit", &pair.source.head());
        assert_eq!(pair.call("mirror", &format!("{signature}{}\r\n", BODY_SIGNED.replace('0', "1")), body).0, 401);
    }
    let status = pair.status();

    // A bad commit: named at its line, and healed by the next.
    pair.source.write("b.yaml", &widget("b", 101)).commit().pushed();
    pair.call("mirror", gitlab, body);
    pair.wait("/status/attemptedCommit", &pair.source.head());
    let synced = pair.condition("Synced");
    assert_eq!((&synced["status"], &synced["reason"]), (&"False".into(), &"Invalid".into()));
    assert!(synced["message"].as_str().unwrap().contains("b.yaml:5: spec.size: "), "{synced}");
    assert_eq!(pair.status()["observedCommit"], status["observedCommit"]);
    pair.source.write("b.yaml", &widget("b", 100)).commit().pushed();
    pair.call("mirror", gitlab, body);
    pair.wait("/status/observedCommit", &pair.source.head());
    assert_eq!(pair.condition("Synced")["status"], "True");

    // Whoever asks by hand finds it on the object, too.
    pair.source.write("b.yaml", &widget("b", 102)).commit().pushed();
    pair.failed("Invalid");
    pair.wait("/status/attemptedCommit", &pair.source.head());
    assert_eq!(pair.condition("Synced")["reason"], "Invalid");
    pair.source.write("b.yaml", &widget("b", 99)).commit().pushed();
    pair.synced();
    pair.wait("/status/observedCommit", &pair.source.head());

    // Whoever does not know the secret learns nothing.
    let strip = |(code, body): (u16, String)| (code, body.split("requestId").next().unwrap().to_owned());
    let refused = strip(pair.call("mirror", &gitlab.replace("shared", "other"), body));
    assert_eq!(refused.0, 401);
    assert_eq!(strip(pair.call("absent", gitlab, body)), refused);
    assert_eq!(strip(pair.call("mirror", "x-github-event: push\r\n", body)), refused);
    let other = r#"{"ref": "refs/heads/other"}"#;
    assert_eq!(pair.call("mirror", gitlab, other), (202, r#"{"result":"nothing to do"}"#.to_owned()));
    // A rotated secret counts at once.
    pair.secret("login", &[("webhook", "rotated")]);
    assert_eq!(pair.call("mirror", gitlab, body).0, 401);
    assert_eq!(pair.call("mirror", &gitlab.replace("shared", "rotated"), body).0, 202);
}

#[test]
fn a_host_with_tls_of_its_own_authority_and_a_bearer_token() {
    let mut pair = Pair::start();
    pair.source.write("b.yaml", &widget("b", 2)).commit().pushed();
    pair.host.server.kill();
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    fs::write(pair.host.site.path("tls.crt"), certified.cert.pem()).unwrap();
    fs::write(pair.host.site.path("tls.key"), certified.signing_key.serialize_pem()).unwrap();
    pair.host.server = pair.host.site.serve_with(&["--tls-cert", "tls.crt", "--tls-key", "tls.key"]);
    let url = format!("https://localhost:{}/git/default/source.git", pair.host.site.port);
    let token = admin(&pair.host.site);
    pair.secret("untrusting", &[("bearer", &token)]);
    pair.secret("stranger", &[("bearer", "no-token"), ("ca.crt", &certified.cert.pem())]);
    pair.secret("trusting", &[("bearer", &token), ("ca.crt", &certified.cert.pem())]);

    pair.follow(&format!("url: '{url}', secretRef: {{name: untrusting}}"));
    let told = pair.failed("CertificateUntrusted");
    assert!(told.contains("certificate") && !told.contains(&token), "{told}");
    pair.follow(&format!("url: '{url}', secretRef: {{name: stranger}}"));
    pair.failed("AuthenticationFailed");
    assert_eq!(pair.widgets(), "widgets.example.com/a");
    pair.follow(&format!("url: '{url}', secretRef: {{name: trusting}}"));
    pair.synced();
    assert_eq!(pair.widgets(), "widgets.example.com/a widgets.example.com/b");
}
