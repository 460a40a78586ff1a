//! What an earlier life of a manager saved of an index, taken back.

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::attended::interrupted;
use crate::clock::Retry;
use crate::driver::AbortOnDrop;
use crate::rows::{self, SavedIndex};
use crate::unsaved::Position;
use crate::{BoxError, Durable, Kind, Plane, SavedRecord, StateRow};

/// Pages of records on their way to the index: 5,000 of about 200 bytes each.
const PAGES_MAX: usize = 4;

pub(crate) enum Loaded {
    /// There is nothing that can be gone on with.
    Nothing,
    /// Something was taken, and the rest cannot be read.
    Part,
    /// From where to watch. `torn` if some records are newer.
    Whole { position: Position, torn: bool },
}

pub(crate) async fn load(plane: &Arc<dyn Plane>, index: &Arc<dyn Durable>, kinds: &[Kind]) -> Loaded {
    let Some((position, torn)) = position(&**plane, &**index, kinds).await else { return Loaded::Nothing };
    for kind in kinds {
        if let Err(error) = load_kind(plane, index, kind).await {
            tracing::error!(index = index.name(), %kind, %error, "what was saved of an index cannot be read: listing");
            return Loaded::Part;
        }
    }
    // Another manager may have saved meanwhile.
    match self::position(&**plane, &**index, kinds).await {
        Some((after, _)) if after.id == position.id => Loaded::Whole { torn: torn || after != position, position },
        _ => Loaded::Part,
    }
}

async fn load_kind(plane: &Arc<dyn Plane>, index: &Arc<dyn Durable>, kind: &Kind) -> Result<(), BoxError> {
    let prefix = rows::record_prefix(kind);
    let (sender, mut pages) = mpsc::channel(PAGES_MAX);
    let reading = tokio::spawn(read(plane.clone(), index.name(), prefix.clone(), sender));
    let _reading = AbortOnDrop(reading.abort_handle());
    while let Some(rows) = pages.recv().await {
        let records: Vec<SavedRecord<'_>> = rows.iter().filter_map(|row| record(&prefix, row)).collect();
        index.load(kind, &records)?;
    }
    Ok(())
}

/// `None` without a row that names all kinds in the index's format.
async fn position(plane: &dyn Plane, index: &dyn Durable, kinds: &[Kind]) -> Option<(Position, bool)> {
    let rows = read_page(plane, index.name(), rows::INDEX, None).await;
    let row = rows.iter().find(|row| row.name == rows::INDEX)?;
    let saved: SavedIndex = serde_json::from_slice(&row.value).ok()?;
    Some((Position::read(&saved, index.format(), kinds)?, saved.torn))
}

async fn read(plane: Arc<dyn Plane>, name: &'static str, prefix: String, pages: mpsc::Sender<Vec<StateRow>>) {
    let mut after: Option<String> = None;
    loop {
        let rows = read_page(&*plane, name, &prefix, after.as_deref()).await;
        let Some(last) = rows.last() else { return };
        after = Some(last.name.clone());
        if pages.send(rows).await.is_err() {
            return;
        }
    }
}

/// Tried until it can be had.
async fn read_page(plane: &dyn Plane, name: &str, prefix: &str, after: Option<&str>) -> Vec<StateRow> {
    let mut retry = Retry::new((name, prefix));
    loop {
        match plane.state_read(name, prefix, after).await {
            Ok(rows) => return rows,
            Err(error) => {
                interrupted!(error, index = name, "the records of an index cannot be read: trying again");
                retry.wait().await;
            }
        }
    }
}

fn record<'r>(prefix: &str, row: &'r StateRow) -> Option<SavedRecord<'r>> {
    let (namespace, name) = row.name.strip_prefix(prefix)?.split_once(' ')?;
    let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
    Some(SavedRecord { namespace, name, value: &row.value })
}
