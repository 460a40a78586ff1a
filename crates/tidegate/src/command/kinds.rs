//! `tidegate kinds`.

use std::io::{self, Write};

use anyhow::Result;

use crate::cli::ConnectionArgs;
use crate::client::connect;
use crate::client::kinds::{KindInfo, fetch};
use crate::output::Table;

pub async fn run(args: &ConnectionArgs) -> Result<()> {
    let mut kinds = fetch(&connect(args)?).await?;
    kinds.sort_by(|a, b| (&a.group, &a.plural, &a.api_version).cmp(&(&b.group, &b.plural, &b.api_version)));
    let rows: Vec<_> = kinds.iter().map(row).collect();
    let text = Table::new(["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"]).render(&rows);
    Ok(io::stdout().write_all(text.as_bytes())?)
}

fn row(kind: &KindInfo) -> Vec<String> {
    vec![
        kind.plural.clone(),
        kind.short_names.join(","),
        kind.api_version.clone(),
        kind.namespaced.to_string(),
        kind.kind.clone(),
    ]
}
