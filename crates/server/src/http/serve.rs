//! The accept loop and the drain.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::connection::{self, Shared};
use super::error::{HttpError, STOPPING};
use super::limits::Limits;
use super::listener::{BACKLOG, Listener, Tls};
use super::shutdown::Shutdown;
use super::stream::Place;
use super::tls::keep_fresh;
use crate::metrics::Metrics;

/// Refusals under way at once; beyond, a connection is closed without a word.
/// Each costs a handshake and a kilobyte for at most [`REFUSAL_TIME`].
const REFUSALS_MAX: usize = 64;
const REFUSAL_TIME: Duration = Duration::from_secs(2);
/// What a refused client may still send; it is read so that closing does not
/// destroy the answer before the client has read it.
const REFUSED_BYTES_MAX: u64 = 64 << 10;
const FULL: &str = "the server has as many connections as it may: try again in a moment";
/// Out of file descriptors: give connections time to end.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// How serving ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Every connection came to its own end.
    Drained,
    /// Some were still open after the drain time, or at the second signal.
    Cut,
}

/// Serves `router` until `shutdown` drains, and returns when the last
/// connection has ended, when the drain time is over, or when it is told to
/// end at once.
pub async fn serve(
    listener: Listener,
    router: Router,
    limits: Limits,
    shutdown: Shutdown,
    metrics: Arc<Metrics>,
) -> Outcome {
    let Listener { socket, tls, .. } = listener;
    let acceptor = |of: fn(&Tls) -> &TlsAcceptor| tls.as_ref().map(|tls| of(tls).clone());
    let places = Arc::new(Semaphore::new(limits.connections_max as usize));
    let door = Door {
        shared: Shared { router, limits, shutdown: shutdown.clone(), tls: acceptor(|tls| &tls.acceptor) },
        places: places.clone(),
        refusals: Arc::new(Semaphore::new(REFUSALS_MAX)),
        refusal_tls: acceptor(|tls| &tls.refusals),
        metrics,
    };
    if let Some(tls) = tls {
        tokio::spawn(keep_fresh(tls.certificates, shutdown.clone()));
    }
    accept_until_drain(&socket, &door, &shutdown).await;
    // A client that comes after this is told by the kernel, and goes elsewhere.
    door.turn_away(socket);
    drain(&places, &limits, &shutdown).await
}

async fn accept_until_drain(socket: &TcpListener, door: &Door, shutdown: &Shutdown) {
    loop {
        let accepted = tokio::select! {
            biased;
            () = shutdown.started() => return,
            accepted = socket.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => door.enter(stream, peer),
            Err(error) if is_of_the_connection(&error) => tracing::debug!(%error, "a connection ended before it began"),
            Err(error) => {
                tracing::warn!(%error, "failed to accept a connection; raise the limit of open files if it goes on");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn is_of_the_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

async fn drain(places: &Arc<Semaphore>, limits: &Limits, shutdown: &Shutdown) -> Outcome {
    let outcome = tokio::select! {
        // The end first: connections go away because of it.
        biased;
        () = shutdown.ended() => Outcome::Cut,
        _ = places.acquire_many(limits.connections_max) => Outcome::Drained,
        () = tokio::time::sleep(limits.drain_time) => Outcome::Cut,
    };
    if outcome == Outcome::Cut {
        let connections = limits.connections_max as usize - places.available_permits();
        if connections > 0 {
            tracing::warn!(connections, "connections were cut off");
        }
    }
    // Whatever is still open learns that its time is over.
    shutdown.end();
    outcome
}

struct Door {
    shared: Shared,
    places: Arc<Semaphore>,
    refusals: Arc<Semaphore>,
    /// The refusal is written as HTTP/1.1, so nothing else is agreed on.
    refusal_tls: Option<TlsAcceptor>,
    metrics: Arc<Metrics>,
}

impl Door {
    fn enter(&self, stream: TcpStream, peer: SocketAddr) {
        match self.places.clone().try_acquire_owned() {
            Ok(permit) => {
                let place = Place { _permit: permit, _counted: self.metrics.connection_opened() };
                tokio::spawn(connection::run(stream, peer, place, self.shared.clone()));
            }
            Err(_) => self.refuse(stream, peer, FULL),
        }
    }

    /// Those whom the kernel let in before it was told not to: they may have
    /// sent their request, and a reset would tell them nothing.
    fn turn_away(&self, socket: TcpListener) {
        // It does not block, and knows of all of them; tokio may not yet.
        let Ok(socket) = socket.into_std() else { return };
        for (stream, peer) in (0..BACKLOG).map_while(|_| socket.accept().ok()) {
            let stream = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream));
            if let Ok(stream) = stream {
                self.refuse(stream, peer, STOPPING);
            }
        }
    }

    /// It has a place if there is one, which the drain waits for.
    fn refuse(&self, stream: TcpStream, peer: SocketAddr, why: &'static str) {
        self.metrics.connection_refused();
        tracing::debug!(%peer, why, "connection refused");
        let Ok(permit) = self.refusals.clone().try_acquire_owned() else { return };
        let (tls, place) = (self.refusal_tls.clone(), self.places.clone().try_acquire_owned().ok());
        tokio::spawn(async move {
            let _held = (permit, place);
            // A client that does not wait for the answer does not get one.
            let _ = timeout(REFUSAL_TIME, say(why, stream, tls)).await;
        });
    }
}

async fn say(why: &'static str, stream: TcpStream, tls: Option<TlsAcceptor>) -> io::Result<()> {
    match tls {
        Some(tls) => write_refusal(why, tls.accept(stream).await?).await,
        None => write_refusal(why, stream).await,
    }
}

async fn write_refusal(why: &'static str, mut stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
    let error = HttpError::unavailable(why);
    let body = serde_json::to_string(&error.body()).map_err(io::Error::other)?;
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         retry-after: 1\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await?;
    tokio::io::copy(&mut stream.take(REFUSED_BYTES_MAX), &mut tokio::io::sink()).await.map(drop)
}
