//! A GraphQL client that tests and benchmarks talk through: HTTP for queries,
//! `graphql-transport-ws` for subscriptions.

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    /// `http://127.0.0.1:7300`.
    pub url: String,
    pub token: String,
}

impl Client {
    pub fn new(url: &str, token: &str) -> Self {
        // Whoever is second is refused, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().no_proxy().build().expect("a client without TLS");
        Self { http, url: url.into(), token: token.into() }
    }

    #[must_use]
    pub fn with_token(&self, token: &str) -> Self {
        Self { token: token.into(), ..self.clone() }
    }

    /// The whole answer: `data` and `errors`.
    pub async fn send(&self, query: &str, variables: Value) -> Value {
        let body = json!({"query": query, "variables": variables}).to_string();
        let request = self.http.post(format!("{}/graphql", self.url)).bearer_auth(&self.token);
        let response = request.header("content-type", "application/json").body(body).send().await.expect("an answer");
        serde_json::from_slice(&response.bytes().await.expect("a body")).expect("JSON")
    }

    /// The data of an answer that must have no errors.
    pub async fn data(&self, query: &str, variables: Value) -> Value {
        let mut answer = self.send(query, variables).await;
        assert!(answer.get("errors").is_none(), "{query}: {}", answer["errors"]);
        answer["data"].take()
    }

    /// The first error of an answer that must have one.
    pub async fn error(&self, query: &str, variables: Value) -> Value {
        let mut answer = self.send(query, variables).await;
        assert!(answer["errors"][0].is_object(), "no error from {query}: {answer}");
        answer["errors"][0].take()
    }

    /// The code of an answer: `OK` without errors.
    pub async fn code(&self, query: &str, variables: Value) -> String {
        let answer = self.send(query, variables).await;
        answer["errors"][0]["extensions"]["code"].as_str().unwrap_or("OK").to_owned()
    }

    pub async fn connect(&self) -> Socket {
        let mut socket = Socket::open(&self.url).await;
        socket
            .send(json!({"type": "connection_init", "payload": {"authorization": format!("Bearer {}", self.token)}}))
            .await;
        assert_eq!(socket.next().await.expect("an answer")["type"], "connection_ack");
        socket
    }

    /// A connection with one subscription, of id `1`.
    pub async fn subscribe(&self, query: &str, variables: Value) -> Socket {
        let mut socket = self.connect().await;
        socket.subscribe("1", query, variables).await;
        socket
    }
}

pub struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Socket {
    pub async fn open(url: &str) -> Self {
        let url = format!("{}/graphql", url.replacen("http", "ws", 1));
        let mut request = url.into_client_request().expect("a request");
        request.headers_mut().insert("sec-websocket-protocol", HeaderValue::from_static("graphql-transport-ws"));
        let (socket, _) = tokio_tungstenite::connect_async(request).await.expect("an open WebSocket");
        Self(socket)
    }

    pub async fn send(&mut self, message: Value) {
        self.0.send(Message::text(message.to_string())).await.expect("a sent message");
    }

    pub async fn subscribe(&mut self, id: &str, query: &str, variables: Value) {
        self.send(json!({"type": "subscribe", "id": id, "payload": {"query": query, "variables": variables}})).await;
    }

    /// The next message of the protocol, pings aside; the close code at the end.
    pub async fn next(&mut self) -> Result<Value, u16> {
        loop {
            let message = self.next_raw().await?;
            let value: Value = serde_json::from_str(&message).expect("JSON");
            if value["type"] != "ping" {
                return Ok(value);
            }
        }
    }

    pub async fn next_raw(&mut self) -> Result<String, u16> {
        const ABNORMAL: u16 = 1006;
        loop {
            match self.0.next().await {
                Some(Ok(Message::Text(text))) => return Ok(text.as_str().to_owned()),
                Some(Ok(Message::Close(frame))) => return Err(frame.map_or(ABNORMAL, |frame| frame.code.into())),
                Some(Ok(_)) => {}
                Some(Err(Error::ConnectionClosed)) | None => return Err(ABNORMAL),
                Some(Err(_)) => return Err(ABNORMAL),
            }
        }
    }

    /// The event of the next `next` message: the value of its only field.
    pub async fn event(&mut self) -> Value {
        let mut message = self.next().await.expect("an open connection");
        assert_eq!(message["type"], "next", "{message}");
        let data = message["payload"]["data"].take();
        let Value::Object(fields) = data else { panic!("no data in {message}") };
        fields.into_iter().next().expect("one field").1
    }

    /// The code of the `error` message that ends a subscription, after any
    /// number of events.
    pub async fn ending(&mut self) -> String {
        loop {
            let message = self.next().await.expect("an open connection");
            if message["type"] == "error" {
                return message["payload"][0]["extensions"]["code"].as_str().expect("a code").to_owned();
            }
        }
    }
}
