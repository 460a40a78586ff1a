//! List-then-watch, cache, work queue, checkpoints, leases.
