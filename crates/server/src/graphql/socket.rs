//! One WebSocket: a reader that keeps the protocol, a writer that batches, and
//! a task for each subscription.
//!
//! Invariant: a client that does not read holds up nobody but itself. Its
//! writer waits for it, its subscriptions wait for the writer, and the store
//! lets a waiting watcher lag.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{FutureExt, SinkExt, StreamExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};

use super::execute::{Caller, Checked, Ready};
use super::http::Front;
use super::prepare::Request;
use super::protocol::{self, ClientMessage, Closing, SubscribePayload};
use super::reply::{Reply, error_json};
use super::types;
use crate::api::error::{ApiError, Code};
use crate::identity::Session;
use crate::metrics::CODE_OK;

/// Batches between subscriptions and the writer. A batch is bounded by the
/// store, so a client that stops reading costs a few of them, not its backlog.
const OUTBOX_BATCHES_MAX: usize = 4;
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// A client that answers nothing for this long is gone. Longer than any pause
/// that a working client takes to digest a burst.
const SILENCE_MAX: Duration = Duration::from_secs(300);
/// How long a close may take to reach a client that does not read.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Answers to queries that one connection may have under way, unread ones
/// included: each is as large as the limit of an answer at most.
const QUERIES_AT_ONCE_MAX: usize = 2;

enum Out {
    Frames(Vec<Utf8Bytes>),
    /// Holds its place until it is written.
    Answer(Vec<Utf8Bytes>, OwnedSemaphorePermit),
    Close(Closing, String),
}

pub async fn run(front: Front, socket: WebSocket) {
    let _counted = front.metrics().websocket_opened();
    let (sink, stream) = socket.split();
    let (outbox, inbox) = mpsc::channel(OUTBOX_BATCHES_MAX);
    let writer = tokio::spawn(write(sink, inbox));
    let queries = Arc::new(Semaphore::new(QUERIES_AT_ONCE_MAX));
    let mut connection = Connection { front, outbox, session: None, subscriptions: HashMap::new(), queries };
    let closing = connection.read(stream).await;
    connection.end(closing).await;
    // The writer ends with the last sender; one that waits for a client that
    // does not read is ended.
    let abort = writer.abort_handle();
    if tokio::time::timeout(CLOSE_TIMEOUT, writer).await.is_err() {
        abort.abort();
    }
}

async fn write(mut sink: SplitSink<WebSocket, Message>, mut inbox: mpsc::Receiver<Out>) {
    while let Some(out) = inbox.recv().await {
        let result = match out {
            Out::Frames(frames) => write_frames(&mut sink, frames, &mut inbox).await,
            Out::Answer(frames, _permit) => write_frames(&mut sink, frames, &mut inbox).await,
            Out::Close(closing, reason) => {
                let frame = CloseFrame { code: closing.code(), reason: reason.into() };
                let _ = tokio::time::timeout(CLOSE_TIMEOUT, sink.send(Message::Close(Some(frame)))).await;
                return;
            }
        };
        if result.is_err() {
            return;
        }
    }
}

/// One flush for all that is ready.
async fn write_frames(
    sink: &mut SplitSink<WebSocket, Message>,
    frames: Vec<Utf8Bytes>,
    inbox: &mut mpsc::Receiver<Out>,
) -> Result<(), axum::Error> {
    for frame in frames {
        sink.feed(Message::Text(frame)).await?;
    }
    if inbox.is_empty() { sink.flush().await } else { Ok(()) }
}

struct Connection {
    front: Front,
    outbox: mpsc::Sender<Out>,
    session: Option<Session>,
    subscriptions: HashMap<String, AbortHandle>,
    queries: Arc<Semaphore>,
}

type Step = Result<(), (Closing, String)>;

impl Connection {
    /// Until the client or the server closes; says how.
    async fn read(&mut self, mut stream: SplitStream<WebSocket>) -> Option<(Closing, String)> {
        let opened = Instant::now();
        let init_by = opened + self.front.graphql().limits.init_timeout;
        let shutdown = self.front.shutdown();
        let mut heard = opened;
        let mut ping = tokio::time::interval_at(opened + PING_INTERVAL, PING_INTERVAL);
        loop {
            let step = tokio::select! {
                biased;
                () = shutdown.started() => Err((Closing::GoingAway, "the server is shutting down: reconnect and resume".into())),
                message = next_message(&mut stream, self.session.is_none().then_some(init_by)) => {
                    heard = Instant::now();
                    match message {
                        Incoming::Text(text) => self.handle(&text).await,
                        Incoming::Other => Ok(()),
                        Incoming::Binary => Err((Closing::BadRequest, "Invalid message: binary".into())),
                        Incoming::TooLate => Err((Closing::InitTimeout, "Connection initialisation timeout".into())),
                        Incoming::End => return None,
                    }
                }
                _ = ping.tick() => self.keep_alive(heard),
            };
            if let Err(closing) = step {
                return Some(closing);
            }
        }
    }

    /// A full outbox means that the client is not reading: a ping would only
    /// queue up.
    fn keep_alive(&self, heard: Instant) -> Step {
        if heard.elapsed() > SILENCE_MAX {
            return Err((Closing::Idle, "no message for five minutes".into()));
        }
        if self.session.is_some() {
            let _ = self.outbox.try_send(Out::Frames(vec![protocol::ping()]));
        }
        Ok(())
    }

    async fn handle(&mut self, text: &str) -> Step {
        match protocol::parse(text).map_err(|reason| (Closing::BadRequest, reason))? {
            ClientMessage::ConnectionInit { payload } => self.init(protocol::bearer(payload.as_ref()).as_deref()).await,
            ClientMessage::Ping { payload } => self.answer_ping(payload),
            ClientMessage::Pong {} => Ok(()),
            ClientMessage::Subscribe { id, payload } => self.subscribe(id, payload),
            ClientMessage::Complete { id } => {
                if let Some(subscription) = self.subscriptions.remove(&id) {
                    subscription.abort();
                }
                Ok(())
            }
        }
    }

    /// Never waits: a client that sends pings and reads nothing must not keep
    /// us from noticing.
    fn answer_ping(&self, payload: Option<serde_json::Value>) -> Step {
        let _ = self.outbox.try_send(Out::Frames(vec![protocol::pong(payload)]));
        Ok(())
    }

    async fn init(&mut self, authorization: Option<&str>) -> Step {
        if self.session.is_some() {
            return Err((Closing::TooManyInits, "Too many initialisation requests".into()));
        }
        let session = self.front.authenticate(authorization).map_err(|error| (Closing::Forbidden, error.message))?;
        self.session = Some(session);
        self.send(protocol::ack()).await
    }

    async fn send(&self, frame: Utf8Bytes) -> Step {
        // A writer that is gone is noticed by the next read.
        let _ = self.outbox.send(Out::Frames(vec![frame])).await;
        Ok(())
    }

    fn subscribe(&mut self, id: String, payload: SubscribePayload) -> Step {
        let Some(session) = self.session.clone() else { return Err((Closing::Unauthorized, "Unauthorized".into())) };
        self.subscriptions.retain(|_, subscription| !subscription.is_finished());
        if self.subscriptions.contains_key(&id) {
            return Err((Closing::DuplicateSubscriber, format!("Subscriber for {id} already exists")));
        }
        let limit = self.front.graphql().limits.subscriptions_per_connection_max;
        let over = self.subscriptions.len() >= limit;
        let request = Request {
            query: payload.query,
            operation_name: payload.operation_name,
            variables: payload.variables.unwrap_or_default(),
        };
        let queries = self.queries.clone();
        let task =
            Operation { front: self.front.clone(), session, id: id.clone(), outbox: self.outbox.clone(), queries };
        let handle = tokio::spawn(async move {
            if over {
                let message =
                    format!("this connection has {limit} subscriptions, which is the limit: open another connection");
                task.fail(&ApiError::new(Code::RateLimited, message).with("limit", limit)).await;
            } else {
                task.run_to_an_answer(request).await;
            }
        });
        self.subscriptions.insert(id, handle.abort_handle());
        Ok(())
    }

    async fn end(self, closing: Option<(Closing, String)>) {
        for subscription in self.subscriptions.values() {
            subscription.abort();
        }
        if let Some((closing, reason)) = closing {
            let close = self.outbox.send(Out::Close(closing, truncated(reason)));
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, close).await;
        }
    }
}

/// A close frame carries at most 123 bytes of reason.
fn truncated(mut reason: String) -> String {
    let end = (0..=reason.len().min(123)).rev().find(|at| reason.is_char_boundary(*at)).unwrap_or(0);
    reason.truncate(end);
    reason
}

enum Incoming {
    Text(Utf8Bytes),
    Binary,
    Other,
    TooLate,
    End,
}

async fn next_message(stream: &mut SplitStream<WebSocket>, deadline: Option<Instant>) -> Incoming {
    let message = match deadline {
        None => stream.next().await,
        Some(deadline) => match timeout_at(deadline, stream.next()).await {
            Ok(message) => message,
            Err(_) => return Incoming::TooLate,
        },
    };
    match message {
        Some(Ok(Message::Text(text))) => Incoming::Text(text),
        Some(Ok(Message::Binary(_))) => Incoming::Binary,
        Some(Ok(Message::Ping(_) | Message::Pong(_))) => Incoming::Other,
        Some(Ok(Message::Close(_)) | Err(_)) | None => Incoming::End,
    }
}

/// One `subscribe` message, from its check to its last frame.
struct Operation {
    front: Front,
    session: Session,
    id: String,
    outbox: mpsc::Sender<Out>,
    queries: Arc<Semaphore>,
}

impl Operation {
    /// A panic is our defect; the client is still owed an answer.
    async fn run_to_an_answer(self, request: Request) {
        if AssertUnwindSafe(self.run(request)).catch_unwind().await.is_err() {
            let message = "the server failed to answer this operation: its log has the reason";
            self.fail(&ApiError::new(Code::Internal, message)).await;
        }
    }

    async fn run(&self, request: Request) {
        let caller = Caller { api: self.front.api(), session: &self.session, metrics: self.front.metrics() };
        // The token may have ended since `connection_init`.
        if let Err(error) = self.front.api().identities().check(&self.session) {
            return self.fail(&error.into()).await;
        }
        let graphql = self.front.graphql();
        match graphql.check(request).await {
            Checked::Done(reply) => self.once(&reply, self.place().await).await,
            Checked::Query(ready) => {
                let place = self.place().await;
                self.once(&graphql.execute(&ready, caller).await, place).await;
            }
            Checked::Subscription(ready) => {
                let error = self.watch(&ready, caller).await;
                if let Some(error) = error {
                    self.fail(&error).await;
                }
            }
        }
    }

    /// Until the watch ends; `None` if the connection did before it.
    async fn watch(&self, ready: &Ready, caller: Caller<'_>) -> Option<ApiError> {
        let timer = caller.metrics.start_request(types::Operation::Watch.as_str());
        let mut subscription = match self.front.graphql().subscribe(ready, &self.id, caller) {
            Ok(subscription) => subscription,
            Err(error) => {
                timer.finish(error.code.as_str());
                return Some(error);
            }
        };
        timer.finish(CODE_OK);
        let _counted = caller.metrics.watch_opened();
        loop {
            match subscription.next().await {
                Ok(frames) => self.outbox.send(Out::Frames(frames)).await.ok()?,
                Err(error) => {
                    caller.metrics.watch_ended(error.code.as_str());
                    return Some(error);
                }
            }
        }
    }

    /// A refusal is an `error`, which ends it; anything else a `next`.
    async fn once(&self, reply: &Reply, place: Option<OwnedSemaphorePermit>) {
        let Some(place) = place else { return };
        let frames = if reply.executed {
            vec![protocol::next(&self.id, &reply.body), protocol::complete(&self.id)]
        } else {
            vec![protocol::refused(&self.id, &reply.body)]
        };
        let _ = self.outbox.send(Out::Answer(frames, place)).await;
    }

    /// `None` if the connection has ended.
    async fn place(&self) -> Option<OwnedSemaphorePermit> {
        self.queries.clone().acquire_owned().await.ok()
    }

    async fn fail(&self, error: &ApiError) {
        let frame = protocol::error(&self.id, &[error_json(error, None, None)]);
        let _ = self.outbox.send(Out::Frames(vec![frame])).await;
    }
}
