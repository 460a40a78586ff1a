//! A clone or a fetch: the body goes to git, git's output to the client, both
//! as they come. It ends with its client.

use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, stream};
use tidegate_git::Pack;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::mpsc;

use super::body::Source;

/// A push or a clone, from its first byte to its last.
pub const PACK_TIME_MAX: Duration = Duration::from_secs(600);
const CHUNK_BYTES: usize = 64 << 10;
/// What waits for a slow client: 512 KiB a request.
pub const CHUNKS_WAITING_MAX: usize = 8;

pub type Output = mpsc::Receiver<io::Result<Bytes>>;

/// Holds `place` until git has ended. What git says comes out of the returned
/// end.
pub fn converse<P: Send + 'static>(pack: Pack, source: Source, place: P) -> Output {
    let (sender, receiver) = mpsc::channel(CHUNKS_WAITING_MAX);
    tokio::spawn(async move {
        let ended = tokio::time::timeout(PACK_TIME_MAX, talk(pack, source, &sender)).await;
        let ended = ended.unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, "the request took too long")));
        if let Err(error) = ended {
            tracing::debug!(%error, "a clone or a fetch ended early");
            // The connection breaks: the client must not take it for the end.
            let _ = sender.send(Err(error)).await;
        }
        drop(place);
    });
    receiver
}

pub fn as_stream(output: Output) -> impl Stream<Item = io::Result<Bytes>> {
    stream::unfold(output, async |mut output| output.recv().await.map(|chunk| (chunk, output)))
}

async fn talk(mut pack: Pack, source: Source, sender: &mpsc::Sender<io::Result<Bytes>>) -> io::Result<()> {
    let (Some(stdin), Some(stdout)) = (pack.stdin.take(), pack.stdout.take()) else {
        return Err(io::Error::other("git has no pipes"));
    };
    // The first error drops the other half, and with `pack` ends git.
    tokio::try_join!(feed(stdin, source), forward(stdout, sender))?;
    let status = pack.wait().await.map_err(io::Error::other)?;
    if !status.success() {
        tracing::debug!(%status, "git ended with an error, which it told the client");
    }
    Ok(())
}

async fn feed(mut stdin: ChildStdin, mut source: Source) -> io::Result<()> {
    while let Some(piece) = source.next().await? {
        // Git has ended before it read everything, and says why.
        if stdin.write_all(&piece).await.is_err() {
            drop(stdin);
            return source.discard().await;
        }
    }
    let _ = stdin.shutdown().await;
    Ok(())
}

async fn forward(mut stdout: ChildStdout, sender: &mpsc::Sender<io::Result<Bytes>>) -> io::Result<()> {
    let mut buffer = BytesMut::new();
    loop {
        buffer.reserve(CHUNK_BYTES);
        if stdout.read_buf(&mut buffer).await? == 0 {
            return Ok(());
        }
        if sender.send(Ok(buffer.split().freeze())).await.is_err() {
            return Err(io::Error::new(io::ErrorKind::BrokenPipe, "the client is gone"));
        }
    }
}
