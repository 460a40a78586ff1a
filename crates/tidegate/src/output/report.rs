//! What a check found, for a person, a program, code scanning or a workflow.

use serde_json::{Value, json};
use tidegate_admission::DIAGNOSTICS_MAX;
use tidegate_model::manifest::Diagnostic;

use super::sarif;
use super::table::harmless;
use crate::cli::ReportFormat;

#[derive(Default, Debug)]
pub struct Report {
    /// Admitted ones: none as long as there are problems.
    pub objects: usize,
    /// Those that define objects.
    pub files: usize,
    pub problems: Vec<Diagnostic>,
    pub warnings: Vec<Diagnostic>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Level {
    Error,
    Warning,
}

impl Level {
    /// The word of SARIF and of workflows alike.
    pub fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

impl Report {
    pub fn render(&self, format: ReportFormat) -> String {
        match format {
            ReportFormat::Text => format!("{}{}\n", self.lines(text_line), self.summary()),
            ReportFormat::Json => format!("{:#}\n", self.json()),
            ReportFormat::Sarif => format!("{:#}\n", sarif::log(self.found())),
            ReportFormat::Github => format!("{}{}\n", self.lines(github_line), self.summary()),
        }
    }

    fn found(&self) -> impl Iterator<Item = (Level, &Diagnostic)> {
        let problems = self.problems.iter().map(|problem| (Level::Error, problem));
        problems.chain(self.warnings.iter().map(|warning| (Level::Warning, warning)))
    }

    fn lines(&self, line: fn(Level, &Diagnostic) -> String) -> String {
        self.found().map(|(level, found)| line(level, found) + "\n").collect()
    }

    /// `12 objects in 9 files, no problems`.
    fn summary(&self) -> String {
        // Beyond the limit, admission counts them in a line of its own.
        match self.problems.len() {
            0 => {}
            count if count > DIAGNOSTICS_MAX => return format!("more than {DIAGNOSTICS_MAX} problems"),
            count => return counted(count, "problem"),
        }
        let (objects, files) = (counted(self.objects, "object"), counted(self.files, "file"));
        let warnings = match self.warnings.len() {
            0 => String::new(),
            count => format!(", {}", counted(count, "warning")),
        };
        format!("{objects} in {files}, no problems{warnings}")
    }

    fn json(&self) -> Value {
        let item = |found: &Diagnostic| {
            let Diagnostic { file, line, field, message } = found;
            json!({"file": file, "line": line, "field": field, "message": message})
        };
        let items = |found: &[Diagnostic]| found.iter().map(item).collect::<Vec<_>>();
        json!({
            "objects": self.objects,
            "files": self.files,
            "problems": items(&self.problems),
            "warnings": items(&self.warnings),
        })
    }
}

/// A problem reads as a pusher reads it.
fn text_line(level: Level, found: &Diagnostic) -> String {
    if level == Level::Warning { format!("warning: {found}") } else { found.to_string() }
}

/// `::error file=a.yaml,line=2::text`.
fn github_line(level: Level, found: &Diagnostic) -> String {
    let line = found.line.map_or_else(String::new, |line| format!(",line={line}"));
    let file = escaped(&found.file, &['%', '\r', '\n', ':', ',']);
    let text = escaped(&message(found), &['%', '\r', '\n']);
    format!("::{} file={file}{line}::{text}", level.word())
}

/// Field and message, where the place is said apart.
pub(super) fn message(found: &Diagnostic) -> String {
    let field = found.field.as_ref().map_or_else(String::new, |field| format!("{field}: "));
    format!("{field}{}", found.message)
}

fn escaped(text: &str, special: &[char]) -> String {
    let escape = |letter: char| match special.contains(&letter) {
        true => format!("%{:02X}", u32::from(letter)),
        false => harmless(letter.encode_utf8(&mut [0; 4])),
    };
    text.chars().map(escape).collect()
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn found(file: &str, line: usize, field: &str, message: &str) -> Diagnostic {
        Diagnostic { field: Some(field.into()), ..Diagnostic::at(file, line, message) }
    }

    fn refused() -> Report {
        let odd = Diagnostic::of_file("odd, 100%:\n.yaml", "bad\x1b[31m\nand 5% worse");
        Report { problems: vec![found("a.yaml", 2, "kind", "there is no kind X"), odd], ..Report::default() }
    }

    fn admitted() -> Report {
        let warnings = vec![found("b.md", 7, "spec.colour", "dropped")];
        Report { objects: 12, files: 9, warnings, ..Report::default() }
    }

    fn check(report: &Report, format: ReportFormat, expected: Expect) {
        expected.assert_eq(&report.render(format));
    }

    #[test]
    fn text() {
        check(
            &refused(),
            ReportFormat::Text,
            expect![[r#"
                a.yaml:2: kind: there is no kind X
                "odd, 100%:\n.yaml": bad\033[31m\nand 5% worse
                2 problems
            "#]],
        );
        check(
            &admitted(),
            ReportFormat::Text,
            expect![[r#"
            warning: b.md:7: spec.colour: dropped
            12 objects in 9 files, no problems, 1 warning
        "#]],
        );
    }

    #[test]
    fn workflow_commands() {
        check(
            &refused(),
            ReportFormat::Github,
            expect![[r#"
            ::error file=a.yaml,line=2::kind: there is no kind X
            ::error file=odd%2C 100%25%3A%0A.yaml::bad�[31m%0Aand 5%25 worse
            2 problems
        "#]],
        );
        check(
            &admitted(),
            ReportFormat::Github,
            expect![[r#"
            ::warning file=b.md,line=7::spec.colour: dropped
            12 objects in 9 files, no problems, 1 warning
        "#]],
        );
    }

    #[test]
    fn json() {
        check(
            &admitted(),
            ReportFormat::Json,
            expect![[r#"
            {
              "files": 9,
              "objects": 12,
              "problems": [],
              "warnings": [
                {
                  "field": "spec.colour",
                  "file": "b.md",
                  "line": 7,
                  "message": "dropped"
                }
              ]
            }
        "#]],
        );
    }

    #[test]
    fn what_the_counts_say() {
        let problems = |count| vec![Diagnostic::of_file("a", "b"); count];
        for (report, expected) in [
            (Report { objects: 1, files: 1, ..Report::default() }, "1 object in 1 file, no problems"),
            (Report::default(), "0 objects in 0 files, no problems"),
            (Report { problems: problems(1), ..Report::default() }, "1 problem"),
            (Report { problems: problems(DIAGNOSTICS_MAX + 1), ..Report::default() }, "more than 50 problems"),
        ] {
            assert_eq!(report.summary(), expected);
        }
    }
}
