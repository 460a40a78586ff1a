//! What of a live object belongs in Git, and where.
//!
//! Invariant: known noise is removed and everything else is kept. A list of
//! what to keep loses data the day a type has a field that nobody thought of.

mod left_out;
mod path;
mod sanitize;

pub use left_out::{LeftOut, left_out};
pub use path::{PATH_COMPONENT_BYTES_MAX, ResourceKey, resource_of_path, unescape};
pub use sanitize::sanitize;
