//! As little WebSocket as it takes: frames are counted, not decoded.

use anyhow::ensure;
use base64::Engine;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::process::Server;

pub struct Socket {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// What of `buffer` has been handed out.
    used: usize,
}

const READ_BYTES: usize = 256 << 10;

impl Socket {
    /// Connected, initialised and subscribed.
    pub async fn subscribe(server: &Server, query: &str) -> anyhow::Result<Self> {
        let mut stream = TcpStream::connect(&server.address).await?;
        let key = base64::engine::general_purpose::STANDARD.encode([7; 16]);
        let head = format!(
            "GET /graphql HTTP/1.1\r\nhost: bench\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-version: 13\r\nsec-websocket-key: {key}\r\nsec-websocket-protocol: graphql-transport-ws\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await?;
        let mut socket = Self { stream, buffer: Vec::with_capacity(2 * READ_BYTES), used: 0 };
        socket.skip_head().await?;
        let authorization = format!("Bearer {}", server.token);
        socket
            .send(&json!({"type": "connection_init", "payload": {"authorization": authorization}}).to_string())
            .await?;
        ensure!(
            socket.next().await?.is_some_and(|frame| memchr::memmem::find(frame, b"connection_ack").is_some()),
            "not acknowledged"
        );
        socket.send(&json!({"type": "subscribe", "id": "1", "payload": {"query": query}}).to_string()).await?;
        Ok(socket)
    }

    async fn skip_head(&mut self) -> anyhow::Result<()> {
        loop {
            if let Some(at) = memchr::memmem::find(&self.buffer, b"\r\n\r\n") {
                ensure!(
                    self.buffer.starts_with(b"HTTP/1.1 101"),
                    "not upgraded: {}",
                    String::from_utf8_lossy(&self.buffer)
                );
                self.used = at + 4;
                return Ok(());
            }
            ensure!(self.stream.read_buf(&mut self.buffer).await? > 0, "closed");
        }
    }

    /// One text frame; masked with zeros, which is a mask.
    async fn send(&mut self, text: &str) -> anyhow::Result<()> {
        let mut frame = vec![0x81];
        match text.len() {
            length @ 0..126 => frame.push(0x80 | length as u8),
            length => {
                frame.push(0x80 | 126);
                frame.extend_from_slice(&u16::try_from(length)?.to_be_bytes());
            }
        }
        frame.extend_from_slice(&[0; 4]);
        frame.extend_from_slice(text.as_bytes());
        Ok(self.stream.write_all(&frame).await?)
    }

    /// The payload of the next text frame; `None` when the server closed.
    pub async fn next(&mut self) -> anyhow::Result<Option<&[u8]>> {
        let (opcode, start, end) = loop {
            if let Some(found) = frame(&self.buffer, self.used) {
                break found;
            }
            if self.used > 0 {
                self.buffer.drain(..self.used);
                self.used = 0;
            }
            self.buffer.reserve(READ_BYTES);
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        };
        self.used = end;
        Ok((opcode == 1).then(|| &self.buffer[start..end]))
    }

    /// How many whole frames have arrived, waiting for at least one; `None`
    /// when the server closed.
    pub async fn count(&mut self) -> anyhow::Result<Option<usize>> {
        if self.next().await?.is_none() {
            return Ok(None);
        }
        let mut count = 1;
        while let Some((opcode, _, end)) = frame(&self.buffer, self.used) {
            if opcode != 1 {
                return Ok(None);
            }
            self.used = end;
            count += 1;
        }
        Ok(Some(count))
    }
}

/// Opcode, start and end of the frame at `at`, if it is all there.
fn frame(buffer: &[u8], at: usize) -> Option<(u8, usize, usize)> {
    let head = buffer.get(at..at + 2)?;
    let (length, start) = match head[1] & 0x7f {
        126 => (u16::from_be_bytes(buffer.get(at + 2..at + 4)?.try_into().ok()?) as usize, at + 4),
        127 => (u64::from_be_bytes(buffer.get(at + 2..at + 10)?.try_into().ok()?) as usize, at + 10),
        short => (short as usize, at + 2),
    };
    (buffer.len() >= start + length).then_some((head[0] & 0xf, start, start + length))
}
