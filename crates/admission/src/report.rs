//! The diagnostics of one change, bounded.

use tidegate_model::FieldError;
use tidegate_model::manifest::{Diagnostic, Document};

/// What a person reads at once; a change with more has one cause.
pub const DIAGNOSTICS_MAX: usize = 50;
/// Of one object. Each reads the file again to find its line.
const OBJECT_DIAGNOSTICS_MAX: usize = 10;

#[derive(Default)]
pub(crate) struct Report {
    diagnostics: Vec<Diagnostic>,
}

impl Report {
    pub fn add(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    pub fn extend(&mut self, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        self.diagnostics.extend(diagnostics);
    }

    /// In the order of file and line; those beyond the limit are counted.
    pub fn finish(mut self) -> Option<Vec<Diagnostic>> {
        if self.diagnostics.is_empty() {
            return None;
        }
        self.diagnostics.sort();
        self.diagnostics.dedup();
        let beyond = self.diagnostics.len().saturating_sub(DIAGNOSTICS_MAX);
        self.diagnostics.truncate(DIAGNOSTICS_MAX);
        if let Some(last) = self.diagnostics.last().filter(|_| beyond > 0) {
            let message = format!("and {beyond} more problems from here on: mend these first");
            self.diagnostics.push(Diagnostic::of_file(&last.file.clone(), message));
        }
        Some(self.diagnostics)
    }
}

/// Each error at its line, the first few of them.
pub(crate) fn diagnostics(document: &Document<'_>, errors: &[FieldError]) -> Vec<Diagnostic> {
    let shown = errors.iter().take(OBJECT_DIAGNOSTICS_MAX).map(|error| document.diagnostic(error));
    let beyond = errors.len().saturating_sub(OBJECT_DIAGNOSTICS_MAX);
    let more = (beyond > 0)
        .then(|| Diagnostic::at(document.file, document.line, format!("and {beyond} more problems of this object")));
    shown.chain(more).collect()
}
