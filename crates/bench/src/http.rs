//! As little HTTP as it takes, so that the load costs less than what it
//! measures.

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub struct Connection {
    stream: TcpStream,
    token: String,
    buffer: Vec<u8>,
}

impl Connection {
    pub async fn open(address: &str, token: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, token: token.into(), buffer: Vec::new() })
    }

    pub async fn get(&mut self, path: &str) -> anyhow::Result<u16> {
        self.stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: bench\r\n\r\n").as_bytes()).await?;
        Ok(self.answer().await?.0)
    }

    /// The body of the answer.
    pub async fn text(&mut self, path: &str) -> anyhow::Result<String> {
        let head = format!("GET {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {}\r\n\r\n", self.token);
        self.stream.write_all(head.as_bytes()).await?;
        let (status, start) = self.answer().await?;
        ensure!(status == 200, "{path}: status {status}");
        Ok(String::from_utf8_lossy(&self.buffer[start..]).into_owned())
    }

    /// The bytes of the answer's body.
    pub async fn post(&mut self, body: &str) -> anyhow::Result<&[u8]> {
        let head = format!(
            "POST /graphql HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            self.token,
            body.len()
        );
        self.stream.write_all(&[head.as_bytes(), body.as_bytes()].concat()).await?;
        let (status, start) = self.answer().await?;
        ensure!(status == 200, "status {status}: {}", String::from_utf8_lossy(&self.buffer));
        Ok(&self.buffer[start..])
    }

    pub async fn query(&mut self, query: &str, variables: Value) -> anyhow::Result<Value> {
        let body = json!({"query": query, "variables": variables}).to_string();
        let answer: Value = serde_json::from_slice(self.post(&body).await?)?;
        ensure!(answer.get("errors").is_none(), "{}", answer["errors"]);
        Ok(answer)
    }

    /// The status, and where in the buffer the body begins.
    async fn answer(&mut self) -> anyhow::Result<(u16, usize)> {
        self.buffer.clear();
        let end = loop {
            if let Some(at) = memchr::memmem::find(&self.buffer, b"\r\n\r\n") {
                break at + 4;
            }
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                bail!("the server closed the connection");
            }
        };
        let head = std::str::from_utf8(&self.buffer[..end])?.to_ascii_lowercase();
        let status = head.split(' ').nth(1).context("no status")?.parse()?;
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:")).context("no content-length")?;
        let length: usize = length.trim().parse()?;
        self.buffer.reserve((end + length).saturating_sub(self.buffer.len()));
        while self.buffer.len() < end + length {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                bail!("the server closed the connection");
            }
        }
        Ok((status, end))
    }
}
