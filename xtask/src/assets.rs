//! `cargo xtask assets`: the programs of other projects that tests run.

use anyhow::Result;
use tidegate_assets::{Places, Program};

pub fn run() -> Result<()> {
    let places = provide()?;
    for program in Program::ALL {
        println!("{:<24}{}", program.name(), places.find(program)?.display());
    }
    Ok(())
}

/// Builds what is missing; says nothing if nothing is.
pub fn provide() -> Result<Places> {
    let places = Places::from_env()?;
    let modules = crate::workspace_root()?.join("tests/assets");
    tidegate_assets::provide(&places, &Program::ALL, &modules, &mut |line| eprintln!("{line}"))?;
    Ok(places)
}
