//! `tidegate serve` as a process: what it creates, refuses, and how it ends.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use rustix::process::Signal;
use tidegate_testkit::daemon::free_port;

use super::process::{Running, Site, said};

#[test]
fn the_first_start_creates_what_the_second_finds() {
    let site = Site::new();
    let mut server = site.serve();
    let mode = |name: &str| fs::metadata(site.path("tidegate-data").join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("admin.token"), mode("signing.key"), mode("")), (0o600, 0o600, 0o700));
    let token = fs::read_to_string(site.path("tidegate-data/admin.token")).unwrap();
    let namespaces = site.say("get ns -o name").good();
    assert_eq!(namespaces, "namespaces/default\nnamespaces/system\n");

    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(0));
    let log = server.err.rest();
    assert!(log.contains("admin.token") && log.contains(&format!("http://127.0.0.1:{}/graphql", site.port)), "{log}");
    assert!(!log.contains(token.trim()), "the token is in the log");

    let _again = site.serve();
    assert_eq!(fs::read_to_string(site.path("tidegate-data/admin.token")).unwrap(), token);
}

#[test]
fn a_second_process_is_refused_and_told_why() {
    let site = Site::new();
    let server = site.serve();
    let same_directory = said(site.serve_command().args(["--listen", &format!("127.0.0.1:{}", free_port())]));
    assert_eq!(same_directory.code, Some(1));
    let owner = format!("in use by process {}", server.pid());
    assert!(
        same_directory.err.contains(&owner) && same_directory.err.contains("tidegate-data"),
        "{}",
        same_directory.err
    );

    let same_port = said(site.serve_command().args(["--data-dir", "other"]));
    assert_eq!(same_port.code, Some(1));
    assert!(same_port.err.contains("in use") && same_port.err.contains("--listen"), "{}", same_port.err);
    assert!(!site.path("other").exists(), "a refused start leaves nothing behind");
}

#[test]
fn plaintext_stays_on_loopback_unless_asked_for() {
    let site = Site::new();
    let refused = said(site.serve_command().args(["--listen", "0.0.0.0:0"]));
    assert_eq!(refused.code, Some(1));
    assert!(refused.err.contains("--tls-cert") && refused.err.contains("--allow-plaintext"), "{}", refused.err);
    let mut wide = Running::start(site.serve_command().args(["--listen", "0.0.0.0:0", "--allow-plaintext"]));
    wide.err.until("\"message\":\"ready\"");
}

#[test]
fn manifests_that_are_refused_stop_the_start() {
    let site = Site::new();
    site.define("bad.yaml", "apiVersion: catalog.gitstore.dev/v1beta1\nkind: Produkt\nmetadata: {name: a}\n");
    let refused = said(&mut site.serve_command());
    assert_eq!(refused.code, Some(1));
    assert!(refused.err.contains("bad.yaml"), "{}", refused.err);
}

#[test]
fn a_second_signal_ends_at_once() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let site = Site::new();
        let mut server = Running::start(site.serve_command().args(["--drain-time", "1h"]));
        server.err.until("\"message\":\"ready\"");
        // A connection in the middle of a request keeps the drain waiting.
        let mut held = std::net::TcpStream::connect(("127.0.0.1", site.port)).unwrap();
        let head = "POST /graphql HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nauthorization: Bearer x\r\ncontent-length: 100\r\n\r\n{";
        std::io::Write::write_all(&mut held, head.as_bytes()).unwrap();
        site.say("whoami").good();
        server.signal(signal);
        server.err.until("draining");
        server.signal(signal);
        assert_eq!(server.wait().code(), Some(code));
    }
}

#[test]
fn the_configuration_file_is_read() {
    let site = Site::new();
    fs::write(site.path("tidegate.yaml"), "data_dir: elsewhere\nlog: {format: json}\n").unwrap();
    let mut server = Running::start(site.serve_command().args(["--config", "tidegate.yaml"]));
    server.err.until("\"message\":\"ready\"");
    assert!(site.path("elsewhere/admin.token").exists() && !site.path("tidegate-data").exists());
}

#[test]
fn tls_with_a_certificate_of_ones_own() {
    let site = Site::new();
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    fs::write(site.path("tls.crt"), certified.cert.pem()).unwrap();
    fs::write(site.path("tls.key"), certified.signing_key.serialize_pem()).unwrap();
    let mut server = Running::start(site.serve_command().args(["--tls-cert", "tls.crt", "--tls-key", "tls.key"]));
    assert!(server.err.until("\"message\":\"ready\"").contains("https://"));

    let secure = format!("--server https://localhost:{} --ca-file tls.crt", site.port);
    site.say(&format!("whoami {secure}")).good();
    let watched = site.say(&format!("watch products -o name --count 1 {secure}")).good();
    assert_eq!(watched, "ADDED products.catalog.gitstore.dev/chair\n");
    for (scheme, remedy) in
        [("https", "next: name the certificates to trust with --ca-file"), ("http", "write --server https://")]
    {
        let refused = site.say(&format!("whoami --server {scheme}://localhost:{}", site.port));
        assert_eq!((refused.code, refused.err.contains(remedy)), (Some(1), true), "{}", refused.err);
        assert!(!refused.err.contains("\"level\""), "no log lines beside it: {}", refused.err);
    }
}
