//! One-file commits on a branch of 10,000 files: ours, and `git fast-import`
//! with the same commits in the same run.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use tidegate_git::{CommitText, Draft, Person, Program, Repository};

use crate::table::Table;

const FILES: usize = 10_000;
const COMMITS: usize = 2_000;
/// As the reverser pushes them.
const COMMITS_PER_PACK: usize = 200;
const TIME_S: u64 = 1_700_000_000;

pub async fn run(table: &mut Table) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let ours = commits_per_s(ours(folder.path()).await?);
    let git = commits_per_s(fast_import(folder.path())?);
    let goal = format!("`git fast-import`: {git:.0}/s");
    table.row(format!("one-file commits, {FILES} files in one folder"), format!("{ours:.0}/s"), &goal, "-");
    Ok(())
}

fn commits_per_s(took: Duration) -> f64 {
    COMMITS as f64 / took.as_secs_f64()
}

fn path(at: usize) -> String {
    format!("live/v1/configmaps/default/n{at}.yaml")
}

/// About 1 KiB, no two alike.
fn content(commit: usize, at: usize) -> String {
    let line = format!("  k{at}: value {commit}\n");
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: n{at}\ndata:\n{}", line.repeat(1000 / line.len()))
}

/// Spread over the folder, so that no two commits in a row are neighbours.
fn changed(commit: usize) -> usize {
    commit * 7919 % FILES
}

async fn ours(folder: &Path) -> anyhow::Result<Duration> {
    let search_path = std::env::var_os("PATH").unwrap_or_default();
    let program = Program { git: "git".into(), search_path, home: folder.to_owned() };
    let repository = Repository::new(program, folder.join("ours.git"));
    repository.init("main").await?;
    let mut draft = Draft::open(&repository, None)?;
    for at in 0..FILES {
        draft.put(&path(at), content(0, at).as_bytes())?;
    }
    commit(&mut draft)?;
    draft.save()?;
    let base = draft.head();
    let started = Instant::now();
    let mut draft = Draft::open(&repository, base.as_ref())?;
    for number in 1..=COMMITS {
        let at = changed(number);
        draft.put(&path(at), content(number, at).as_bytes())?;
        commit(&mut draft)?;
        if number % COMMITS_PER_PACK == 0 {
            draft.save()?;
        }
    }
    let took = started.elapsed();
    let head = draft.head().context("a head")?;
    let counted =
        Command::new("git").args(["rev-list", "--count", head.as_str()]).current_dir(repository.dir()).output()?;
    ensure!(String::from_utf8_lossy(&counted.stdout).trim() == (COMMITS + 1).to_string(), "commits are missing");
    Ok(took)
}

fn commit(draft: &mut Draft) -> anyhow::Result<()> {
    let person = Person::new("a", "a@example.com");
    let text = CommitText { author: &person, committer: &person, time_s: TIME_S, message: "c", signer: None };
    draft.commit(&text)?.context("a commit")?;
    Ok(())
}

fn fast_import(folder: &Path) -> anyhow::Result<Duration> {
    let dir = folder.join("import.git");
    ensure!(Command::new("git").args(["init", "--quiet", "--bare"]).arg(&dir).status()?.success(), "git init failed");
    let mut base = String::new();
    begin(&mut base, false);
    (0..FILES).for_each(|at| modify(&mut base, 0, at));
    import(&dir, &base)?;
    let mut commits = String::new();
    for number in 1..=COMMITS {
        begin(&mut commits, number == 1);
        modify(&mut commits, number, changed(number));
    }
    let started = Instant::now();
    import(&dir, &commits)?;
    Ok(started.elapsed())
}

fn begin(stream: &mut String, from_branch: bool) {
    let person = format!("a <a@example.com> {TIME_S} +0000");
    let _ = write!(stream, "commit refs/heads/main\nauthor {person}\ncommitter {person}\ndata 1\nc\n");
    if from_branch {
        stream.push_str("from refs/heads/main^0\n");
    }
}

fn modify(stream: &mut String, commit: usize, at: usize) {
    let content = content(commit, at);
    let _ = write!(stream, "M 100644 inline {}\ndata {}\n{content}\n", path(at), content.len());
}

fn import(dir: &Path, stream: &str) -> anyhow::Result<()> {
    let mut command = Command::new("git");
    command.args(["-c", "pack.compression=1", "-c", "fastimport.unpackLimit=0", "fast-import", "--quiet"]);
    let mut child = command.current_dir(dir).stdin(Stdio::piped()).spawn()?;
    child.stdin.take().context("a pipe")?.write_all(stream.as_bytes())?;
    ensure!(child.wait()?.success(), "git fast-import failed");
    Ok(())
}
