//! Limits and drain, over real sockets. Nothing here sleeps: a test waits for
//! an answer, for the end of a stream, or for the server's own end.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::{HeaderMap, StatusCode, header};
use axum::routing::{any, get};
use bytes::Bytes;
use futures_util::stream;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::{Limits, Listen, Listener, Outcome, Plaintext, Shutdown, serve};
use crate::metrics::Metrics;

/// `/` answers, `/secret` asks for credentials, `/gate` answers when it is
/// opened, `/ws` closes at the drain; `/flood` and `/ws-flood` send without end.
struct Server {
    address: SocketAddr,
    shutdown: Shutdown,
    metrics: Arc<Metrics>,
    /// A permit is added by each request that has arrived at the gate.
    arrived: Arc<Semaphore>,
    gate: Arc<Semaphore>,
    task: JoinHandle<Outcome>,
}

impl Server {
    fn start(limits: Limits) -> Self {
        Self::start_on(bound(), limits)
    }

    fn start_on(listener: Listener, limits: Limits) -> Self {
        let (address, shutdown, metrics) = (listener.address(), Shutdown::default(), Arc::new(Metrics::default()));
        let (arrived, gate) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let router = router(shutdown.clone(), arrived.clone(), gate.clone());
        let task = tokio::spawn(serve(listener, router, limits, shutdown.clone(), metrics.clone()));
        Self { address, shutdown, metrics, arrived, gate, task }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    async fn send(&self, request: &str) -> TcpStream {
        let mut stream = self.connect().await;
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    /// A request that is being handled, and waits at the gate.
    async fn send_to_gate(&self) -> TcpStream {
        let stream = self.send(&get_request("/gate")).await;
        self.arrived.acquire().await.unwrap().forget();
        stream
    }
}

fn bound() -> Listener {
    let listen = Listen { address: "127.0.0.1:0".parse().unwrap(), tls: None, plaintext: Plaintext::LoopbackOnly };
    Listener::bind(&listen).unwrap()
}

fn router(shutdown: Shutdown, arrived: Arc<Semaphore>, gate: Arc<Semaphore>) -> Router {
    let at_gate = async move || {
        arrived.add_permits(1);
        gate.acquire().await.unwrap().forget();
        "opened"
    };
    let until_drain = async move |mut socket: WebSocket| {
        shutdown.started().await;
        let _ = socket.send(Message::Close(None)).await;
    };
    let upgrade = async move |upgrade: WebSocketUpgrade| upgrade.on_upgrade(until_drain);
    Router::new()
        .route("/", get(async || "hello"))
        .route("/secret", get(async |headers: HeaderMap| secret(&headers)))
        .route("/gate", get(at_gate))
        .route("/ws", any(upgrade))
        .route("/flood", get(async || Body::from_stream(stream::repeat(Ok::<_, Infallible>(CHUNK)))))
        .route("/ws-flood", any(async |upgrade: WebSocketUpgrade| upgrade.on_upgrade(flood)))
}

fn secret(headers: &HeaderMap) -> Result<&'static str, StatusCode> {
    headers.contains_key(header::AUTHORIZATION).then_some("a secret").ok_or(StatusCode::UNAUTHORIZED)
}

const CHUNK: Bytes = Bytes::from_static(&[b'x'; 64 << 10]);

async fn flood(mut socket: WebSocket) {
    while socket.send(Message::Binary(CHUNK)).await.is_ok() {}
}

fn get_request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n")
}

const WEBSOCKET_REQUEST: &str = "GET /ws HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
     sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// Until `end` has been read.
async fn read_until(stream: &mut TcpStream, end: &str) -> String {
    let mut read = Vec::new();
    while !String::from_utf8_lossy(&read).ends_with(end) {
        read.push(stream.read_u8().await.unwrap_or_else(|_| panic!("{:?}", String::from_utf8_lossy(&read))));
    }
    String::from_utf8(read).unwrap()
}

/// Until the server closes; a reset counts as closed.
async fn read_to_end(stream: &mut TcpStream) -> Vec<u8> {
    let mut read = Vec::new();
    let _ = timeout(PATIENCE, stream.read_to_end(&mut read)).await.expect("the server closes");
    read
}

fn limits() -> Limits {
    Limits { connections_max: 16, ..Limits::default() }
}

/// After this long, what a test waits for will not come.
const PATIENCE: Duration = Duration::from_secs(120);

/// Short enough to wait for, in tests that wait for it; long enough for the
/// test's own part on a busy machine.
const SOON: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_drain_lets_requests_finish_and_takes_no_new_ones() {
    let server = Server::start(limits());
    let mut running = server.send_to_gate().await;
    let mut idle = server.send(&get_request("/")).await;
    read_until(&mut idle, "hello").await;

    server.shutdown.drain();
    assert_eq!(read_to_end(&mut idle).await, b"", "an idle connection is closed");
    assert!(!server.task.is_finished(), "one is still running");
    // The socket closes before the drain waits.
    while let Ok(mut stream) = TcpStream::connect(server.address).await {
        let answer = read_to_end(&mut stream).await;
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 503"), "nobody is served any more");
    }

    server.gate.add_permits(1);
    let answer = String::from_utf8(read_to_end(&mut running).await).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("opened"), "{answer}");
    assert_eq!(server.task.await.unwrap(), Outcome::Drained);
}

/// Git says of a challenge that it cannot answer any more that its token is
/// wrong.
#[tokio::test]
async fn a_drain_waits_for_the_answer_to_a_challenge() {
    let server = Server::start(limits());
    let (mut quick, mut silent) = (server.connect().await, server.connect().await);
    for stream in [&mut quick, &mut silent] {
        stream.write_all(get_request("/secret").as_bytes()).await.unwrap();
        assert!(read_until(stream, "\r\n\r\n").await.starts_with("HTTP/1.1 401"));
    }
    let mut running = server.send_to_gate().await;
    server.shutdown.drain();
    // The drain has begun for everybody.
    while TcpStream::connect(server.address).await.is_ok() {}

    quick.write_all(b"GET /secret HTTP/1.1\r\nhost: x\r\nauthorization: y\r\n\r\n").await.unwrap();
    let answer = String::from_utf8(read_to_end(&mut quick).await).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("a secret"), "{answer}");
    assert!(answer.contains("connection: close"), "{answer}");
    assert_eq!(read_to_end(&mut silent).await, b"", "not for ever");
    server.gate.add_permits(1);
    read_until(&mut running, "opened").await;
    assert_eq!(server.task.await.unwrap(), Outcome::Drained);
}

#[tokio::test]
async fn a_drain_answers_those_whom_the_kernel_let_in() {
    let listener = bound();
    let mut early = TcpStream::connect(listener.address()).await.unwrap();
    early.write_all(get_request("/").as_bytes()).await.unwrap();
    let server = Server::start_on(listener, limits());
    // Before the server has had its first turn: it finds both.
    server.shutdown.drain();
    let answer = String::from_utf8(read_to_end(&mut early).await).unwrap();
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("retry-after: 1"), "{answer}");
    assert!(answer.contains("shutting down"), "{answer}");
    assert_eq!(server.task.await.unwrap(), Outcome::Drained);
}

#[tokio::test]
async fn a_drain_tells_websockets_and_waits_for_them() {
    let server = Server::start(limits());
    let mut socket = server.send(WEBSOCKET_REQUEST).await;
    assert!(read_until(&mut socket, "\r\n\r\n").await.starts_with("HTTP/1.1 101"));
    server.shutdown.drain();
    assert_eq!(socket.read_u8().await.unwrap(), 0x88, "a close frame");
    drop(socket);
    assert_eq!(server.task.await.unwrap(), Outcome::Drained);
}

#[tokio::test]
async fn a_second_signal_ends_at_once() {
    let server = Server::start(limits());
    let mut running = server.send_to_gate().await;
    server.shutdown.drain();
    server.shutdown.end();
    assert_eq!(server.task.await.unwrap(), Outcome::Cut);
    assert_eq!(read_to_end(&mut running).await, b"", "the connection is gone, without an answer");
}

#[tokio::test]
async fn a_drain_has_an_end() {
    let server = Server::start(Limits { drain_time: SOON, ..limits() });
    let mut running = server.send_to_gate().await;
    server.shutdown.drain();
    assert_eq!(server.task.await.unwrap(), Outcome::Cut);
    assert_eq!(read_to_end(&mut running).await, b"");
}

#[tokio::test]
async fn one_connection_too_many_is_told_so() {
    let server = Server::start(Limits { connections_max: 2, ..limits() });
    let mut kept = server.send(&get_request("/")).await;
    read_until(&mut kept, "hello").await;
    // An upgraded connection keeps its place.
    let mut socket = server.send(WEBSOCKET_REQUEST).await;
    read_until(&mut socket, "\r\n\r\n").await;

    let mut refused = server.send(&get_request("/")).await;
    let answer = String::from_utf8(read_to_end(&mut refused).await).unwrap();
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("retry-after: 1"), "{answer}");
    let body: serde_json::Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!(body["errors"][0]["extensions"]["code"], "UNAVAILABLE");
    let metrics = server.metrics.encode().unwrap();
    assert!(metrics.contains("tidegate_http_connections 2"), "{metrics}");
    assert!(metrics.contains("tidegate_http_connections_refused_total 1"), "{metrics}");

    // A place that becomes free is given again, as soon as it is noticed.
    drop(kept);
    loop {
        let mut again = server.send(&get_request("/")).await;
        if read_until(&mut again, "\r\n\r\n").await.starts_with("HTTP/1.1 200") {
            break;
        }
    }
}

#[tokio::test]
async fn a_client_that_dawdles_is_let_go() {
    let server = Server::start(Limits { header_read_timeout: SOON, ..limits() });
    let dawdle = async |sent: &str| {
        let answer = read_to_end(&mut server.send(sent).await).await;
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 408"), "{sent:?}: {answer:?}");
    };
    let half = "GET / HTTP/1.1\r\nhost: x\r\nx-slow: ";
    tokio::join!(dawdle(""), dawdle("G"), dawdle(half), dawdle("PRI * HTTP/2.0\r\n"));
    // Neither a slow handler nor a second request on the line is concerned.
    let mut gate = server.send_to_gate().await;
    let mut dawdler = server.connect().await;
    read_to_end(&mut dawdler).await;
    server.gate.add_permits(1);
    assert!(read_until(&mut gate, "opened").await.starts_with("HTTP/1.1 200"));
    gate.write_all(get_request("/").as_bytes()).await.unwrap();
    read_until(&mut gate, "hello").await;
    assert_eq!(read_to_end(&mut gate).await, b"", "idle for too long");
}

#[tokio::test]
async fn a_client_that_does_not_read_is_let_go() {
    let server = Server::start(Limits { connections_max: 3, write_stall_timeout: SOON, ..limits() });
    let _stalled = server.send(&get_request("/flood")).await;
    let _stalled_socket = server.send(&WEBSOCKET_REQUEST.replace("/ws", "/ws-flood")).await;
    // One that reads, and waits for nothing, is not concerned.
    let mut patient = server.send_to_gate().await;
    let gone = async {
        while !server.metrics.encode().unwrap().contains("tidegate_http_connections 1\n") {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, gone).await.expect("both places are given back");
    server.gate.add_permits(1);
    assert!(read_until(&mut patient, "opened").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn headers_have_a_limit() {
    let server = Server::start(Limits { header_bytes_max: 16 << 10, ..limits() });
    let request = |bytes: usize| format!("GET / HTTP/1.1\r\nhost: x\r\nx-large: {}\r\n\r\n", "a".repeat(bytes));
    let mut small = server.send(&request(12 << 10)).await;
    assert!(read_until(&mut small, "hello").await.starts_with("HTTP/1.1 200"));
    let mut large = server.send(&request(20 << 10)).await;
    let answer = String::from_utf8(read_to_end(&mut large).await).unwrap();
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
}

#[tokio::test]
async fn http_2_is_spoken_to_those_who_start_with_it() {
    let server = Server::start(limits());
    let mut stream = server.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await;
    let mut frame = [0; 9];
    stream.read_exact(&mut frame).await.unwrap();
    assert_eq!(frame[3], 4, "a SETTINGS frame: {frame:?}");
}
