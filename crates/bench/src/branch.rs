//! A branch of many files, made with `git fast-import`, and its pushes: files
//! on disk would cost more than what is measured.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use tempfile::TempDir;

use crate::process::Server;
use crate::seed;

const TIME_S: u64 = 1_700_000_000;
/// Files of one folder, so that none of the trees is large.
pub const FOLDER_FILES: usize = 1_000;

pub struct Branch {
    folder: TempDir,
    commits: usize,
}

impl Branch {
    pub fn new() -> anyhow::Result<Self> {
        let branch = Self { folder: tempfile::tempdir()?, commits: 0 };
        run(branch.git().args(["init", "--quiet", "--bare", "--initial-branch=main", "."]))?;
        // Pushed as they are: the search for deltas is the client's, not ours.
        run(branch.git().args(["config", "pack.window", "0"]))?;
        Ok(branch)
    }

    fn dir(&self) -> &Path {
        self.folder.path()
    }

    /// Git that knows nothing of whoever runs it.
    fn git(&self) -> Command {
        let mut command = Command::new("git");
        command.current_dir(self.dir()).env_clear().env("HOME", self.dir());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_TERMINAL_PROMPT", "0")]);
        command
    }

    /// One commit for each item, which writes the gadgets of these numbers
    /// anew; the first commit defines their kind, too.
    pub fn commit<I: IntoIterator<Item = usize>>(
        &mut self,
        commits: impl IntoIterator<Item = I>,
    ) -> anyhow::Result<()> {
        let before = self.commits;
        let files = commits.into_iter().zip(before..).map(|(gadgets, commit)| {
            let definition = (commit == 0).then(|| ("crd.json".to_owned(), seed::definition_text()));
            definition.into_iter().chain(gadgets.into_iter().map(move |at| (path(at), text(at, commit))))
        });
        self.commit_files(files)
    }

    /// One commit for each item: paths and their texts.
    pub fn commit_files<I: IntoIterator<Item = (String, String)>>(
        &mut self,
        commits: impl IntoIterator<Item = I>,
    ) -> anyhow::Result<()> {
        let mut child =
            self.git().args(["fast-import", "--quiet", "--force"]).stdin(Stdio::piped()).spawn().context("git")?;
        let mut stream = BufWriter::new(child.stdin.take().context("a pipe")?);
        for (at, files) in commits.into_iter().enumerate() {
            begin(&mut stream, at == 0 && self.commits > 0)?;
            for (path, text) in files {
                modify(&mut stream, &path, &text)?;
            }
            self.commits += 1;
        }
        drop(stream.into_inner().map_err(|error| error.into_error())?);
        ensure!(child.wait()?.success(), "git fast-import failed");
        Ok(())
    }

    /// Oldest first, those after `number` of them.
    pub fn ids_after(&self, number: usize) -> anyhow::Result<Vec<String>> {
        let listed = run(self.git().args(["rev-list", "--reverse", "main"]))?;
        Ok(listed.lines().skip(number).map(str::to_owned).collect())
    }

    /// From the start of `git push` to its return.
    pub async fn push(&self, server: &Server, commit: &str) -> anyhow::Result<Duration> {
        let url = format!("http://bench:{}@{}/git/system/control.git", server.token, server.address);
        let mut command = tokio::process::Command::from(self.git());
        command.args(["push", "--quiet", &url]).arg(format!("{commit}:refs/heads/main"));
        let started = Instant::now();
        let output = command.output().await?;
        let took = started.elapsed();
        if !output.status.success() {
            bail!("git push failed: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(took)
    }
}

fn run(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output().context("failed to start git")?;
    ensure!(output.status.success(), "git failed: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

fn begin(stream: &mut impl Write, continues: bool) -> std::io::Result<()> {
    let person = format!("a <a@example.com> {TIME_S} +0000");
    write!(stream, "commit refs/heads/main\nauthor {person}\ncommitter {person}\ndata 1\nc\n")?;
    if continues { writeln!(stream, "from refs/heads/main^0") } else { Ok(()) }
}

fn modify(stream: &mut impl Write, path: &str, text: &str) -> std::io::Result<()> {
    write!(stream, "M 100644 inline {path}\ndata {}\n{text}\n", text.len())
}

fn path(gadget: usize) -> String {
    let path = PathBuf::from("gadgets").join(format!("{:04}", gadget / FOLDER_FILES));
    path.join(format!("{}.yaml", seed::name(gadget))).display().to_string()
}

/// About 600 bytes, as a product of a catalogue, no two alike.
fn text(gadget: usize, commit: usize) -> String {
    let name = seed::name(gadget);
    let payload = format!("{name} of commit {commit}; ").repeat(8);
    let items: String = (0..8).map(|n| format!("  - {{key: item-{n}, value: {}}}\n", gadget + n)).collect();
    format!(
        "apiVersion: bench.example/v1\nkind: Gadget\nmetadata:\n  name: {name}\n  labels: {{shard: \"{}\"}}\nspec:\n  payload: {payload:?}\n  items:\n{items}",
        gadget % 100
    )
}
