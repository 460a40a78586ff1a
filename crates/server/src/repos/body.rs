//! A request's body as it comes: at a bearable pace, and unpacked.

use std::io;

use axum::body::{Body, BodyDataStream};
use bytes::Bytes;

use super::gunzip::Gunzip;
use super::limits::HostedLimits;
use super::pace::Pace;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Encoding {
    Plain,
    Gzip,
}

pub struct Source {
    body: BodyDataStream,
    pace: Pace,
    gunzip: Option<Gunzip>,
    /// Of the last piece of the wire, what is not unpacked yet.
    packed: Bytes,
    /// As they came over the wire.
    pub received: u64,
}

impl Source {
    pub fn new(body: Body, encoding: Encoding, limits: &HostedLimits) -> Self {
        Self {
            body: body.into_data_stream(),
            pace: Pace::new(limits.stall_max),
            gunzip: (encoding == Encoding::Gzip).then(|| Gunzip::new(limits.body_bytes_max())),
            packed: Bytes::new(),
            received: 0,
        }
    }

    /// An error is the client's: it vanished, was too slow, or sent what cannot
    /// be unpacked.
    pub async fn next(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            if let Some(gunzip) = self.gunzip.as_mut().filter(|_| !self.packed.is_empty()) {
                let piece = gunzip.unpack(&mut self.packed)?;
                if !piece.is_empty() {
                    return Ok(Some(piece.into()));
                }
                continue;
            }
            let Some(chunk) = self.pace.next(&mut self.body).await.transpose()? else {
                // Taken, so that the next call finds the end.
                let rest = self.gunzip.take().map(|mut gunzip| gunzip.finish()).transpose()?;
                return Ok(rest.filter(|rest| !rest.is_empty()).map(Bytes::from));
            };
            self.received += chunk.len() as u64;
            if self.gunzip.is_none() {
                return Ok(Some(chunk));
            }
            self.packed = chunk;
        }
    }

    /// A client reads an answer only when it has sent everything: what is left
    /// is bounded as all bodies are, and beyond it the connection breaks.
    pub async fn discard(&mut self) -> io::Result<()> {
        // It need not be unpacked for that.
        self.gunzip = None;
        while self.next().await?.is_some() {}
        Ok(())
    }
}
