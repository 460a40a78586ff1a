//! The programs of other projects that tests run: where they are, and how
//! they are built once with Go.
//!
//! Invariant: whoever prepares the programs (`cargo xtask assets`) and whoever
//! runs them (`testkit`) ask here, so both mean the same files. A program is
//! in its place complete or not at all.

mod build;
mod go;
mod locate;
mod program;

pub use build::{BuildError, Outcome, provide};
pub use locate::{FOLDER_VARIABLE, Missing, Places};
pub use program::Program;
