//! The one listener: TLS, limits, drain, health, and what every answer has.
//!
//! Invariants: every connection counts against one limit until its last byte,
//! upgraded ones included; every wait for a client has an end; a client is
//! answered in the one error shape, with the request's id in it.

mod body;
mod connection;
mod envelope;
mod error;
mod health;
mod limits;
mod listener;
mod refusal;
mod request_id;
mod serve;
#[cfg(test)]
mod serve_tests;
mod shell;
#[cfg(test)]
mod shell_tests;
mod shutdown;
mod stream;
mod tls;
#[cfg(test)]
mod tls_tests;

pub use error::{ErrorBody, HttpError, STOPPING};
pub use health::Checks;
pub use limits::Limits;
pub use listener::{Listen, ListenError, Listener, Plaintext};
pub use request_id::RequestId;
pub use serve::{Outcome, serve};
pub use shell::{Shell, authenticate, observed};
pub use shutdown::{Phase, Shutdown};
pub use tls::{TlsError, TlsFiles};
