//! When a batch is written, and what may wait for it.

use std::time::Duration;

/// The values of `--git-batch-*`, and the bound on memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Also the most objects that one commit names.
    pub files_max: usize,
    pub bytes_max: usize,
    pub wait_max: Duration,
    pub silence: Duration,
    /// Nothing comes for this long: time for housekeeping.
    pub idle: Duration,
    /// The remote is looked at this often although nothing changed here.
    pub refresh: Duration,
    /// Of contents that wait. Beyond it only keys are kept, some 300 bytes
    /// each, and the objects are read again when their turn comes.
    pub pending_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            files_max: 200,
            bytes_max: 1 << 20,
            wait_max: Duration::from_secs(20),
            silence: Duration::from_secs(1),
            idle: Duration::from_secs(10),
            refresh: Duration::from_secs(300),
            pending_bytes_max: 64 << 20,
        }
    }
}
