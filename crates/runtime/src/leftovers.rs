//! What a controller that runs nowhere any more has kept of its keys, taken
//! away piece by piece: whoever does so first undoes what each key's object
//! still shows, and a crash in between leaves the rest to be found.

use tidegate_model::ObjectKey;

use crate::rows::{self, KNOWN, NOTE, UNFINISHED};
use crate::{ApiError, Client, Kind, StateRow};

/// A key that the controller knew, or had not finished with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leftover {
    pub key: ObjectKey,
    /// The object may show the condition `Stalled` because of the controller.
    pub stalled: bool,
}

impl Client {
    /// Some of them, as many as the plane gives at once; none if there are no
    /// more. Those that may show `Stalled` come first.
    pub async fn leftovers(&self, controller: &str, kind: &Kind) -> Result<Vec<Leftover>, ApiError> {
        let unfinished = self.plane().state_read(controller, UNFINISHED, None).await?;
        if !unfinished.is_empty() {
            return Ok(unfinished.iter().filter_map(|row| unfinished_leftover(kind, row)).collect());
        }
        let known = self.plane().state_read(controller, KNOWN, None).await?;
        let leftover = |row: &StateRow| {
            let key = rows::parse_key(kind, row.name.strip_prefix(KNOWN)?)?;
            Some(Leftover { key, stalled: false })
        };
        Ok(known.iter().filter_map(leftover).collect())
    }

    /// All that is kept of these keys.
    pub async fn drop_leftovers(&self, controller: &str, leftovers: &[Leftover]) -> Result<(), ApiError> {
        let of = |key: &ObjectKey| {
            let text = rows::key_text(key);
            [KNOWN, NOTE, UNFINISHED].map(|family| rows::remove(format!("{family}{text}")))
        };
        let changes = leftovers.iter().flat_map(|leftover| of(&leftover.key)).collect();
        self.plane().state_write(controller, self.fence()?.as_ref(), changes).await
    }
}

fn unfinished_leftover(kind: &Kind, row: &StateRow) -> Option<Leftover> {
    let (key, row) = rows::read_unfinished(kind, row)?;
    Some(Leftover { key, stalled: row.stalled.is_some() })
}
