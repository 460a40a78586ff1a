//! A client of the API: GraphQL over HTTP and over a WebSocket, and the
//! [`RemotePlane`] that controllers in a process of their own work on.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use tidegate_client::{Client, Options, RemotePlane, TokenSource};
//! use tidegate_runtime::{Manager, ManagerOptions};
//!
//! let token = TokenSource::File("greeter.token".into());
//! let client = Client::new(&Options::new("http://127.0.0.1:7300", token))?;
//! let plane = Arc::new(RemotePlane::new(client));
//! let manager = Manager::new(plane, ManagerOptions::new("default", "greeter", "greeter"));
//! # Ok(())
//! # }
//! ```
//!
//! Invariant: the token goes to the server that was named and nowhere else; no
//! message and no log line holds it.

mod connection;
mod error;
mod plane;
mod refusal;
mod socket;
mod tls;
mod token;
mod unreachable;

pub use connection::{Client, Options};
pub use error::ClientError;
pub use plane::RemotePlane;
pub use refusal::{Code, Refusal};
pub use socket::{End, Event, EventType, Socket};
pub use token::{TokenError, TokenSource};
