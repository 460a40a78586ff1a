//! `tidegate completion`: a script for a shell.

use std::io::{self, Write};

use anyhow::Result;
use clap::CommandFactory;
use clap_complete::{Shell, generate};

use crate::cli::Cli;

pub fn run(shell: Shell) -> Result<()> {
    let mut script = Vec::new();
    generate(shell, &mut Cli::command(), "tidegate", &mut script);
    Ok(io::stdout().write_all(&script)?)
}
