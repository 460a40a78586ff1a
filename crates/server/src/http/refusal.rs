//! How a connection is told that it is not served: in a few words, within a
//! few moments.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::error::{HttpError, STOPPING};
use super::listener::{BACKLOG, Listener, Tls};

/// Refusals under way at once. Each costs a handshake and a kilobyte for at
/// most [`REFUSAL_TIME`].
const REFUSALS_MAX: u32 = 64;
const REFUSAL_TIME: Duration = Duration::from_secs(2);
/// What a refused client may still send; it is read so that closing does not
/// destroy the answer before the client has read it.
const REFUSED_BYTES_MAX: u64 = 64 << 10;

pub(super) struct Refusals {
    places: Arc<Semaphore>,
    /// The refusal is written as HTTP/1.1, so nothing else is agreed on.
    tls: Option<TlsAcceptor>,
}

impl Refusals {
    pub fn new(tls: Option<&Tls>) -> Self {
        let places = Arc::new(Semaphore::new(REFUSALS_MAX as usize));
        Self { places, tls: tls.map(|tls| tls.refusals.clone()) }
    }

    /// Keeps `held` until it is said. With too many under way, the connection
    /// is closed without a word.
    pub fn refuse(&self, stream: TcpStream, why: &'static str, held: impl Send + 'static) {
        if let Ok(place) = self.places.clone().try_acquire_owned() {
            self.tell(stream, why, (place, held));
        }
    }

    fn tell(&self, stream: TcpStream, why: &'static str, held: impl Send + 'static) {
        let tls = self.tls.clone();
        tokio::spawn(async move {
            let _held = held;
            // A client that does not wait for the answer does not get one.
            let _ = timeout(REFUSAL_TIME, say(why, stream, tls)).await;
        });
    }

    /// As many as there are, a few at a time.
    async fn refuse_all(&self, socket: TcpListener) {
        for (stream, _) in waiting(socket) {
            let place: OwnedSemaphorePermit = match self.places.clone().acquire_owned().await {
                Ok(place) => place,
                Err(_) => return,
            };
            self.tell(stream, STOPPING, place);
        }
        // All places are free again when all is said.
        let _ = self.places.acquire_many(REFUSALS_MAX).await;
    }
}

impl Listener {
    /// For a server that ends before it serves: whoever waits is told, within
    /// [`REFUSAL_TIME`] in all; later ones are told by the kernel.
    pub async fn turn_away(self) {
        let Self { socket, tls, .. } = self;
        let _ = timeout(REFUSAL_TIME, Refusals::new(tls.as_ref()).refuse_all(socket)).await;
    }
}

/// Those whom the kernel let in before it was told not to: they may have sent
/// their request, and a reset would tell them nothing.
pub(super) fn waiting(socket: TcpListener) -> impl Iterator<Item = (TcpStream, SocketAddr)> {
    // It does not block, and knows of all of them; tokio may not yet.
    let socket = socket.into_std().ok();
    let accepted = (0..BACKLOG).map_while(move |_| socket.as_ref()?.accept().ok());
    accepted.filter_map(|(stream, peer)| {
        stream.set_nonblocking(true).ok()?;
        Some((TcpStream::from_std(stream).ok()?, peer))
    })
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
