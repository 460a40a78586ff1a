//! The reconcilers under a real manager, over a plane in memory that admits
//! pushes as the server does and checks every status against its schema.
#![allow(clippy::unwrap_used)]

mod catalog;
mod definitions;
mod hooks;
mod https;
mod namespaces;
mod plane;
mod quarantined;
mod related;
mod retired;
mod world;
