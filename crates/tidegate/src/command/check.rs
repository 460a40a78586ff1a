//! `tidegate check`: the admission of a push, on a work tree.
//!
//! Invariant: it decides nothing by itself. What is a problem is said by
//! `plan`, as it is said to a pusher, or by the walk that found no file.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Component, Path};
use std::process::ExitCode;

use anyhow::{Context, Result};
use tidegate_admission::{Change, File, Plan, Rules, Verdict, plan};
use tidegate_model::manifest::Diagnostic;
use tidegate_server::folder::Folder;

use super::check_state::Assumed;
use super::{FAILED, UsageError};
use crate::cli::CheckArgs;
use crate::output::{Report, unless_gone};

pub fn run(args: &CheckArgs) -> Result<ExitCode> {
    if !args.path.exists() {
        let message = format!("there is no {}: name a folder or a file", args.path.display());
        return Err(UsageError(message).into());
    }
    if !args.path.is_dir() && !args.path.is_file() {
        let message = format!("{} is neither a folder nor a plain file: write it to a file first", args.path.display());
        return Err(UsageError(message).into());
    }
    let assumed = match args.with_server {
        true => {
            super::client(Assumed::of_server(&args.connection)).context("failed to ask the server for its kinds")?
        }
        false => Assumed::first_start(&args.namespace),
    };
    let folder = Folder::read(&args.path)?;
    if folder.files.is_empty() {
        tell!("no YAML, JSON or Markdown under {}: is it the right folder?", args.path.display());
    }
    let report = check(&prefix(&args.path), folder, &assumed, &args.namespace);
    let mut out = io::stdout().lock();
    unless_gone(out.write_all(report.render(args.output).as_bytes()).and_then(|()| out.flush()))?;
    let failed = !report.problems.is_empty() || args.strict && !report.warnings.is_empty();
    Ok(if failed { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

fn check(prefix: &str, folder: Folder, assumed: &Assumed, namespace: &str) -> Report {
    let files: Vec<(String, Vec<u8>)> =
        folder.files.into_iter().map(|(path, bytes)| (format!("{prefix}{path}"), bytes)).collect();
    let rules = Rules { default_namespace: namespace.into(), ..Rules::unrestricted(namespace, "check") };
    let files = files.iter().map(|(path, bytes)| File { path, bytes }).collect();
    let change = Change { files, ..Change::default() };
    let Ok(verdict) = plan(&assumed.kinds, assumed, &rules, &change);
    let refused =
        folder.refused.into_iter().map(|refused| Diagnostic { file: format!("{prefix}{}", refused.file), ..refused });
    let mut report = report(verdict);
    report.problems.splice(0..0, refused);
    report
}

fn report(verdict: Verdict) -> Report {
    match verdict {
        Verdict::Reject(problems) => Report { problems, ..Report::default() },
        Verdict::Admit(Plan { puts, warnings, .. }) => {
            let files = puts.iter().map(|put| &put.place.path).collect::<BTreeSet<_>>().len();
            Report { objects: puts.len(), files, warnings, problems: Vec::new() }
        }
    }
}

/// Before the path of each file, so that a message leads there from where the
/// command was typed. A file was named itself: its folder is the prefix.
fn prefix(root: &Path) -> String {
    let folder = if root.is_file() { root.parent().unwrap_or(root) } else { root };
    let named: std::path::PathBuf = folder.components().filter(|part| *part != Component::CurDir).collect();
    match named.to_string_lossy() {
        text if text.is_empty() || text.ends_with('/') => text.into_owned(),
        text => format!("{text}/"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_back_to_the_files() {
        let here = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
        let table = [(".", ""), ("./", ""), ("src", "src/"), ("./src/", "src/"), ("../x", "../x/"), ("/", "/")];
        for (typed, expected) in table {
            assert_eq!(prefix(Path::new(typed)), expected, "{typed}");
        }
        assert_eq!(prefix(&Path::new(here).join("main.rs")), format!("{here}/"));
    }
}
