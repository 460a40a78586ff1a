//! `tidegate token`: made and revoked by the server, which holds the key.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};
use tidegate_client::Client;

use crate::cli::{Account, TokenArgs, TokenCommand};
use crate::client::connect;

const CREATE: &str = "mutation($input: CreateTokenInput!) { createToken(input: $input) { token id expiresAt } }";
const REVOKE: &str = "mutation($input: RevokeTokenInput!) { revokeToken(input: $input) }";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Token {
    token: String,
    id: String,
    expires_at: String,
}

pub async fn run(args: &TokenArgs) -> Result<()> {
    let client = connect(&args.connection)?;
    match &args.command {
        TokenCommand::Create { service_account, ttl, output } => {
            create(&client, service_account, *ttl, output.as_deref()).await
        }
        TokenCommand::Revoke { service_account, id } => revoke(&client, service_account, id).await,
    }
}

async fn create(client: &Client, account: &Account, ttl: Option<Duration>, output: Option<&Path>) -> Result<()> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Data {
        create_token: Token,
    }
    let mut input = input(account);
    if let Some(ttl) = ttl {
        input["expiresInSeconds"] = json!(ttl.as_secs());
    }
    // Before the token is made: one that cannot be written down would live on.
    let mut out: Box<dyn Write> = match output {
        Some(path) => Box::new(create_file(path)?),
        None => Box::new(io::stdout().lock()),
    };
    let token = match client.query::<Data>(CREATE, json!({"input": input})).await {
        Ok(data) => data.create_token,
        Err(error) => {
            discard(output);
            return Err(error.into());
        }
    };
    writeln!(out, "{}", token.token).and_then(|()| out.flush()).context("failed to write the token")?;
    let Account { namespace, name } = account;
    tell!(
        "token {} of {namespace}/{name} expires at {}\n  to revoke it: tidegate token revoke --service-account {namespace}/{name} {}",
        token.id,
        token.expires_at,
        token.id
    );
    Ok(())
}

/// A new file: an existing one might be open to others already.
fn create_file(path: &Path) -> Result<std::fs::File> {
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    opened.with_context(|| match path.exists() {
        true => format!("failed to create {}: name a new file, or remove this one first", path.display()),
        false => format!("failed to create {}", path.display()),
    })
}

/// The empty file of a token that was not made.
fn discard(output: Option<&Path>) {
    if let Some(path) = output
        && let Err(error) = std::fs::remove_file(path)
    {
        tracing::warn!(%error, "{} is left behind, and empty", path.display());
    }
}

async fn revoke(client: &Client, account: &Account, id: &str) -> Result<()> {
    let mut input = input(account);
    input["tokenId"] = json!(id);
    let _: Value = client.query(REVOKE, json!({"input": input})).await?;
    let Account { namespace, name } = account;
    // Tokens are signed and not listed: which ids there are, nobody knows.
    tell!(
        "a token of {namespace}/{name} with the id {id} is refused from now on\n  \
         if {namespace}/{name} has no token of that id, nothing has changed: `tidegate whoami --token-file FILE` \
         shows whose a token is, and its id"
    );
    Ok(())
}

fn input(account: &Account) -> Value {
    json!({"namespace": account.namespace, "serviceAccount": account.name})
}
