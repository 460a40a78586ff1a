//! What is wrong with a file, said so that its author finds the place.

use std::fmt;

use crate::terminal::{one_line, quoted_path};

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
/// One line, whatever a file is called and whatever it says.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&quoted_path(&self.file))?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(field) = &self.field {
            write!(f, ": {}", one_line(field))?;
        }
        write!(f, ": {}", one_line(&self.message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_begins_a_line_of_its_own() {
        let diagnostic = Diagnostic {
            field: Some("metadata.labels[a\nb]".into()),
            ..Diagnostic::at("x\nrefused: nothing.yaml", 3, "no \u{1b}[2J\nhere")
        };
        let shown = r#""x\nrefused: nothing.yaml":3: metadata.labels[a\nb]: no \033[2J\nhere"#;
        assert_eq!(diagnostic.to_string(), shown);
    }
}
