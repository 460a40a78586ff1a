//! A watch's body, line by line.

use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use http_body_util::BodyExt;
use kube::client::Body;
use tokio::time::timeout;

/// Objects have 1.5 MiB in etcd; as JSON, with a delete's last state, a few more.
const LINE_BYTES_MAX: usize = 32 << 20;
/// Bookmarks come about once a minute: five minutes of silence are a dead connection.
const SILENCE_MAX: Duration = Duration::from_secs(5 * 60);

pub struct Lines {
    body: Body,
    buffer: BytesMut,
    /// Up to here there is no newline.
    searched: usize,
}

#[derive(Debug, thiserror::Error)]
pub enum LineError {
    #[error("the watch was silent for five minutes")]
    Silence,
    #[error("an event has more than {LINE_BYTES_MAX} bytes")]
    TooLong,
    #[error("the watch broke off: {0}")]
    Broken(String),
}

impl Lines {
    pub fn new(body: Body) -> Self {
        Self { body, buffer: BytesMut::new(), searched: 0 }
    }

    /// `None` when the server ended the watch.
    pub async fn next(&mut self) -> Result<Option<Bytes>, LineError> {
        loop {
            if let Some(line) = self.take() {
                return Ok(Some(line));
            }
            if self.buffer.len() > LINE_BYTES_MAX {
                return Err(LineError::TooLong);
            }
            match timeout(SILENCE_MAX, self.body.frame()).await {
                Err(_) => return Err(LineError::Silence),
                Ok(None) => return Ok(None),
                Ok(Some(Err(error))) => return Err(LineError::Broken(error.to_string())),
                Ok(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
            }
        }
    }

    fn take(&mut self) -> Option<Bytes> {
        match memchr::memchr(b'\n', &self.buffer[self.searched..]) {
            Some(at) => {
                let line = self.buffer.split_to(self.searched + at).freeze();
                self.buffer.advance(1);
                self.searched = 0;
                Some(line)
            }
            None => {
                self.searched = self.buffer.len();
                None
            }
        }
    }
}
