//! Who reads stdout: `head` goes when it has enough.
//!
//! Invariant: that ends a command that only shows something, and well. Of any
//! other the work goes on, and its exit code says what came of it.

use std::os::fd::AsFd as _;
use std::{future, io};

use tokio::io::Interest;
use tokio::net::unix::pipe;

/// For a command that does more than show something.
pub fn unless_gone(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Resolves when nobody reads stdout any more. A file has no reader to go.
pub async fn gone() {
    // It is only looked at, never written to: so it stays as it is, and blocks.
    let stdout = io::stdout().as_fd().try_clone_to_owned();
    match stdout.and_then(pipe::Sender::from_owned_fd_unchecked) {
        Ok(stdout) => drop(stdout.ready(Interest::ERROR).await),
        Err(_) => future::pending().await,
    }
}
