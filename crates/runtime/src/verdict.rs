//! What the verdict on a run makes of its key: where it goes in the queue, and
//! the row that is kept of it. Pure.

use crate::Backoff;
use crate::clock::{Clock, millis, spread};
use crate::queue::{Done, Millis};
use crate::rows::{Stalled, Unfinished};
use crate::worker::{Run, Verdict};

/// `before` is the row that the key has.
pub(crate) fn settle(
    run: &Run,
    verdict: Verdict,
    before: Option<&Unfinished>,
    backoff: &Backoff,
    clock: &Clock,
) -> (Done, Option<Unfinished>) {
    let now = clock.now();
    let failures = run.failures + 1;
    // What an object shows is taken away however its key leaves.
    let shows = before.is_some_and(|row| row.stalled.is_some());
    let blank = Unfinished {
        failures: 0,
        attempts: 0,
        generation: run.generation,
        due_ms: Some(clock.wall_ms(now)),
        error: String::new(),
        since_ms: clock.wall_ms(now),
        stalled: shows.then_some(Stalled::Due),
    };
    let since_ms = before.filter(|_| run.failures > 0).map_or(blank.since_ms, |row| row.since_ms);
    let due_ms = |due: Millis| Some(clock.wall_ms(due));
    match verdict {
        Verdict::Done => (Done::Success, shows.then_some(Unfinished { stalled: Some(Stalled::Leaving), ..blank })),
        Verdict::Again(delay) => {
            let due = now.saturating_add(millis(delay));
            (Done::Again { due }, Some(Unfinished { due_ms: due_ms(due), ..blank }))
        }
        Verdict::Retry { counts, error } => {
            let due = now + millis(backoff.delay(failures, spread((&run.key, failures))));
            let attempts = run.attempts + u32::from(counts);
            (
                Done::Retry { due },
                Some(Unfinished { failures, attempts, due_ms: due_ms(due), error, since_ms, ..blank }),
            )
        }
        Verdict::Park { error } => {
            let (attempts, stalled) = (run.attempts + 1, Some(Stalled::Due));
            (Done::Park, Some(Unfinished { failures, attempts, due_ms: None, error, since_ms, stalled, ..blank }))
        }
    }
}
