//! A client of the API: GraphQL over HTTP and over a WebSocket.
//!
//! Invariant: the token goes to the server that was named and nowhere else; no
//! message and no log line holds it.

mod connection;
pub mod kinds;
pub mod list;
#[cfg(test)]
mod list_tests;
mod plane;
#[cfg(test)]
mod plane_tests;
mod refusal;
mod tls;
mod token;
mod unreachable;
pub mod watch;

pub use connection::Client;
pub use plane::RemotePlane;
pub use refusal::Refusal;
