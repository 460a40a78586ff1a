//! The Kubernetes API, as far as the operator speaks it.
//!
//! Invariant: this folder alone talks to the API server. A list is complete or
//! it is an error.

mod api;
mod connect;
mod discovery;
mod follow;
mod lines;
mod machine;
mod meet;
mod obstacle;
mod path;
mod vanished;

pub use api::{Api, ApiError};
pub use connect::{ConnectError, connect};
pub use discovery::{Discovered, discover};
pub use follow::{Consumer, Cue, Follow, follow};
pub use meet::meet;
pub use obstacle::{Access, Healing, Obstacle, ObstacleKind};
pub use path::{collection, object};
pub use vanished::keep_defined;
