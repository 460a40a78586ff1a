//! Git in: what a push costs from the start of `git push` to its return, and
//! the part of it that is ours: from its last byte to its answer.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use crate::branch::{Branch, FOLDER_FILES};
use crate::process::Server;
use crate::socket::Socket;
use crate::table::{Table, percentile};
use crate::watches::WATCH;

const SMALL_BRANCH: usize = 1_000;
/// More than a machine pushes in the time of one load.
const ONE_FILE_PUSHES_MAX: usize = 2_000;
const MANY_FILES: usize = 10_000;
const CHANGED_FILES: usize = 100;
const FEW_FOLDERS: usize = 10;
const CHANGES: usize = 25;
const EVENTS_TIME_MAX: Duration = Duration::from_secs(300);

pub struct Sizes {
    pub load: Duration,
    /// Files of the branch on which few files change.
    pub branch: usize,
    /// Files of the branch that is projected at once; 0 leaves it out.
    pub large: usize,
}

pub async fn run(table: &mut Table, binary: &Path, sizes: &Sizes) -> anyhow::Result<()> {
    one_file(table, binary, sizes.load).await?;
    many_files(table, binary).await?;
    few_of(table, binary, sizes.branch / 10, FEW_FOLDERS).await?;
    few_of(table, binary, sizes.branch, FEW_FOLDERS).await?;
    few_of(table, binary, sizes.branch, CHANGED_FILES).await?;
    if sizes.large > 0 {
        all_at_once(table, binary, sizes.large).await?;
    }
    Ok(())
}

/// A server of its own, and a branch with its first commit in force.
struct Site {
    branch: Branch,
    server: Server,
    _data: tempfile::TempDir,
}

impl Site {
    async fn start(binary: &Path) -> anyhow::Result<Self> {
        let data = tempfile::tempdir()?;
        let server = Server::start(binary, data.path()).await?;
        Ok(Self { branch: Branch::new()?, server, _data: data })
    }

    async fn with_files(binary: &Path, files: usize) -> anyhow::Result<Self> {
        let mut site = Self::start(binary).await?;
        site.branch.commit(std::iter::once(0..files))?;
        site.branch.push(&site.server, "main").await?;
        Ok(site)
    }

    /// Pushes the commits after the first one by one until the time is over.
    async fn push_each(&self, time_max: Duration) -> anyhow::Result<Pushes> {
        let ids = self.branch.ids_after(1)?;
        let ours_before = self.server.push_seconds().await?;
        let started = Instant::now();
        let mut times_ms = Vec::new();
        for id in &ids {
            if started.elapsed() > time_max {
                break;
            }
            times_ms.push(self.branch.push(&self.server, id).await?.as_secs_f64() * 1e3);
        }
        let ours_ms = (self.server.push_seconds().await? - ours_before) * 1e3 / times_ms.len() as f64;
        Ok(Pushes { took: started.elapsed(), times_ms, ours_ms })
    }
}

struct Pushes {
    took: Duration,
    times_ms: Vec<f64>,
    /// Of one push, on average.
    ours_ms: f64,
}

async fn one_file(table: &mut Table, binary: &Path, load: Duration) -> anyhow::Result<()> {
    let mut site = Site::with_files(binary, SMALL_BRANCH).await?;
    site.branch.commit((0..ONE_FILE_PUSHES_MAX).map(|at| [at * 7 % SMALL_BRANCH]))?;
    let Pushes { took, mut times_ms, ours_ms } = site.push_each(load).await?;
    let rate = times_ms.len() as f64 / took.as_secs_f64();
    let (p50, p99) = (percentile(&mut times_ms, 50.0), percentile(&mut times_ms, 99.0));
    table.row(
        "one-file pushes, one after the other, from the start of `git push` to its return",
        format!("{rate:.1}/s, p50 {p50:.0} ms, p99 {p99:.0} ms; ours {ours_ms:.1} ms of it"),
        "",
        "",
    );
    site.server.stop().await
}

async fn many_files(table: &mut Table, binary: &Path) -> anyhow::Result<()> {
    let mut site = Site::with_files(binary, 1).await?;
    site.branch.commit(std::iter::once(1..=MANY_FILES))?;
    let mut watcher = Socket::subscribe(&site.server, WATCH).await?;
    let started = Instant::now();
    let delivered = tokio::time::timeout(EVENTS_TIME_MAX, async {
        let mut left = MANY_FILES;
        while left > 0 {
            let frame = watcher.next().await?.context("the watch has ended")?;
            left -= usize::from(memchr::memmem::find(frame, b"\"ADDED\"").is_some());
        }
        anyhow::Ok(started.elapsed())
    });
    let (pushed, delivered) = tokio::join!(site.branch.push(&site.server, "main"), delivered);
    let (pushed, delivered) = (pushed?.as_secs_f64(), delivered.context("events are missing")??.as_secs_f64());
    table.row(
        format!("{MANY_FILES} new files in one push, until the last event is delivered"),
        format!("{delivered:.2} s (`git push` returned after {pushed:.2} s)"),
        "3 s",
        "",
    );
    site.server.stop().await
}

/// The changed files lie in so many folders of [`FOLDER_FILES`], all of whose
/// entries git reads and checks.
async fn few_of(table: &mut Table, binary: &Path, files: usize, folders: usize) -> anyhow::Result<()> {
    let mut site = Site::with_files(binary, files).await?;
    let each = CHANGED_FILES / folders;
    let changed = move |at: usize| at / each * FOLDER_FILES + at % each;
    site.branch.commit((0..CHANGES).map(|_| (0..CHANGED_FILES).map(changed)))?;
    let Pushes { mut times_ms, ours_ms, .. } = site.push_each(Duration::MAX).await?;
    ensure!(times_ms.len() == CHANGES, "a push is missing");
    let (p50, max) = (percentile(&mut times_ms, 50.0), percentile(&mut times_ms, 100.0));
    table.row(
        format!("a change of {CHANGED_FILES} files in {folders} folders of {FOLDER_FILES} on a branch of {files}"),
        format!("p50 {p50:.0} ms, max {max:.0} ms of {CHANGES}; ours {ours_ms:.0} ms of it"),
        "< 500 ms, of any size",
        "",
    );
    site.server.stop().await
}

async fn all_at_once(table: &mut Table, binary: &Path, files: usize) -> anyhow::Result<()> {
    eprintln!("a branch of {files} files");
    let mut site = Site::start(binary).await?;
    site.branch.commit(std::iter::once(0..files))?;
    let took = site.branch.push(&site.server, "main").await?.as_secs_f64();
    let ours = site.server.push_seconds().await?;
    let (rate, peak) = (files as f64 / ours, site.server.memory_peak_mib()?);
    table.row(
        format!("first push of {files} objects, one file each"),
        format!("{took:.1} s; ours {ours:.1} s of it, {rate:.0} files/s; peak memory (RSS) {peak:.0} MiB"),
        "",
        "",
    );
    site.server.stop().await
}
