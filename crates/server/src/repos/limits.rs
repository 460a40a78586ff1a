//! What a push to a hosted repository may cost, and how long a deleted one is
//! kept.

use std::time::Duration;

/// Beyond the pack itself: the commands of a push, and what is under way when
/// git has seen enough and says so. Also what is read and thrown away then.
const BODY_SLACK_BYTES: u64 = 8 << 20;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostedLimits {
    /// Of one push, unpacked from its transport encoding.
    pub pack_bytes_max: u64,
    /// Of one projection: a million and what defines them; ~200
    /// bytes each for its path and ids, 220 MiB.
    pub changed_files_max: usize,
    /// To begin with, and for a stall in between: a client that sends less
    /// than is asked of it is let go after so long.
    pub stall_max: Duration,
    /// How long the data of a deleted repository is kept.
    pub deleted_grace: Duration,
}

impl Default for HostedLimits {
    fn default() -> Self {
        Self {
            pack_bytes_max: 1 << 30,
            changed_files_max: 1_100_000,
            stall_max: Duration::from_secs(20),
            deleted_grace: Duration::from_secs(7 * 24 * 3600),
        }
    }
}

impl HostedLimits {
    /// A request that announces more is refused before it is read.
    pub fn body_bytes_max(&self) -> u64 {
        self.pack_bytes_max.saturating_add(BODY_SLACK_BYTES)
    }
}
