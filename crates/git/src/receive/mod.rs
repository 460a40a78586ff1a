//! The receiving end of a push: what the client asks for, its objects in a
//! folder apart, whether they are whole, and the move of the refs.
//!
//! Git's own `receive-pack` finds out whether everything is there that a ref
//! reaches by a walk over the whole branch, and waits for it. Here the objects
//! of a push are looked at and nothing else, so that a push costs what it
//! brings, whatever there is already.
//!
//! Invariant: a repository has, with each object, all that it refers to. A
//! push keeps it so: what it brings lies apart until it is known to be whole
//! ([`Received::broken`]), and then appears as one pack, or not at all.

mod incoming;
mod limits;
mod pack_line;
mod rebuild;
mod refs;
mod report;
mod request;
mod survey;
#[cfg(test)]
mod tests;
mod tidy;
mod whole;

pub(crate) use incoming::FOLDER_PREFIX;
pub use incoming::{Received, Unpacked, Unpacking};
pub use refs::Moved;
pub use report::{Report, Verdict};
pub use request::{PushRequest, RefUpdate, RequestError, RequestReader};
