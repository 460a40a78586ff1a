//! From a live object to a change: clean, compared with the version before.
//!
//! Invariant: of each object only its versions and a hash are kept, never the
//! object.

mod claim;
mod listing;
mod names;
mod prepare;
mod table;

pub use claim::{ClaimWatch, Seen, Told, watch_claim};
pub use prepare::{Prepared, prepare};
pub use table::{Table, Transition};
