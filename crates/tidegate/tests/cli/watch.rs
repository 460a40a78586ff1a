//! `tidegate watch`, over the life and death of its server.

use rustix::process::Signal;
use serde_json::Value;

use super::process::{QUIET, Running, Site, until};

/// `ADDED chair`.
fn short(line: &str) -> String {
    let event: Value = serde_json::from_str(line).unwrap();
    format!("{} {}", event["type"].as_str().unwrap(), event["name"].as_str().unwrap())
}

#[test]
fn the_current_objects_and_an_end_for_scripts() {
    let site = Site::new();
    let _server = site.serve_with(QUIET);
    let events = site.say("watch products -o json --count 2").good();
    assert_eq!(events.lines().map(short).collect::<Vec<_>>(), ["ADDED chair", "ADDED desk-lamp"]);
    let table = site.say("watch products chair --count 1").good();
    assert!(table.starts_with("EVENT") && table.contains("ADDED") && !table.contains("desk-lamp"), "{table}");

    let late = site.say("watch products --no-initial --count 1 --timeout 200ms");
    assert_eq!(late.code, Some(1));
    assert!(late.err.contains("0 of 1 events came within 200ms"), "{}", late.err);
    site.say("watch products --no-initial --timeout 100ms").good();
}

#[test]
fn a_watch_resumes_over_a_restart_of_its_server() {
    let site = Site::new();
    let mut server = site.serve_with(QUIET);
    let mut watch = Running::start(&mut site.client("watch products -o json"));
    assert_eq!([short(&watch.out.next()), short(&watch.out.next())], ["ADDED chair", "ADDED desk-lamp"]);

    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(0));
    watch.err.until("resuming from");
    site.product("desk-lamp", "A Better Lamp");
    site.product("sofa", "Sofa");
    site.remove("chair.yaml");
    let _server = site.serve_with(QUIET);

    let lines: Vec<String> = (0..3).map(|_| watch.out.next()).collect();
    assert!(!lines.iter().any(|line| line.contains(r#""object":null"#)), "read from the log, not guessed: {lines:#?}");
    let mut missed: Vec<String> = lines.iter().map(|line| short(line)).collect();
    missed.sort();
    assert_eq!(missed, ["ADDED sofa", "DELETED chair", "MODIFIED desk-lamp"]);
    watch.signal(Signal::INT);
    assert_eq!(watch.wait().code(), Some(0));
    assert_eq!(watch.out.rest().lines().count(), 5, "nothing twice");
}

#[test]
fn a_killed_server_is_no_different() {
    let site = Site::new();
    let mut server = site.serve_with(QUIET);
    let mut watch = Running::start(&mut site.client("watch products -o json --no-initial --count 1"));
    // Only a watch that is open notices.
    watch_is_open(&site);
    server.signal(Signal::KILL);
    server.wait();
    site.product("sofa", "Sofa");
    let _server = site.serve_with(QUIET);
    assert_eq!(short(&watch.out.next()), "ADDED sofa");
    assert_eq!(watch.wait().code(), Some(0));
}

/// The server's own count of watches, from its metrics.
fn watch_is_open(site: &Site) {
    let token = std::fs::read_to_string(site.path("tidegate-data/admin.token")).unwrap();
    until("a watch is open", || metrics(site.port, token.trim()).lines().any(|line| line == "tidegate_watches 1"));
}

pub fn metrics(port: u16, token: &str) -> String {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n")
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}
