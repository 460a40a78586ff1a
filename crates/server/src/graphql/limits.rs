//! What one client may ask for.

use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Limits {
    /// Selection sets in each other.
    pub depth_max: usize,
    /// Fields of one operation.
    pub complexity_max: usize,
    /// Nesting of the query text itself; guards the parser's stack.
    pub recursion_max: usize,
    pub directives_max: usize,
    /// The text of a query; values belong into variables.
    pub query_bytes_max: usize,
    /// One answer. A selection may repeat a field, so it can be larger than
    /// the objects that it reads.
    pub answer_bytes_max: usize,
    /// One POST body, and one WebSocket message.
    pub body_bytes_max: usize,
    /// Objects on one page, also when `first` is absent.
    pub page_objects_max: usize,
    /// One page ends early when its objects reach this size, so that a list
    /// costs at most this much memory: 16 lists at once, half a GiB.
    pub page_bytes_max: usize,
    pub lists_at_once_max: usize,
    /// Open watches of one identity, over all its connections.
    pub watches_per_identity_max: usize,
    pub subscriptions_per_connection_max: usize,
    /// A client must send `connection_init` within this time.
    pub init_timeout: Duration,
    /// Parsed and validated operations kept for reuse.
    pub prepared_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            depth_max: 32,
            complexity_max: 2_000,
            recursion_max: 64,
            directives_max: 16,
            query_bytes_max: 256 << 10,
            answer_bytes_max: 64 << 20,
            body_bytes_max: 4 << 20,
            page_objects_max: 10_000,
            page_bytes_max: 32 << 20,
            lists_at_once_max: 16,
            watches_per_identity_max: 1_000,
            subscriptions_per_connection_max: 1_000,
            init_timeout: Duration::from_secs(10),
            prepared_max: 1_024,
        }
    }
}
