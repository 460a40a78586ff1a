//! Reconcilers of the core kinds.
//!
//! Each is a pure plan over what is known (`catalog`), and a thin shell that
//! reads, compares and writes.

pub mod catalog;
pub mod report;
pub mod repository;
