//! `tidegate completion`: a script for a shell.

use std::io;

use clap::CommandFactory;
use clap_complete::{Shell, generate};

use crate::cli::Cli;

pub fn run(shell: Shell) {
    generate(shell, &mut Cli::command(), "tidegate", &mut io::stdout());
}
