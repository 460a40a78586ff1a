//! `tidegate whoami`.

use std::io::{self, Write};

use anyhow::Result;
use serde::Deserialize;
use serde_json::json;

use crate::cli::ConnectionArgs;
use crate::client::connect;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Identity {
    user: String,
    groups: Vec<String>,
    token_id: Option<String>,
    expires_at: Option<String>,
}

#[derive(Deserialize)]
struct Data {
    whoami: Identity,
}

pub async fn run(args: &ConnectionArgs) -> Result<()> {
    let data: Data = connect(args)?.query("{ whoami { user groups tokenId expiresAt } }", json!({})).await?;
    let Identity { user, groups, token_id, expires_at } = data.whoami;
    let optional = [("token id", token_id), ("expires", expires_at)];
    let lines = [("user", user), ("groups", groups.join(", "))].into_iter();
    let lines = lines.chain(optional.into_iter().filter_map(|(label, value)| Some((label, value?))));
    let text: String = lines.map(|(label, value)| format!("{label:10}{value}\n")).collect();
    Ok(io::stdout().write_all(text.as_bytes())?)
}
