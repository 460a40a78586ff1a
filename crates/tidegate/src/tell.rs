//! What is said on stderr.

/// As `eprintln!`, to somebody who may be gone: a pipe that is closed or a disk
/// that is full is no reason to panic.
macro_rules! tell {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}
