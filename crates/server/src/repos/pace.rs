//! How slowly a client may send: a body that trickles in must not hold one of
//! the few places that there are.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use tokio::time::Instant;

/// What a poor mobile connection manages. A push of 1 GiB has a limit of its
/// own, which is stricter.
const BYTES_PER_SECOND_MIN: u64 = 4 << 10;

/// The wait for a client alone: what git takes to read is not its fault.
pub struct Pace {
    /// To begin with, and for a stall in between: one byte a second is cut off
    /// after so long.
    grace: Duration,
    waited: Duration,
    received: u64,
}

impl Pace {
    pub fn new(grace: Duration) -> Self {
        Self { grace, waited: Duration::ZERO, received: 0 }
    }

    /// The next piece; an error if the client was too slow for too long.
    pub async fn next<S, E>(&mut self, body: &mut S) -> Option<io::Result<Bytes>>
    where
        S: Stream<Item = Result<Bytes, E>> + Unpin,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let started = Instant::now();
        let piece = tokio::time::timeout(self.left(), body.next()).await;
        self.waited += started.elapsed();
        match piece {
            Ok(piece) => Some(piece?.map_err(io::Error::other).inspect(|piece| self.received += piece.len() as u64)),
            Err(_) => Some(Err(io::Error::new(io::ErrorKind::TimedOut, "the client sends too slowly"))),
        }
    }

    fn left(&self) -> Duration {
        let earned = Duration::from_secs(self.received / BYTES_PER_SECOND_MIN);
        (self.grace + earned).saturating_sub(self.waited)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream;

    use super::*;

    /// How many of 100 pieces arrive of a client that sends one each second.
    async fn pieces(bytes: usize) -> usize {
        let piece = Bytes::from(vec![0; bytes]);
        let body = stream::iter(0..100).then(|_| async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok::<_, Infallible>(piece.clone())
        });
        let mut body = Box::pin(body);
        let mut pace = Pace::new(Duration::from_secs(20));
        let mut count = 0;
        while let Some(Ok(_)) = pace.next(&mut body).await {
            count += 1;
        }
        count
    }

    #[tokio::test(start_paused = true)]
    async fn one_byte_a_second_ends_and_a_slow_connection_does_not() {
        // The last one and the end of its grace come in the same moment.
        assert!((19..=20).contains(&pieces(1).await));
        assert_eq!(pieces(4 << 10).await, 100);
    }
}
