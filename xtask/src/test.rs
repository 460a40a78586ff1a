//! `cargo xtask test`: every test of the workspace, and one line that sums up.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// CustomResourceDefinitions of well-known projects, beside the repository.
const CORPUS_VARIABLE: &str = "TIDEGATE_CRD_CORPUS";
const CORPUS_BESIDE_ROOT: &str = "../shared/crds";

/// Whoever sets it knows better; so does `--test-threads`.
const THREADS_VARIABLE: &str = "RUST_TEST_THREADS";
/// Most of the time tests wait: for processes, leases, disks.
const THREADS_PER_CORE: usize = 2;

pub fn run(args: &[String]) -> Result<()> {
    let root = crate::workspace_root()?;
    let assets = crate::assets::provide()?;
    crate::packages::ensure_sshd()?;
    let started = Instant::now();
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(&root).arg("test").stdout(Stdio::piped());
    // A choice of packages replaces the whole.
    if !args.iter().any(|arg| arg == "-p" || arg.starts_with("--package")) {
        cargo.arg("--workspace");
    }
    // One failure should not hide the others.
    cargo.arg("--no-fail-fast").args(args);
    cargo.env(tidegate_assets::FOLDER_VARIABLE, assets.built());
    if let Some(corpus) = corpus(&root) {
        cargo.env(CORPUS_VARIABLE, corpus);
    }
    if std::env::var_os(THREADS_VARIABLE).is_none() {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        cargo.env(THREADS_VARIABLE, (cores * THREADS_PER_CORE).to_string());
    }
    let mut child = cargo.spawn().context("failed to start cargo")?;
    let output = child.stdout.take().context("cargo has no output")?;
    let total = echo_and_count(BufReader::new(output), std::io::stdout().lock())?;
    let is_good = child.wait().context("failed to wait for cargo")?.success();
    println!("\n{} in {:.0} s", total.summary(), started.elapsed().as_secs_f32());
    if is_good { Ok(()) } else { bail!("some tests failed, or did not build: see above") }
}

/// `None` if it is chosen already, or not there.
fn corpus(root: &Path) -> Option<PathBuf> {
    if std::env::var_os(CORPUS_VARIABLE).is_some() {
        return None;
    }
    root.join(CORPUS_BESIDE_ROOT).canonicalize().ok()
}

#[derive(Default, PartialEq, Eq, Debug)]
struct Total {
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Total {
    fn summary(&self) -> String {
        let Self { passed, failed, ignored } = self;
        format!("tests: {passed} passed, {failed} failed, {ignored} ignored")
    }

    /// `test result: ok. 5 passed; 0 failed; 0 ignored; …`
    fn add(&mut self, line: &str) {
        let Some(counts) = line.strip_prefix("test result: ") else { return };
        let counts = counts.split_once(". ").map_or(counts, |(_, counts)| counts);
        for part in counts.split("; ") {
            match part.split_once(' ').map(|(number, what)| (number.parse::<u64>().unwrap_or(0), what)) {
                Some((number, "passed")) => self.passed += number,
                Some((number, "failed")) => self.failed += number,
                Some((number, "ignored")) => self.ignored += number,
                _ => {}
            }
        }
    }
}

fn echo_and_count(output: impl BufRead, mut out: impl Write) -> Result<Total> {
    let mut total = Total::default();
    for line in output.lines() {
        let line = line.context("failed to read cargo's output")?;
        writeln!(out, "{line}")?;
        total.add(&line);
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_add_up() {
        let output = "running 5 tests\n\
            test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.01s\n\
            test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s\n\
            test result: nonsense\n";
        let mut echoed = Vec::new();
        let total = echo_and_count(output.as_bytes(), &mut echoed).unwrap();
        assert_eq!(String::from_utf8(echoed).unwrap(), output);
        assert_eq!(total, Total { passed: 7, failed: 1, ignored: 1 });
        assert_eq!(total.summary(), "tests: 7 passed, 1 failed, 1 ignored");
    }
}
