//! The validating webhook: it observes, and never stands in the way.
//!
//! Invariant: every answer allows. An attempt is remembered before its answer
//! is sent, so that the object it makes cannot be seen before it.

mod certificates;
mod prove;
mod register;
mod server;

pub use certificates::{MakeError, make_certificate};
pub use register::{Registration, Target, keep_registered};
pub use server::{PATH, WebhookState, serve};
