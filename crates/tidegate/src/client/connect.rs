//! From flags and environment to a connection, and from its failures to what
//! to type next.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};
use tidegate_client::{Client, ClientError, Code, Options, Refusal, TokenSource};

use crate::cli::ConnectionArgs;
use crate::config::DATA_DIR;

pub fn connect(args: &ConnectionArgs) -> Result<Client> {
    Ok(Client::new(&options(args)?)?)
}

/// For operations that the server may take long to answer.
pub fn connect_patiently(args: &ConnectionArgs, read_timeout: Duration) -> Result<Client> {
    Ok(Client::new(&Options { read_timeout, ..options(args)? })?)
}

fn options(args: &ConnectionArgs) -> Result<Options> {
    let token = find_token(args.token_file.as_deref(), std::env::var_os("TIDEGATE_TOKEN"))?;
    Ok(Options { ca_file: args.ca_file.clone(), ..Options::new(&args.server, token) })
}

/// A file that was named, a variable, or the token of a server that was
/// started in this directory.
fn find_token(file: Option<&Path>, variable: Option<OsString>) -> Result<TokenSource> {
    if let Some(path) = file {
        return Ok(TokenSource::File(path.into()));
    }
    if let Some(token) = variable.filter(|token| !token.is_empty()) {
        // What is no text is no token either, which is for the source to say.
        return Ok(TokenSource::Text(token.to_string_lossy().into_owned()));
    }
    let local = Path::new(DATA_DIR).join("admin.token");
    if !local.exists() {
        bail!(
            "no token: name its file with --token-file, set TIDEGATE_TOKEN, or run this where {} is",
            local.display()
        );
    }
    Ok(TokenSource::File(local))
}

/// The code of a failure, if it was the server that refused.
pub fn code_of(error: &anyhow::Error) -> Option<Code> {
    match error.downcast_ref::<ClientError>() {
        Some(ClientError::Refused(refusal)) => Some(refusal.code()),
        _ => error.downcast_ref::<Refusal>().map(Refusal::code),
    }
}

/// What was typed can never work: the server was asked at most to say why.
pub fn is_usage_error(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref::<ClientError>(), Some(ClientError::Address { .. } | ClientError::Credentials { .. }))
        || code_of(error) == Some(Code::Malformed)
}

/// What to type next, where the message does not say it.
pub fn next_step(error: &anyhow::Error) -> Option<&str> {
    if let Some(ClientError::Unreachable { remedy, .. }) = error.downcast_ref::<ClientError>() {
        return Some(remedy);
    }
    match code_of(error)? {
        Code::Unauthenticated => Some(
            "name the token's file with --token-file; the server's admin token is `admin.token` in its data directory",
        ),
        Code::Forbidden => Some("`tidegate whoami` tells who you are"),
        Code::KindNotFound => Some("`tidegate kinds` lists what there is"),
        Code::CursorLost => Some("watch again without --since"),
        Code::ListExpired | Code::Later | Code::Malformed | Code::Other => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_named_goes_before_a_variable() {
        let found = |file: Option<&str>, variable: Option<&str>| {
            find_token(file.map(Path::new), variable.map(Into::into)).map(|source| format!("{source:?}")).ok()
        };
        assert_eq!(found(Some("a"), Some("secret")).as_deref(), Some("File(a)"));
        assert_eq!(found(None, Some("secret")).as_deref(), Some("Text(…)"));
        assert_eq!(found(None, Some("")), None);
    }
}
