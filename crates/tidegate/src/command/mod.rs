//! The commands, and what their ends mean to a shell.

mod check;
mod check_state;
mod completion;
mod control;
mod controllers;
mod get;
mod kinds;
mod quarantine;
mod repo;
mod repo_verify;
mod reverse;
mod select;
mod serve;
mod serve_options;
mod store;
mod token;
mod watch;
mod whoami;

use std::future::Future;
use std::io;
use std::process::ExitCode;

use anyhow::{Context, Result};
use tidegate_model::terminal::one_line;

use crate::cli::{Cli, Command, QuarantineCommand};
use crate::telemetry;

const FAILED: u8 = 1;
const USAGE: u8 = 2;

/// The command was called wrongly: nothing was tried.
#[derive(Debug)]
pub struct UsageError(pub String);

impl std::fmt::Display for UsageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

pub fn run(cli: Cli) -> ExitCode {
    let only_shows = only_shows(&cli.command);
    match dispatch(cli.command) {
        Ok(code) => code,
        // Whoever read our output has enough: `tidegate get … | head`.
        Err(error) if only_shows && is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // It may hold what a server or a file says.
            format!("error: {error:#}").lines().for_each(|line| tell!("{}", one_line(line)));
            if let Some(step) = crate::client::next_step(&error) {
                tell!("  next: {step}");
            }
            ExitCode::from(if is_usage_error(&error) { USAGE } else { FAILED })
        }
    }
}

/// Without a reader there is nothing left to do.
fn only_shows(command: &Command) -> bool {
    match command {
        Command::Get(_) | Command::Watch(_) | Command::Kinds(_) | Command::Whoami(_) => true,
        Command::Controllers(_) | Command::Completion { .. } => true,
        Command::Quarantine(args) => matches!(args.command, QuarantineCommand::List { .. }),
        Command::Serve(args) => args.show_config,
        Command::Control(_) | Command::Reverse(_) | Command::Check(_) => false,
        Command::Token(_) | Command::Repo(_) | Command::Store(_) => false,
    }
}

fn dispatch(command: Command) -> Result<ExitCode> {
    match command {
        Command::Serve(args) => return serve::run(&args),
        Command::Control(args) => return control::run(&args),
        Command::Reverse(args) => return reverse::run(*args),
        Command::Check(args) => return check::run(&args),
        Command::Get(args) => client(get::run(args))?,
        Command::Watch(args) => client(watch::run(args))?,
        Command::Kinds(args) => client(kinds::run(&args))?,
        Command::Whoami(args) => client(whoami::run(&args))?,
        Command::Token(args) => client(token::run(&args))?,
        Command::Repo(args) => return client(repo::run(&args)),
        Command::Controllers(args) => client(controllers::list(&args))?,
        Command::Quarantine(args) => client(quarantine::run(&args))?,
        Command::Store(args) => store::run(&args)?,
        Command::Completion { shell } => completion::run(shell)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// One thread is enough for a client.
fn client<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    telemetry::start_quiet();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("failed to start the runtime")?.block_on(work)
}

fn is_usage_error(error: &anyhow::Error) -> bool {
    error.is::<UsageError>() || crate::client::is_usage_error(error)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io_error = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>());
    io_error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
