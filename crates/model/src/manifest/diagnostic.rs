//! What is wrong with a file, said so that its author finds the place.

use std::fmt;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Diagnostic {
    /// Its path in the repository.
    pub file: String,
    /// Counted from 1.
    pub line: Option<usize>,
    /// As in a `FieldError`: `spec.options[0].name`.
    pub field: Option<String>,
    /// What is wrong and what to do.
    pub message: String,
}

impl Diagnostic {
    pub fn of_file(file: &str, message: impl Into<String>) -> Self {
        Self { file: file.into(), line: None, field: None, message: message.into() }
    }

    pub fn at(file: &str, line: usize, message: impl Into<String>) -> Self {
        Self { line: Some(line), ..Self::of_file(file, message) }
    }
}

/// `file:line: field: message`, which editors and terminals turn into a link.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(field) = &self.field {
            write!(f, ": {field}")?;
        }
        write!(f, ": {}", self.message)
    }
}
