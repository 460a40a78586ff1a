//! What an earlier life of a manager saved of an index, taken back.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::mpsc;

use crate::attended::interrupted;
use crate::clock::Retry;
use crate::driver::AbortOnDrop;
use crate::rows::{self, SavedIndex};
use crate::unsaved::Position;
use crate::{BoxError, Durable, Kind, Plane, SavedRecord, StateRow};

/// Pages of records on their way to the index: 5,000 of about 200 bytes each.
const PAGES_MAX: usize = 4;

/// What the row of an index says, if there is something to go on with.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Saved {
    /// From where to watch.
    pub position: Position,
    /// Some records are newer.
    pub torn: bool,
    pub summary: Value,
}

impl Saved {
    /// `None` without a row that names all kinds in the index's format.
    pub async fn read(plane: &dyn Plane, index: &dyn Durable, kinds: &[Kind]) -> Option<Self> {
        let rows = read_page(plane, index.name(), rows::INDEX, None).await;
        let row = rows.iter().find(|row| row.name == rows::INDEX)?;
        Self::parse(row, index, kinds)
    }

    pub fn parse(row: &StateRow, index: &dyn Durable, kinds: &[Kind]) -> Option<Self> {
        let row: SavedIndex = serde_json::from_slice(&row.value).ok()?;
        let position = Position::read(&row, index.format(), kinds)?;
        Some(Self { position, torn: row.torn, summary: row.summary })
    }
}

/// Whether all records were taken, and if so, whether some of them are newer
/// than `saved` says; `None` if they cannot be read.
pub(crate) async fn load(
    plane: Arc<dyn Plane>,
    index: Arc<dyn Durable>,
    kinds: Vec<Kind>,
    saved: Saved,
) -> Option<Torn> {
    for kind in &kinds {
        if let Err(error) = load_kind(&plane, &index, kind).await {
            tracing::error!(index = index.name(), %kind, %error, "what was saved of an index cannot be read: listing");
            return None;
        }
    }
    // Another manager may have saved meanwhile.
    let after = Saved::read(&*plane, &*index, &kinds).await.filter(|after| after.position.id == saved.position.id)?;
    Some(Torn(saved.torn || after != saved))
}

/// Some records are newer than others.
pub(crate) struct Torn(pub bool);

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
