//! `cargo xtask bench`: builds what is measured, then measures it.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

pub fn run(args: &[String]) -> Result<()> {
    let root = crate::workspace_root()?;
    // The reverser is measured on a real control plane.
    let assets = if needs_cluster(args) { Some(crate::assets::provide()?) } else { None };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.current_dir(&root).args(["build", "--release", "--package", "tidegate", "--package", "tidegate-bench"]);
    ensure!(build.status().context("failed to start cargo")?.success(), "the build failed: see above");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into);
    let release = Path::new(&target).join("release");
    let mut bench = Command::new(release.join("tidegate-bench"));
    bench.arg("--tidegate").arg(release.join("tidegate")).args(args);
    if let Some(assets) = assets {
        bench.env(tidegate_assets::FOLDER_VARIABLE, assets.built());
    }
    ensure!(bench.status().context("failed to start the benchmark")?.success(), "the benchmark failed: see above");
    Ok(())
}

/// All rows, or these by name: `--only reverse`, `--only=reverse`.
fn needs_cluster(args: &[String]) -> bool {
    let named = args.iter().position(|arg| arg == "--only").and_then(|at| args.get(at + 1)).map(String::as_str);
    let joined = args.iter().find_map(|arg| arg.strip_prefix("--only="));
    named.or(joined).is_none_or(|rows| rows.starts_with("reverse"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_for_the_reverser() {
        for (args, expected) in [
            (&[][..], true),
            (&["--seconds", "5"], true),
            (&["--only", "reverse"], true),
            (&["--only=reverse"], true),
            (&["--only=reverse-memory"], true),
            (&["--only", "api"], false),
            (&["--only=git"], false),
        ] {
            let args: Vec<_> = args.iter().map(ToString::to_string).collect();
            assert_eq!(needs_cluster(&args), expected, "{args:?}");
        }
    }
}
