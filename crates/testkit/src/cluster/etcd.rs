//! The little that tests say to etcd itself, by its JSON gateway.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

/// A moment in fact; the machine may be busy.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// The newest revision, which every answer tells.
pub(super) fn revision(port: u16) -> io::Result<String> {
    // Any key: it need not be there. "AA==" is a zero byte.
    let answer = post(port, "/v3/kv/range", &json!({"key": "AA=="}))?;
    let revision = answer["header"]["revision"].as_str();
    revision.map(str::to_owned).ok_or_else(|| io::Error::other(format!("no revision in {answer}")))
}

pub(super) fn compact(port: u16) -> io::Result<()> {
    let revision = revision(port)?;
    let answer = post(port, "/v3/kv/compaction", &json!({"revision": revision, "physical": true}))?;
    if answer.get("header").is_some() { Ok(()) } else { Err(io::Error::other(answer.to_string())) }
}

/// HTTP/1.0 by hand: the answer ends with the connection.
fn post(port: u16, path: &str, body: &Value) -> io::Result<Value> {
    let body = body.to_string();
    let mut stream = TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), ANSWER_MAX)?;
    stream.set_read_timeout(Some(ANSWER_MAX))?;
    write!(
        stream,
        "POST {path} HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (_, content) = answer.split_once("\r\n\r\n").unwrap_or_default();
    Ok(serde_json::from_str(content)?)
}
