//! From what was typed to a selection of objects.

use anyhow::Result;
use tidegate_client::Client;

use super::UsageError;
use crate::cli::SelectArgs;

use crate::client::kinds::{self, KindInfo};
use crate::client::list::Selection;
use crate::output::Namespaces;

pub async fn selection(client: &Client, args: &SelectArgs) -> Result<Selection> {
    if let (Some((_, one)), Some(other)) = (args.kind_and_name.split_once('/'), &args.one) {
        let message = format!("two names, `{one}` and `{other}`: ask for one object at a time, or use --selector");
        return Err(UsageError(message).into());
    }
    let kind = kinds::resolve(&kinds::fetch(client).await?, args.kind())?;
    resolved(kind, args)
}

fn resolved(kind: KindInfo, args: &SelectArgs) -> Result<Selection> {
    if args.name().is_some() && kind.namespaced && args.all_namespaces {
        let message = "a name alone may exist in several namespaces: give one with -n, or --field-selector \
                       metadata.name=NAME with -A";
        return Err(UsageError(message.into()).into());
    }
    let namespace = (kind.namespaced && !args.all_namespaces).then(|| args.namespace.clone());
    let (labels, fields) = (args.selector.clone(), args.field_selector.clone());
    Ok(Selection { kind, namespace, labels, fields })
}

/// A watch of one object is a watch of its name.
pub fn narrowed(mut selection: Selection, name: Option<&str>) -> Selection {
    if let Some(name) = name {
        let wanted = format!("metadata.name={name}");
        selection.fields = Some(selection.fields.map_or(wanted.clone(), |fields| format!("{fields},{wanted}")));
    }
    selection
}

pub fn namespaces(args: &SelectArgs) -> Namespaces {
    if args.all_namespaces { Namespaces::Shown } else { Namespaces::Implied }
}
