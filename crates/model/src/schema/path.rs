//! Where a walk is, and what it found there.
//!
//! A path is a chain of frames on the stack: it costs nothing until an error
//! is written down. Errors are bounded, so that a hostile object cannot make
//! its own diagnosis large.

use std::fmt;

use crate::{FieldError, FieldErrorReason};

/// Errors kept for one object; one more says that there may be others.
/// ~200 bytes each, so an answer stays below ~20 KiB.
pub const ERRORS_MAX: usize = 100;

#[derive(Clone, Copy)]
pub(crate) enum Path<'a> {
    Root,
    Field(&'a Path<'a>, &'a str),
    /// A key of a map: `labels[app]`.
    Key(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
}

impl<'a> Path<'a> {
    pub fn field(&'a self, name: &'a str) -> Path<'a> {
        Path::Field(self, name)
    }

    pub fn key(&'a self, name: &'a str) -> Path<'a> {
        Path::Key(self, name)
    }

    pub fn index(&'a self, at: usize) -> Path<'a> {
        Path::Index(self, at)
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root => Ok(()),
            Path::Field(Path::Root, name) => f.write_str(name),
            Path::Field(parent, name) => write!(f, "{parent}.{name}"),
            Path::Key(parent, name) => write!(f, "{parent}[{name}]"),
            Path::Index(parent, at) => write!(f, "{parent}[{at}]"),
        }
    }
}

#[derive(Default)]
pub(crate) struct Errors {
    found: Vec<FieldError>,
}

impl Errors {
    pub fn push(&mut self, path: impl fmt::Display, reason: FieldErrorReason, message: impl Into<String>) {
        if !self.is_full() {
            self.found.push(FieldError::new(path.to_string(), reason, message));
        }
    }

    pub fn invalid(&mut self, path: impl fmt::Display, message: impl Into<String>) {
        self.push(path, FieldErrorReason::Invalid, message);
    }

    pub fn required(&mut self, path: impl fmt::Display, message: impl Into<String>) {
        self.push(path, FieldErrorReason::Required, message);
    }

    pub fn forbidden(&mut self, path: impl fmt::Display, message: impl Into<String>) {
        self.push(path, FieldErrorReason::Forbidden, message);
    }

    /// A walk may stop: what it would still find is not kept.
    pub fn is_full(&self) -> bool {
        self.found.len() >= ERRORS_MAX
    }

    pub fn any(&self, test: impl Fn(&FieldError) -> bool) -> bool {
        self.found.iter().any(test)
    }

    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    pub fn extend(&mut self, errors: impl IntoIterator<Item = FieldError>) {
        for error in errors {
            self.push(error.path, error.reason, error.message);
        }
    }

    pub fn into_vec(mut self) -> Vec<FieldError> {
        if self.is_full() {
            self.found.push(FieldError::invalid("", "there may be more errors: fix these first"));
        }
        self.found
    }
}
