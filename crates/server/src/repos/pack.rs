//! One request of git's protocol: the body goes to git, git's output to the
//! client, both as they come.
//!
//! Invariants: a clone ends with its client. A push ends with its client only
//! until git has all of it; from then on it goes on, so that a ref never moves
//! without its objects being projected.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, stream};
use tidegate_git::{Pack, Service};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::mpsc;

use super::gunzip::Gunzip;
use super::limits::HostedLimits;
use super::pace::Pace;
use crate::metrics::Metrics;

/// A push or a clone, from its first byte to its last.
pub const PACK_TIME_MAX: Duration = Duration::from_secs(600);
const CHUNK_BYTES: usize = 64 << 10;
/// What waits for a slow client: 512 KiB a request.
const CHUNKS_WAITING_MAX: usize = 8;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Encoding {
    Plain,
    Gzip,
}

/// What a request is, and what it may cost.
pub struct Terms {
    pub service: Service,
    pub encoding: Encoding,
    pub limits: HostedLimits,
    pub metrics: Arc<Metrics>,
}

pub type Output = mpsc::Receiver<io::Result<Bytes>>;

/// Runs until git has ended, then calls `after`. What git says comes out of
/// the returned end.
pub fn converse<A>(pack: Pack, terms: Terms, body: Body, after: A) -> Output
where
    A: Future<Output = ()> + Send + 'static,
{
    let (sender, receiver) = mpsc::channel(CHUNKS_WAITING_MAX);
    tokio::spawn(async move {
        let service = terms.service;
        let talk = talk(pack, &terms, body, &sender);
        let ended = tokio::time::timeout(PACK_TIME_MAX, talk).await;
        let ended = ended.unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, "the request took too long")));
        if let Err(error) = ended {
            tracing::debug!(%error, service = service.name(), "a git request ended early");
            // The connection breaks: the client must not take it for the end.
            let _ = sender.send(Err(error)).await;
        }
        // The client has all that it waits for.
        drop(sender);
        after.await;
    });
    receiver
}

pub fn as_stream(output: Output) -> impl Stream<Item = io::Result<Bytes>> {
    stream::unfold(output, async |mut output| output.recv().await.map(|chunk| (chunk, output)))
}

async fn talk(mut pack: Pack, terms: &Terms, body: Body, sender: &mpsc::Sender<io::Result<Bytes>>) -> io::Result<()> {
    let (Some(stdin), Some(stdout)) = (pack.stdin.take(), pack.stdout.take()) else {
        return Err(io::Error::other("git has no pipes"));
    };
    let service = terms.service;
    // The first error drops the other half, and with `pack` ends git.
    tokio::try_join!(feed(stdin, body.into_data_stream(), terms), forward(stdout, service, sender))?;
    let status = pack.wait().await.map_err(io::Error::other)?;
    if !status.success() {
        tracing::debug!(%status, service = service.name(), "git ended with an error, which it told the client");
    }
    Ok(())
}

/// An error is the client's: it vanished, was too slow, or sent what cannot be
/// unpacked.
async fn feed(mut stdin: ChildStdin, mut body: BodyDataStream, terms: &Terms) -> io::Result<()> {
    let Terms { service, encoding, limits, metrics } = terms;
    let mut gunzip = Gunzip::new(limits.body_bytes_max());
    let mut pace = Pace::new(limits.stall_max);
    while let Some(chunk) = pace.next(&mut body).await {
        let chunk = chunk?;
        if *service == Service::ReceivePack {
            metrics.git_received(chunk.len());
        }
        let written = match encoding {
            Encoding::Plain => stdin.write_all(&chunk).await,
            Encoding::Gzip => write_unpacked(&mut stdin, &mut gunzip, &chunk).await?,
        };
        // Git has ended before it read everything, and says why.
        if written.is_err() {
            drop(stdin);
            return discard(&mut pace, &mut body).await;
        }
    }
    if *encoding == Encoding::Gzip {
        let rest = gunzip.finish()?;
        let _ = stdin.write_all(&rest).await;
    }
    let _ = stdin.shutdown().await;
    Ok(())
}

/// A client reads git's answer only when it has sent everything: what is left
/// is bounded as all bodies are, and beyond it the connection breaks.
async fn discard(pace: &mut Pace, body: &mut BodyDataStream) -> io::Result<()> {
    while let Some(chunk) = pace.next(body).await {
        chunk?;
    }
    Ok(())
}

/// The outer error is the client's, the inner one git's.
async fn write_unpacked(stdin: &mut ChildStdin, gunzip: &mut Gunzip, chunk: &Bytes) -> io::Result<io::Result<()>> {
    for piece in gunzip.pieces(chunk) {
        if let Err(error) = stdin.write_all(&piece?).await {
            return Ok(Err(error));
        }
    }
    Ok(Ok(()))
}

async fn forward(
    mut stdout: ChildStdout,
    service: Service,
    sender: &mpsc::Sender<io::Result<Bytes>>,
) -> io::Result<()> {
    let mut buffer = BytesMut::new();
    loop {
        buffer.reserve(CHUNK_BYTES);
        if stdout.read_buf(&mut buffer).await? == 0 {
            return Ok(());
        }
        let is_gone = sender.send(Ok(buffer.split().freeze())).await.is_err();
        if is_gone && service == Service::UploadPack {
            return Err(io::Error::new(io::ErrorKind::BrokenPipe, "the client is gone"));
        }
    }
}
