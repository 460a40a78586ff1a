//! A client's stream, below TLS and HTTP: its place among all others, and the
//! patience that it is written to with.
//!
//! Invariants: the place is given back when the stream itself is dropped, so a
//! WebSocket keeps it after the HTTP part is over; a client that reads nothing
//! for the stall timeout while something waits for it is let go, whatever is
//! spoken above.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Sleep, sleep};

use crate::metrics::Held;

/// A connection's place under the limit.
pub(super) struct Place {
    pub _permit: OwnedSemaphorePermit,
    pub _counted: Held,
}

/// A stream that holds its place, and gives up on a client that does not read.
pub(super) struct Tracked {
    stream: TcpStream,
    stall: Stall,
    _place: Place,
}

impl Tracked {
    pub fn new(stream: TcpStream, place: Place, write_stall_timeout: Duration) -> Self {
        Self { stream, stall: Stall { timeout: write_stall_timeout, due: None }, _place: place }
    }
}

/// How long the current write has waited for the client.
struct Stall {
    timeout: Duration,
    /// Set while a write is pending; any progress clears it.
    due: Option<Pin<Box<Sleep>>>,
}

impl Stall {
    /// What the stream said, or an error once it has said nothing for too long.
    /// The timer wakes the writer, so a stall is noticed without other events.
    fn judge<T>(&mut self, cx: &mut Context<'_>, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.due = None;
            return polled;
        }
        let timeout = self.timeout;
        ready!(self.due.get_or_insert_with(|| Box::pin(sleep(timeout))).as_mut().poll(cx));
        self.due = None;
        let message = format!("the client read nothing for {} ms", timeout.as_millis());
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, message)))
    }
}

impl AsyncRead for Tracked {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Tracked {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.stall.judge(cx, polled)
    }

    // A socket has nothing to flush, and its end waits for nobody: only writes
    // can stall.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.stall.judge(cx, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
