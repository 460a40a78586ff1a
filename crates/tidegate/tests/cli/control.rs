//! `tidegate control` as people run it: health, its token, a server that is
//! away.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use rustix::process::Signal;
use tidegate_testkit::daemon::free_port;

use super::git::Hosted;
use super::process::{QUIET, Running, Said, Site, until};

fn control(site: &Site, flags: &str) -> Running {
    Running::start(&mut site.client(&format!("control {flags}")))
}

/// `None` if nobody answers.
fn get(port: u16, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let status = text.split(' ').nth(1)?.parse().ok()?;
    Some((status, text.split_once("\r\n\r\n")?.1.to_owned()))
}

fn warnings(log: &str) -> Vec<&str> {
    log.lines().filter(|line| line.contains("\"WARN\"") || line.contains("\"ERROR\"")).collect()
}

fn refused(site: &Site, flags: &str, expected: &[&str]) {
    let Said { code, err, .. } = site.say(&format!("control {flags}"));
    assert_eq!(code, Some(1), "{flags}: {err}");
    for text in expected {
        assert!(err.contains(text), "{flags}: {err}");
    }
}

#[test]
fn health_and_metrics() {
    let site = Site::new();
    let _server = site.serve_with(QUIET);
    let port = free_port();
    let mut manager = control(&site, &format!("--listen 127.0.0.1:{port}"));
    manager.err.until("\"leading\"");
    assert_eq!(get(port, "/livez"), Some((200, "ok\n".into())));
    assert_eq!(get(port, "/readyz").unwrap().0, 200);
    until("a reconcile is counted", || {
        let (status, text) = get(port, "/metrics").unwrap();
        assert_eq!(status, 200);
        text.contains("tidegate_controller_leading 1") && text.contains("tidegate_controller_reconciles_total{")
    });
    let (status, text) = get(port, "/graphql").unwrap();
    assert!(status == 404 && text.contains("/livez, /readyz and /metrics"), "{text}");
    manager.signal(Signal::TERM);
    assert!(manager.wait().success());
}

#[test]
fn what_is_wrong_is_said_at_the_start() {
    let site = Site::new();
    let _server = site.serve_with(QUIET);
    fs::write(site.path("empty.token"), "\n").unwrap();
    fs::write(site.path("words.token"), "two words").unwrap();
    refused(&site, "--token-file missing.token", &["missing.token", "tidegate token create"]);
    refused(&site, "--token-file empty.token", &["empty.token is empty", "tidegate token create"]);
    refused(&site, "--token-file words.token", &["words.token does not hold a token"]);
    refused(
        &site,
        "--listen 0.0.0.0:1",
        &["0.0.0.0:1 is not a loopback address, and health and metrics", "--allow-plaintext"],
    );
    let taken = format!("--listen 127.0.0.1:{}", site.port);
    refused(&site, &taken, &["is in use", "--listen"]);
    assert_eq!(site.say("control --log-format loud").code, Some(2));
}

/// By `serve` as well; a volume may come later, so it is no refusal.
#[test]
fn a_directory_of_secrets_that_is_not_there_is_warned_about() {
    let site = Site::new();
    let mut server = Running::start(site.serve_command().args(QUIET).args(["--secrets-dir", "nosuch"]));
    server.err.until("the directory of secrets nosuch cannot be read");
    server.err.until("\"message\":\"ready\"");
    control(&site, "--secrets-dir nosuch").err.until("the directory of secrets nosuch cannot be read");
}

#[test]
fn logs_for_people() {
    let site = Site::new();
    let _server = site.serve_with(QUIET);
    let mut manager = control(&site, "--log-format human");
    let line = manager.err.until("the controller manager runs");
    assert!(!line.starts_with('{'), "{line}");
}

/// From before its first start, and again in the middle of its work.
#[test]
fn a_server_that_is_away_is_one_line() {
    let site = Site::new();
    // It makes the token.
    drop(site.serve_with(QUIET));
    let port = free_port();
    let mut manager = control(&site, &format!("--listen 127.0.0.1:{port}"));
    let line = manager.err.until("the server does not answer");
    assert!(line.contains(&format!("127.0.0.1:{}", site.port)) && !line.contains("IO error"), "{line}");
    until("it is not ready", || get(port, "/readyz").is_some_and(|(status, _)| status == 503));
    assert_eq!(get(port, "/livez").unwrap().0, 200);
    let mut server = site.serve_with(QUIET);
    manager.err.until("the server answers again");
    manager.err.until("\"leading\"");
    until("it is ready", || get(port, "/readyz").is_some_and(|(status, _)| status == 200));

    server.signal(Signal::KILL);
    server.wait();
    until("it notices", || get(port, "/readyz").is_some_and(|(status, _)| status == 503));
    let server = site.serve_with(QUIET);
    manager.err.until("\"leading\"");
    manager.signal(Signal::TERM);
    assert!(manager.wait().success());
    let log = manager.err.rest();
    // A lease that ended meanwhile, where a start takes that long, is its own matter.
    let is_term = |line: &&str| line.contains("the term has ended");
    let (terms, outages): (Vec<_>, Vec<_>) = warnings(&log).into_iter().partition(is_term);
    assert!(outages.len() <= 2 && terms.len() <= 1, "more than a line each: {:#?}", warnings(&log));
    drop(server);
}

#[test]
fn a_refused_token_is_one_line_and_its_successor_is_read() {
    let site = Site::new();
    let _server = site.serve_with(QUIET);
    fs::write(site.path("manager.token"), "stale").unwrap();
    let mut manager = control(&site, "--token-file manager.token");
    manager.err.until("the server refuses the token");
    let made = site.say("token create --service-account system/controller-manager").good();
    fs::write(site.path("manager.token"), made).unwrap();
    manager.err.until("\"leading\"");
    manager.signal(Signal::TERM);
    assert!(manager.wait().success());
    let log = manager.err.rest();
    assert_eq!(warnings(&log).len(), 1, "{:#?}", warnings(&log));
}

const LEASES_ALONE: &str = "\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: leases-alone}
rules:
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [patch]}
";

/// Binds the account `default/robot`, which may read everything already.
fn binding(role: &str) -> String {
    format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {{name: more-{}}}\n\
         roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: '{role}'}}\n\
         subjects: [{{kind: ServiceAccount, name: robot, namespace: default}}]\n",
        role.replace(':', "-")
    )
}

/// Step by step: each line names what is missing then, and no other comes.
#[test]
fn a_wrong_role_is_a_line_for_each_thing_that_is_missing() {
    let Hosted { site, server, tree } = Hosted::start_with(QUIET);
    site.say("token create --service-account default/robot -o robot.token").good();
    // It asks again after a third of that; a term does not end by itself, also on a busy machine.
    let mut manager = control(&site, "--token-file robot.token --lease-duration 10s");
    let remedy = "bind it to the ClusterRole `system:controller-manager`";
    let line = manager.err.until(remedy);
    assert!(line.contains("\"missing\":\"patch leases.coordination.k8s.io\""), "{line}");
    assert!(line.contains("system:serviceaccount:default:robot"), "{line}");

    tree.write("role.yaml", LEASES_ALONE).write("leases.yaml", &binding("leases-alone")).commit().pushed();
    manager.err.until("what the server refused is allowed now");
    let line = manager.err.until(remedy);
    assert!(line.contains("\"missing\":\"patch controllerstates.tidegate.dev\""), "{line}");

    tree.write("all.yaml", &binding("system:controller-manager")).commit().pushed();
    manager.err.until("what the server refused is allowed now");
    manager.err.until("\"leading\"");
    manager.signal(Signal::TERM);
    assert!(manager.wait().success());
    let log = manager.err.rest();
    assert_eq!(warnings(&log).len(), 2, "{:#?}", warnings(&log));
    assert_eq!(log.matches("\"leading\"").count(), 1, "{log}");
    drop(server);
}

/// A name is for people: who has which lease is told apart by more than that.
#[test]
fn two_managers_of_one_name_do_not_fight() {
    let site = Site::new();
    let _server = site.serve_with(QUIET);
    let named = |flags: &str| control(&site, &format!("--holder same --lease-duration 10s{flags}"));
    let mut first = named("");
    let leading = first.err.until("\"leading\"");
    let mut second = named("");
    let line = second.err.until("another manager leads: standing by");
    let holder = |line: &str, field: &str| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line[field].as_str().unwrap_or_else(|| panic!("no {field} in {line}")).to_owned()
    };
    let (ours, theirs) = (holder(&leading, "holder"), holder(&line, "leader"));
    assert!(ours == theirs && ours.starts_with("same-"), "{leading} {line}");
    // It stays so for more than a term: nobody takes it from the other.
    let before = lease(&site);
    until("the lease was renewed", || lease(&site)["renewTime"] != before["renewTime"]);
    assert_eq!(lease(&site)["leaseTransitions"], before["leaseTransitions"]);
    first.signal(Signal::KILL);
    first.wait();
    let leading = second.err.until("\"leading\"");
    assert_ne!(holder(&leading, "holder"), ours);
    second.signal(Signal::TERM);
    assert!(second.wait().success());
    assert_eq!(second.err.rest().matches("\"leading\"").count(), 1);
}

fn lease(site: &Site) -> serde_json::Value {
    let text = site.say("get leases controller-manager -n system -o json").good();
    serde_json::from_str::<serde_json::Value>(&text).unwrap()["spec"].take()
}
