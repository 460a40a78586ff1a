//! `tidegate get`.

use std::io;

use anyhow::{Result, bail};
use serde::Deserialize;
use serde_json::{Value, json};
use tidegate_client::Client;

use super::select::{namespaces, selection};
use crate::cli::{GetArgs, OutputFormat};
use crate::client::connect;
use crate::client::list::{self, Selection};
use crate::output::Printer;

const QUERY: &str = "query($apiVersion: String!, $kind: String!, $namespace: String, $name: String!) { \
    resource(apiVersion: $apiVersion, kind: $kind, namespace: $namespace, name: $name) { object } }";

pub async fn run(args: GetArgs) -> Result<()> {
    if args.select.name().is_some() && (args.select.selector.is_some() || args.select.field_selector.is_some()) {
        return Err(super::UsageError("a name and a selector exclude each other: give one of them".into()).into());
    }
    let client = connect(&args.connection)?;
    let selection = selection(&client, &args.select).await?;
    let mut printer = Printer::new(io::stdout().lock(), args.output, selection.kind.clone(), namespaces(&args.select));
    if let Some(name) = args.select.name() {
        return printer.one(&fetch(&client, &selection, name).await?);
    }
    list::run(&client, &selection, args.limit, &mut printer).await?;
    if printer.objects() == 0 && args.output == OutputFormat::Table {
        let place = selection
            .namespace
            .map_or_else(String::new, |namespace| format!(" in the namespace {namespace}; -A shows all"));
        tell!("no {} found{place}", selection.kind.plural);
    }
    printer.finish()
}

async fn fetch(client: &Client, selection: &Selection, name: &str) -> Result<Value> {
    #[derive(Deserialize)]
    struct Data {
        resource: Option<Node>,
    }
    #[derive(Deserialize)]
    struct Node {
        object: Value,
    }
    let kind = &selection.kind;
    let mut variables = json!({"apiVersion": kind.api_version, "kind": kind.kind, "name": name});
    if let Some(namespace) = &selection.namespace {
        variables["namespace"] = json!(namespace);
    }
    let data: Data = client.query(QUERY, variables).await?;
    let Some(node) = data.resource else {
        let (place, flag) = match &selection.namespace {
            Some(namespace) => (format!(" in the namespace {namespace}"), " -A"),
            None => (String::new(), ""),
        };
        bail!(
            "{} `{name}` not found{place}\n  next: `tidegate get {}{flag}` lists them",
            kind.singular,
            kind.resource()
        );
    };
    Ok(node.object)
}
