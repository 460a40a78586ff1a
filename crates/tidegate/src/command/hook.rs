//! `tidegate hook`: git's hooks ask the server and do what it says.
//!
//! Without a server nothing is accepted: a push by another way than the
//! server's own has to say so, by turning hooks off.

use std::env;
use std::io::{BufRead, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use tidegate_model::terminal::one_line;
use tidegate_server::repos::{
    FSCK_VARIABLE, Hook, HookAnswer, HookCall, PUSH_VARIABLE, REPOSITORY_VARIABLE, RefUpdate, SOCKET_VARIABLE,
};

use super::FAILED;
use crate::cli::HookCommand;

/// Longer than the server gives a whole push.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(900);

pub fn run(command: HookCommand) -> Result<ExitCode> {
    let hook = match command {
        HookCommand::PreReceive => Hook::PreReceive,
        HookCommand::PostReceive => Hook::PostReceive,
    };
    let answer = ask(&call(hook)?)?;
    // Git shows it to the pusher, line by line behind `remote: `.
    for line in &answer.lines {
        eprintln!("{}", one_line(line));
    }
    Ok(if answer.accepted { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

fn call(hook: Hook) -> Result<HookCall> {
    let mut updates = Vec::new();
    // A ref's name is bytes; one that is not text is nobody's projected branch.
    for line in std::io::stdin().lock().split(b'\n') {
        let line = line.context("failed to read what git tells its hooks")?;
        updates.extend(RefUpdate::parse(&String::from_utf8_lossy(&line)));
    }
    Ok(HookCall {
        hook,
        repository: variable(REPOSITORY_VARIABLE)?,
        push: variable(PUSH_VARIABLE)?,
        updates,
        owes_fsck: env::var_os(FSCK_VARIABLE).is_some(),
        object_directory: env::var("GIT_OBJECT_DIRECTORY").ok(),
        alternates: env::var("GIT_ALTERNATE_OBJECT_DIRECTORIES").ok(),
    })
}

fn ask(call: &HookCall) -> Result<HookAnswer> {
    let socket = variable(SOCKET_VARIABLE)?;
    let exchange = || -> Result<HookAnswer> {
        let mut stream = UnixStream::connect(&socket)?;
        stream.set_read_timeout(Some(ANSWER_TIME_MAX))?;
        stream.write_all(&serde_json::to_vec(call)?)?;
        stream.shutdown(Shutdown::Write)?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(serde_json::from_slice(&answer)?)
    };
    exchange().context("failed to ask the server whether the push is good: is it running?")
}

fn variable(name: &str) -> Result<String> {
    env::var(name).with_context(|| format!("{name} is not set: push to the server, not to its directory"))
}
