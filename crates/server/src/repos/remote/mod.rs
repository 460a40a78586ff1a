//! Repositories that live elsewhere: fetched, checked as a push would be, and
//! read-only here.

mod request;
mod secrets;
mod signature;
mod spec;
mod sync;
mod webhook;

pub use request::request_sync;
pub use spec::RemoteSpec;
pub use sync::{RemoteOptions, Syncer};
pub use webhook::{limits, routes};
