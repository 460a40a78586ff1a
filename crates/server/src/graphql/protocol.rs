//! The messages of `graphql-transport-ws`, and nothing that moves them.

use std::borrow::Cow;

use axum::extract::ws::Utf8Bytes;
use serde::Deserialize;
use serde_json::{Map, Value, json};

pub const SUBPROTOCOL: &str = "graphql-transport-ws";

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ClientMessage {
    ConnectionInit {
        #[serde(default)]
        payload: Option<Map<String, Value>>,
    },
    Ping {
        #[serde(default)]
        payload: Option<Value>,
    },
    Pong {},
    Subscribe {
        id: String,
        payload: SubscribePayload,
    },
    Complete {
        id: String,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscribePayload {
    pub query: String,
    #[serde(default)]
    pub operation_name: Option<String>,
    #[serde(default)]
    pub variables: Option<Map<String, Value>>,
}

/// Why the server closes, by the codes of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Closing {
    GoingAway,
    BadRequest,
    Unauthorized,
    Forbidden,
    InitTimeout,
    DuplicateSubscriber,
    TooManyInits,
    Idle,
}

impl Closing {
    pub fn code(self) -> u16 {
        match self {
            Self::GoingAway => 1001,
            Self::BadRequest => 4400,
            Self::Unauthorized => 4401,
            Self::Forbidden => 4403,
            Self::InitTimeout => 4408,
            Self::DuplicateSubscriber => 4409,
            Self::TooManyInits => 4429,
            Self::Idle => 4499,
        }
    }
}

pub fn parse(text: &str) -> Result<ClientMessage, String> {
    serde_json::from_str(text).map_err(|error| format!("Invalid message: {error}"))
}

/// `{"authorization": "Bearer …"}`, the name in any case.
pub fn bearer(payload: Option<&Map<String, Value>>) -> Option<Cow<'_, str>> {
    let (_, value) = payload?.iter().find(|(name, _)| name.eq_ignore_ascii_case("authorization"))?;
    value.as_str().map(Cow::Borrowed)
}

pub fn ack() -> Utf8Bytes {
    Utf8Bytes::from_static(r#"{"type":"connection_ack"}"#)
}

pub fn pong(payload: Option<Value>) -> Utf8Bytes {
    match payload {
        Some(payload) => json!({"type": "pong", "payload": payload}).to_string().into(),
        None => Utf8Bytes::from_static(r#"{"type":"pong"}"#),
    }
}

pub fn ping() -> Utf8Bytes {
    Utf8Bytes::from_static(r#"{"type":"ping"}"#)
}

pub fn complete(id: &str) -> Utf8Bytes {
    json!({"type": "complete", "id": id}).to_string().into()
}

/// Ends the subscription: nothing follows it.
pub fn error(id: &str, errors: &[Value]) -> Utf8Bytes {
    json!({"type": "error", "id": id, "payload": errors}).to_string().into()
}

/// The start of a `next` message; the payload and `}` follow.
pub fn next_head(id: &str) -> String {
    let id = serde_json::to_string(id).expect("text serializes");
    format!(r#"{{"type":"next","id":{id},"payload":"#)
}

pub fn next(id: &str, payload: &[u8]) -> Utf8Bytes {
    format!("{}{}}}", next_head(id), String::from_utf8_lossy(payload)).into()
}

/// An `error` message from the body of a refusal, `{"errors":[…]}`.
pub fn refused(id: &str, body: &[u8]) -> Utf8Bytes {
    #[derive(Deserialize)]
    struct Refusal {
        errors: Vec<Value>,
    }
    let errors = serde_json::from_slice(body).map_or_else(|_| Vec::new(), |refusal: Refusal| refusal.errors);
    error(id, &errors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_clients() {
        assert!(matches!(parse(r#"{"type":"connection_init"}"#), Ok(ClientMessage::ConnectionInit { payload: None })));
        assert!(matches!(parse(r#"{"type":"pong","payload":{"a":1}}"#), Ok(ClientMessage::Pong {})));
        let subscribe = parse(r#"{"type":"subscribe","id":"1","payload":{"query":"{a}","extensions":{}}}"#);
        assert!(matches!(subscribe, Ok(ClientMessage::Subscribe { id, .. }) if id == "1"));
        for nonsense in ["", "[]", "{}", r#"{"type":"start"}"#, r#"{"type":"subscribe","id":"1"}"#] {
            assert!(parse(nonsense).is_err(), "{nonsense}");
        }
    }

    #[test]
    fn the_token_is_found_in_any_case() {
        let payload = json!({"Authorization": "Bearer x"});
        assert_eq!(bearer(payload.as_object()).as_deref(), Some("Bearer x"));
        assert_eq!(bearer(None), None);
    }
}
