//! Lists against a server that follows a script.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;

use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::connect;
use super::kinds::KindInfo;
use super::list::{Selection, Sink, run};
use crate::cli::ConnectionArgs;

/// Answers one request after the other, and returns their variables.
fn scripted(answers: Vec<(u16, String)>) -> (String, JoinHandle<Vec<Value>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let serving = std::thread::spawn(move || {
        answers.iter().map(|(status, body)| answer(listener.accept().unwrap().0, *status, body)).collect()
    });
    (address, serving)
}

fn answer(mut stream: TcpStream, status: u16, body: &str) -> Value {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let line = line.trim().to_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    let mut request = vec![0; length];
    reader.read_exact(&mut request).unwrap();
    let head =
        format!("HTTP/1.1 {status} X\r\nlocation: /x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    serde_json::from_slice::<Value>(&request).unwrap()["variables"].take()
}

fn page(names: &[&str], next: Option<&str>) -> (u16, String) {
    let nodes: Vec<Value> = names.iter().map(|name| json!({"object": {"metadata": {"name": name}}})).collect();
    let info = json!({"hasNextPage": next.is_some(), "endCursor": next});
    (200, json!({"data": {"page": {"resourceVersion": "7", "nodes": nodes, "pageInfo": info}}}).to_string())
}

fn refusal(code: &str) -> (u16, String) {
    (200, json!({"data": null, "errors": [{"message": "no", "extensions": {"code": code}}]}).to_string())
}

/// What a printer would show.
#[derive(Default)]
struct Seen {
    names: Vec<String>,
    is_printed: bool,
}

impl Sink for Seen {
    fn page(&mut self, _version: &str, objects: Vec<Value>) -> Result<()> {
        self.names.extend(objects.iter().map(|object| object["metadata"]["name"].as_str().unwrap().to_owned()));
        Ok(())
    }

    fn restart(&mut self) -> Result<()> {
        if self.is_printed {
            bail!("too late");
        }
        self.names.clear();
        Ok(())
    }
}

/// The names, or the refusal; and the variables of each request.
fn listed(
    answers: Vec<(u16, String)>,
    limit: Option<u64>,
    mut sink: Seen,
) -> (Result<Vec<String>, String>, Vec<Value>) {
    let directory = tempfile::tempdir().unwrap();
    let token_file = directory.path().join("token");
    std::fs::write(&token_file, "token").unwrap();
    let (server, serving) = scripted(answers);
    let client = connect(&ConnectionArgs { server, token_file: Some(token_file), ca_file: None }).unwrap();
    let kind: KindInfo = crate::output::test_kind();
    let selection = Selection { kind, namespace: Some("default".into()), labels: None, fields: None };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let outcome = runtime.block_on(run(&client, &selection, limit, &mut sink));
    (outcome.map(|()| sink.names).map_err(|error| format!("{error:#}")), serving.join().unwrap())
}

#[test]
fn every_page_is_fetched_from_where_the_last_one_ended() {
    let (names, requests) = listed(vec![page(&["a", "b"], Some("c1")), page(&["c"], None)], None, Seen::default());
    assert_eq!(names.unwrap(), ["a", "b", "c"]);
    assert_eq!(requests[0]["after"], Value::Null);
    assert_eq!(requests[1]["after"], "c1");
    assert_eq!((&requests[0]["namespace"], &requests[0]["labelSelector"]), (&json!("default"), &Value::Null));
}

#[test]
fn a_limit_ends_the_list() {
    let (names, requests) =
        listed(vec![page(&["a", "b"], Some("c1")), page(&["c"], Some("c2"))], Some(3), Seen::default());
    assert_eq!(names.unwrap().len(), 3);
    assert_eq!((&requests[0]["first"], &requests[1]["first"]), (&json!(3), &json!(1)));
}

#[test]
fn an_expired_list_begins_again_unless_it_was_printed() {
    let expired = || vec![page(&["old"], Some("c1")), refusal("LIST_EXPIRED")];
    let again = vec![page(&["a"], Some("c2")), page(&["b"], None)];
    let (names, requests) = listed([expired(), again].concat(), None, Seen::default());
    assert_eq!(names.unwrap(), ["a", "b"]);
    assert_eq!(requests[2]["after"], Value::Null);

    let (names, _) = listed(expired(), None, Seen { is_printed: true, ..Seen::default() });
    assert_eq!(names.unwrap_err(), "too late");
    let (names, requests) = listed(vec![refusal("LIST_EXPIRED"); 4], None, Seen::default());
    assert!(names.unwrap_err().contains("expired 3 times"));
    assert_eq!(requests.len(), 4);
}

#[test]
fn answers_that_are_not_ours() {
    for (status, body, expected) in [
        (200, "<html>\u{1b}[31m", "does not answer as Tidegate does (HTTP 200): <html>\\u{1b}[31m"),
        (302, "", "does not answer as Tidegate does (HTTP 302)"),
        (503, r#"{"errors":[{"message":"full","extensions":{"code":"UNAVAILABLE"}}]}"#, "full (UNAVAILABLE)"),
        (200, "{}", "does not answer as Tidegate does (HTTP 200): {}"),
    ] {
        let (names, _) = listed(vec![(status, body.into())], None, Seen::default());
        let refusal = names.unwrap_err();
        assert!(refusal.contains(expected), "{refusal}");
    }
}
