//! `cargo xtask bench`: builds what is measured, then measures it.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

pub fn run(args: &[String]) -> Result<()> {
    let root = crate::workspace_root()?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.current_dir(&root).args(["build", "--release", "--package", "tidegate", "--package", "tidegate-bench"]);
    ensure!(build.status().context("failed to start cargo")?.success(), "the build failed: see above");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into);
    let release = Path::new(&target).join("release");
    let mut bench = Command::new(release.join("tidegate-bench"));
    bench.arg("--tidegate").arg(release.join("tidegate")).args(args);
    ensure!(bench.status().context("failed to start the benchmark")?.success(), "the benchmark failed: see above");
    Ok(())
}
