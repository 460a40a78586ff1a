//! What the commands ask of a server: kinds, lists and watches, over the
//! connection that the flags name.

mod connect;
pub mod kinds;
pub mod list;
#[cfg(test)]
mod list_tests;
pub mod watch;

pub use connect::{connect, connect_patiently, is_usage_error, next_step};
