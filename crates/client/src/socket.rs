//! One WebSocket with one subscription, by `graphql-transport-ws`.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use reqwest::Url;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::http::header::SEC_WEBSOCKET_PROTOCOL;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{Connector, MaybeTlsStream, WebSocketStream, connect_async_tls_with_config};

use crate::{Client, ClientError, Refusal};

/// The server pings every 30 s: who is silent for three of them is gone.
const SILENCE_MAX: Duration = Duration::from_secs(90);
const OPEN_TIMEOUT: Duration = Duration::from_secs(15);
/// An object has at most a few MiB; this is beyond any event.
const MESSAGE_BYTES_MAX: usize = 64 << 20;
const SUBSCRIPTION_ID: &str = "1";

const QUERY: &str = "subscription($apiVersion: String!, $kind: String!, $namespace: String, $labelSelector: String, \
    $fieldSelector: String, $resourceVersion: String, $sendInitialEvents: Boolean) { \
    event: watchResources(apiVersion: $apiVersion, kind: $kind, namespace: $namespace, labelSelector: $labelSelector, \
    fieldSelector: $fieldSelector, resourceVersion: $resourceVersion, sendInitialEvents: $sendInitialEvents) { \
    type namespace name resourceVersion object initialEventsEnd } }";

#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum EventType {
    Added,
    Modified,
    Deleted,
    Bookmark,
}

impl EventType {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
            Self::Bookmark => "BOOKMARK",
        }
    }
}

#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    #[serde(rename = "type")]
    pub event_type: EventType,
    pub namespace: Option<String>,
    pub name: Option<String>,
    pub resource_version: String,
    /// The last state for a DELETED; null if it went while nobody watched.
    pub object: Option<Value>,
    #[serde(skip_serializing)]
    pub initial_events_end: bool,
}

/// Why no more events come.
pub enum End {
    /// The connection is gone; another may work.
    Lost(String),
    Refused(Refusal),
}

pub struct Socket {
    stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ServerMessage {
    ConnectionAck {},
    Ping {},
    Pong {},
    Next { payload: Payload },
    Error { payload: Vec<Refusal> },
    Complete {},
}

#[derive(Deserialize)]
struct Payload {
    data: Option<Data>,
    #[serde(default)]
    errors: Vec<Refusal>,
}

#[derive(Deserialize)]
struct Data {
    event: Event,
}

impl Socket {
    /// Connects, says who we are, and subscribes. The outer error is ours
    /// alone: no token, no address.
    pub async fn open(client: &Client, variables: Map<String, Value>) -> Result<Result<Self, End>, ClientError> {
        let url = client.socket_url();
        let wrong = |reason: Error| ClientError::Address { server: url.to_string(), reason: Some(reason.to_string()) };
        let mut request = url.as_str().into_client_request().map_err(wrong)?;
        request.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static("graphql-transport-ws"));
        let config = WebSocketConfig::default()
            .max_message_size(Some(MESSAGE_BYTES_MAX))
            .max_frame_size(Some(MESSAGE_BYTES_MAX));
        let connecting =
            connect_async_tls_with_config(request, Some(config), true, Some(Connector::Rustls(client.tls())));
        let stream = match timeout(OPEN_TIMEOUT, connecting).await {
            Ok(Ok((stream, _))) => stream,
            Ok(Err(error)) => return Ok(Err(refused_upgrade(&url, &error))),
            Err(_) => return Ok(Err(unreached(&url, &format!("no connection within {} s", OPEN_TIMEOUT.as_secs())))),
        };
        let authorization = format!("Bearer {}", client.token()?);
        Ok(Self { stream }.subscribe(&authorization, variables).await)
    }

    async fn subscribe(mut self, authorization: &str, variables: Map<String, Value>) -> Result<Self, End> {
        self.send(&json!({"type": "connection_init", "payload": {"authorization": authorization}})).await?;
        let deadline = Instant::now() + OPEN_TIMEOUT;
        while !matches!(self.message(deadline).await?, ServerMessage::ConnectionAck {}) {}
        let payload = json!({"query": QUERY, "variables": variables});
        self.send(&json!({"type": "subscribe", "id": SUBSCRIPTION_ID, "payload": payload})).await?;
        Ok(self)
    }

    /// The next event. After an `End` the socket is of no more use.
    pub async fn next(&mut self) -> Result<Event, End> {
        loop {
            match self.message(Instant::now() + SILENCE_MAX).await? {
                ServerMessage::Next { payload } => return event(payload),
                ServerMessage::Error { payload } => return Err(first(payload)),
                ServerMessage::Complete {} => return Err(End::Lost("the server ended the watch".into())),
                ServerMessage::ConnectionAck {} | ServerMessage::Ping {} | ServerMessage::Pong {} => {}
            }
        }
    }

    /// Answers pings on the way.
    async fn message(&mut self, deadline: Instant) -> Result<ServerMessage, End> {
        loop {
            let received = timeout_at(deadline, self.stream.next()).await;
            let text = match received.map_err(|_| End::Lost("the server is silent".into()))? {
                Some(Ok(Message::Text(text))) => text,
                Some(Ok(Message::Close(frame))) => return Err(closed(frame)),
                Some(Ok(_)) => continue,
                Some(Err(error)) => return Err(End::Lost(described(&error))),
                None => return Err(End::Lost("the server closed the connection".into())),
            };
            let message = serde_json::from_str(&text)
                .map_err(|error| End::Lost(format!("a message that is not of the protocol: {error}")))?;
            if matches!(message, ServerMessage::Ping {}) {
                self.send(&json!({"type": "pong"})).await?;
            }
            return Ok(message);
        }
    }

    async fn send(&mut self, message: &Value) -> Result<(), End> {
        let sending = timeout(OPEN_TIMEOUT, self.stream.send(Message::text(message.to_string())));
        let sent = sending.await.map_err(|_| End::Lost("the server does not read".into()))?;
        sent.map_err(|error| End::Lost(described(&error)))
    }
}

fn event(payload: Payload) -> Result<Event, End> {
    match payload.data {
        Some(data) if payload.errors.is_empty() => Ok(data.event),
        _ => Err(first(payload.errors)),
    }
}

fn first(refusals: Vec<Refusal>) -> End {
    let unnamed = || Refusal::new("the server refused the watch without a reason", "INTERNAL");
    End::Refused(refusals.into_iter().next().unwrap_or_else(unnamed))
}

/// By the codes of the protocol: 4401 and 4403 are about the token, 4400 is
/// about us; the rest passes.
fn closed(frame: Option<CloseFrame>) -> End {
    let Some(frame) = frame else { return End::Lost("the server closed the connection".into()) };
    let reason = frame.reason.to_string();
    match u16::from(frame.code) {
        4401 | 4403 => End::Refused(Refusal::new(reason, "UNAUTHENTICATED")),
        4400 => End::Refused(Refusal::new(reason, "BAD_REQUEST")),
        code if reason.is_empty() => End::Lost(format!("the server closed the connection with code {code}")),
        _ => End::Lost(reason),
    }
}

/// A server that is starting or full says 5xx; any other refusal stays.
fn refused_upgrade(url: &Url, error: &Error) -> End {
    match error {
        Error::Http(response) if !response.status().is_server_error() => End::Refused(Refusal::new(
            format!("the server does not open a WebSocket (HTTP {})", response.status()),
            "BAD_REQUEST",
        )),
        other => unreached(url, &described(other)),
    }
}

fn unreached(url: &Url, reason: &str) -> End {
    End::Lost(format!("cannot reach {url}: {reason}"))
}

/// Without the word for which of its own errors it is.
fn described(error: &Error) -> String {
    match error {
        Error::Io(error) => error.to_string(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> String {
        match serde_json::from_str(text) {
            Ok(ServerMessage::Next { payload }) => match event(payload) {
                Ok(event) => format!("{} {:?} at {}", event.event_type.as_str(), event.name, event.resource_version),
                Err(End::Refused(refusal)) => refusal.to_string(),
                Err(End::Lost(reason)) => reason,
            },
            Ok(ServerMessage::Error { payload }) => format!("error of {}", payload.len()),
            Ok(ServerMessage::Ping {}) => "ping".into(),
            Ok(_) => "other".into(),
            Err(_) => "nonsense".into(),
        }
    }

    #[test]
    fn messages_of_the_server() {
        for (text, expected) in [
            (r#"{"type":"connection_ack"}"#, "other"),
            (r#"{"type":"ping","payload":{}}"#, "ping"),
            (r#"{"type":"complete","id":"1"}"#, "other"),
            (
                r#"{"type":"next","id":"1","payload":{"data":{"event":{"type":"BOOKMARK","namespace":null,"name":null,"resourceVersion":"9","object":null,"initialEventsEnd":true}}}}"#,
                "BOOKMARK None at 9",
            ),
            (
                r#"{"type":"next","id":"1","payload":{"data":null,"errors":[{"message":"no","extensions":{"code":"X"}}]}}"#,
                "no (X)",
            ),
            (r#"{"type":"error","id":"1","payload":[{"message":"no"}]}"#, "error of 1"),
            (r#"{"type":"start"}"#, "nonsense"),
            ("", "nonsense"),
        ] {
            assert_eq!(parsed(text), expected, "{text}");
        }
    }

    #[test]
    fn an_address_that_does_not_answer_is_named() {
        let url = Url::parse("ws://127.0.0.1:7300/graphql").unwrap();
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let End::Lost(reason) = refused_upgrade(&url, &Error::Io(refused)) else { panic!("it may come back") };
        assert_eq!(reason, "cannot reach ws://127.0.0.1:7300/graphql: connection refused");
    }
}
