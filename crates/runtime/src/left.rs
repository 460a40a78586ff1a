//! What an earlier life of a controller left, taken back.

use tidegate_model::ObjectKey;

use crate::clock::Clock;
use crate::ledger::Ledger;
use crate::queue::{Position, Queue};
use crate::rows::{self, Stalled, Unfinished};
use crate::stalled::Marks;
use crate::{ApiError, Kind, Plane};

pub(crate) struct Left {
    /// From where to watch; `None`: list.
    pub checkpoint: Position,
    /// With the keys that were not finished.
    pub queue: Queue,
    pub ledger: Ledger,
    pub marks: Marks,
}

impl Left {
    pub async fn read(
        plane: &dyn Plane,
        controller: &str,
        kind: &Kind,
        clock: &Clock,
        marks: Marks,
    ) -> Result<Self, ApiError> {
        let rows = plane.state_read(controller, rows::CHECKPOINT, None).await?;
        let checkpoint = rows.iter().find(|row| row.name == rows::CHECKPOINT).and_then(rows::read_checkpoint);
        let mut left = Self { checkpoint, queue: Queue::default(), ledger: Ledger::default(), marks };
        left.ledger.restore_checkpoint(checkpoint);
        let mut after: Option<String> = None;
        loop {
            let rows = plane.state_read(controller, rows::UNFINISHED, after.as_deref()).await?;
            let Some(last) = rows.last() else { return Ok(left) };
            after = Some(last.name.clone());
            for (key, row) in rows.iter().filter_map(|row| rows::read_unfinished(kind, row)) {
                left.take(key, row, clock);
            }
        }
    }

    fn take(&mut self, key: ObjectKey, row: Unfinished, clock: &Clock) {
        let due = row.due_ms.map(|due| clock.at_wall_ms(due));
        let failures = if due.is_none() { row.failures.max(1) } else { row.failures };
        self.queue.restore(&key, failures, row.generation, due, clock.now());
        if row.stalled.is_some_and(|stalled| stalled != Stalled::Shown) {
            self.marks.want(key.clone(), clock.now());
        }
        self.ledger.restore(key, row);
    }
}
