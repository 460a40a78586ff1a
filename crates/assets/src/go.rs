//! The `go` program: one build, with progress.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use thiserror::Error;

use crate::build::seconds;
use crate::program::Program;

/// Where Go's own instructions put it, if the search path does not have it.
const USUAL_PLACE: &str = "/usr/local/go/bin/go";
const PROGRESS_INTERVAL: Duration = Duration::from_secs(15);
/// Enough for a compiler's complaint; a failing download repeats itself.
const COMPLAINT_LINES_MAX: usize = 20;

#[derive(Debug, Error)]
pub enum GoError {
    #[error(
        "no Go to build it with: install Go 1.26 or newer (https://go.dev/dl), or set KUBEBUILDER_ASSETS to a folder with the programs"
    )]
    NoGo,
    #[error("failed to run {}", go.display())]
    Run {
        go: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(
        "go says:\n{complaint}\nIts modules come from GOPROXY (`go env GOPROXY` tells which): check that it can be reached, then run `cargo xtask assets` again"
    )]
    Failed { complaint: String },
}

pub struct Go(PathBuf);

impl Go {
    pub fn find() -> Result<Self, GoError> {
        let candidates = [PathBuf::from("go"), PathBuf::from(USUAL_PLACE)];
        let works = |go: &PathBuf| {
            let version = Command::new(go).arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status();
            version.is_ok_and(|status| status.success())
        };
        candidates.into_iter().find(works).map(Self).ok_or(GoError::NoGo)
    }

    pub fn build(
        &self,
        program: Program,
        module: &Path,
        output: &Path,
        say: &mut dyn FnMut(&str),
    ) -> Result<(), GoError> {
        let failed = |source| GoError::Run { go: self.0.clone(), source };
        let mut go = Command::new(&self.0);
        go.current_dir(module).args(["build", "-v", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags"]);
        go.arg(program.link_flags()).arg("-o").arg(output).arg(program.package());
        // A static program that does not depend on how this machine is set up.
        go.env("CGO_ENABLED", "0").env("GOWORK", "off");
        let mut child = go.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().map_err(failed)?;
        let mut progress = Progress::new(program);
        if let Some(stderr) = child.stderr.take() {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                progress.hear(line).into_iter().for_each(|line| say(&line));
            }
        }
        let is_good = child.wait().map_err(failed)?.success();
        if is_good { Ok(()) } else { Err(GoError::Failed { complaint: progress.complaint() }) }
    }
}

/// What `go build -v` writes: a line for each package that it compiles, one
/// for each module that it fetches, and complaints.
struct Progress {
    program: Program,
    started: Instant,
    told: Instant,
    packages: usize,
    modules: usize,
    complaints: VecDeque<String>,
}

impl Progress {
    fn new(program: Program) -> Self {
        let now = Instant::now();
        Self { program, started: now, told: now, packages: 0, modules: 0, complaints: VecDeque::new() }
    }

    /// A line for the user, now and then.
    fn hear(&mut self, line: String) -> Option<String> {
        if line.starts_with("go: downloading ") {
            self.modules += 1;
        } else if !line.contains(char::is_whitespace) {
            self.packages += 1;
        } else {
            self.complaints.push_back(line);
            if self.complaints.len() > COMPLAINT_LINES_MAX {
                self.complaints.pop_front();
            }
        }
        if self.told.elapsed() < PROGRESS_INTERVAL {
            return None;
        }
        self.told = Instant::now();
        let Self { program, modules, packages, started, .. } = self;
        let fetched = if *modules == 0 { String::new() } else { format!("{modules} modules fetched, ") };
        Some(format!("  {program}: {fetched}{packages} packages compiled, {}", seconds(started.elapsed())))
    }

    fn complaint(self) -> String {
        Vec::from(self.complaints).join("\n")
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn complaints_are_kept_and_progress_is_not() {
        let mut progress = Progress::new(Program::Etcd);
        progress.hear("internal/abi".into());
        progress.hear("go: downloading k8s.io/api v0.36.3".into());
        for number in 0..30 {
            progress.hear(format!("go: k8s.io/api@v0.36.3: dial tcp: refused {number}"));
        }
        assert_eq!((progress.packages, progress.modules), (1, 1));
        let complaint = progress.complaint();
        assert_eq!(complaint.lines().count(), COMPLAINT_LINES_MAX);
        assert!(complaint.ends_with("refused 29"), "{complaint}");
    }

    #[test]
    fn a_failed_build_says_why_and_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let go = folder.path().join("go");
        fs::write(&go, "#!/bin/sh\necho 'go: k8s.io/api@v0.36.3: dial tcp: lookup proxy: no such host' >&2\nexit 1\n")
            .unwrap();
        fs::set_permissions(&go, fs::Permissions::from_mode(0o755)).unwrap();
        let failed = Go(go).build(Program::Etcd, folder.path(), &folder.path().join("etcd"), &mut |_| {});
        let error = failed.unwrap_err().to_string();
        assert!(error.contains("no such host") && error.contains("GOPROXY"), "{error}");
    }
}
