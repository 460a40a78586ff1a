//! What the remote's branch has, and since when.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

const REF: &str = "refs/heads/main";
/// How exactly the moment of a push is known.
const POLL: Duration = Duration::from_millis(1);

#[derive(Clone, Debug)]
pub struct Push {
    pub at: Instant,
    pub commit: String,
}

/// A thread that looks at the branch until it is dropped.
pub struct RemoteBranch {
    repository: PathBuf,
    pushes: Arc<Mutex<Vec<Push>>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// A file as a push left it.
pub struct Changed {
    pub path: String,
    /// What is new in it, line by line.
    pub lines: Vec<String>,
}

impl RemoteBranch {
    pub fn watch(repository: &Path) -> anyhow::Result<Self> {
        let (pushes, is_over) = (Arc::<Mutex<Vec<Push>>>::default(), Arc::new(AtomicBool::new(false)));
        let (file, told, over) = (repository.join(REF), pushes.clone(), is_over.clone());
        let looks = move || {
            let mut seen = String::new();
            while !over.load(Ordering::Acquire) {
                let now = std::fs::read_to_string(&file).unwrap_or_default().trim().to_owned();
                if now != seen && !now.is_empty() {
                    seen.clone_from(&now);
                    told.lock().unwrap_or_else(PoisonError::into_inner).push(Push { at: Instant::now(), commit: now });
                }
                std::thread::sleep(POLL);
            }
        };
        let thread = std::thread::Builder::new().name("branch".into()).spawn(looks)?;
        Ok(Self { repository: repository.to_owned(), pushes, is_over, thread: Some(thread) })
    }

    pub fn pushes(&self) -> Vec<Push> {
        self.pushes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// When the branch had as many files.
    pub async fn wait_files(&self, count: usize, patience: Duration) -> anyhow::Result<Instant> {
        let (started, mut counted) = (Instant::now(), 0);
        loop {
            let pushes = self.pushes();
            for push in pushes.iter().skip(counted) {
                if self.git(&["ls-tree", "-r", "--name-only", &push.commit])?.lines().count() == count {
                    return Ok(push.at);
                }
            }
            counted = pushes.len();
            ensure!(started.elapsed() < patience, "the branch does not have {count} files");
            tokio::time::sleep(POLL).await;
        }
    }

    /// When the branch first had, or had no more, the file `path`.
    pub async fn wait_file(&self, path: &str, is_there: bool, patience: Duration) -> anyhow::Result<Instant> {
        let (started, mut looked) = (Instant::now(), self.pushes().len().saturating_sub(1));
        loop {
            let pushes = self.pushes();
            for push in pushes.iter().skip(looked) {
                let found = self.git(&["ls-tree", "-r", "--name-only", &push.commit, "--", path])?;
                if found.is_empty() != is_there {
                    return Ok(push.at);
                }
            }
            looked = pushes.len().saturating_sub(1);
            ensure!(started.elapsed() < patience, "{path}: is_there is not {is_there}");
            tokio::time::sleep(POLL).await;
        }
    }

    /// What a push changed against the one before it.
    pub fn changed(&self, before: &str, after: &str) -> anyhow::Result<Vec<Changed>> {
        let text = self.git(&["diff", "--no-color", "--no-renames", "-U0", before, after])?;
        let mut changed: Vec<Changed> = Vec::new();
        for line in text.lines() {
            if let Some(path) = line.strip_prefix("+++ b/") {
                changed.push(Changed { path: path.to_owned(), lines: Vec::new() });
            } else if let (Some(line), Some(last)) = (line.strip_prefix('+'), changed.last_mut()) {
                last.lines.push(line.to_owned());
            }
        }
        Ok(changed)
    }

    /// Of the commits after `before`, how many there are for each author.
    pub fn authors(&self, before: &str) -> anyhow::Result<Vec<String>> {
        let text = self.git(&["log", "--format=%an", &format!("{before}..{REF}")])?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    fn git(&self, args: &[&str]) -> anyhow::Result<String> {
        let output = Command::new("git").arg("-C").arg(&self.repository).args(args).output().context("git")?;
        if !output.status.success() {
            bail!("git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl Drop for RemoteBranch {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
