//! What one client, and all of them together, may take.

use std::time::Duration;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Open connections, WebSockets included. An idle one costs about 20 KiB
    /// (buffers and task; TLS twice that), so 8,192 cost at most ~320 MiB.
    pub connections_max: u32,
    /// A request's line and headers together; 8 KiB at least.
    pub header_bytes_max: u32,
    /// From the connection, or from the end of the last request, to the end of
    /// the next one's headers; it is the keep-alive time of HTTP/1 too.
    pub header_read_timeout: Duration,
    pub body_bytes_max: usize,
    /// For a whole body: at 4 MiB, a client needs 70 KiB/s.
    pub body_read_timeout: Duration,
    /// How long a client may read nothing of what is written to it. The kernel
    /// calls a socket writable when a third of its buffer (up to 4 MiB) is
    /// free, so a client that reads ~5 KiB/s is never taken for a stalled one.
    pub write_stall_timeout: Duration,
    /// How long running requests may go on after the first signal.
    pub drain_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 8192,
            header_bytes_max: 64 << 10,
            header_read_timeout: Duration::from_secs(30),
            body_bytes_max: 4 << 20,
            body_read_timeout: Duration::from_secs(60),
            write_stall_timeout: Duration::from_secs(300),
            drain_time: Duration::from_secs(20),
        }
    }
}
