//! Where a number line begins.
//!
//! Invariant: a line begins above everything that clients can have seen of the
//! store's earlier lines, or it does not begin; wherever the clock stands.

use tidegate_model::ResourceVersion;

use crate::{Options, StoreError};

/// A second of the line.
const SECOND: u64 = ResourceVersion::LINE_SECOND;
/// What a restored backup leaves for the writes after it, if the clock cannot
/// tell: 2^41 versions, as many as 100,000 writes a second take in 250 days.
const RESTORE_JUMP: u64 = 1 << 41;
/// The same jump in seconds of the line, about 24 days.
const RESTORE_JUMP_SECONDS: u64 = RESTORE_JUMP / SECOND;

/// The line of a new store.
pub(crate) fn first(options: &Options) -> Result<ResourceVersion, StoreError> {
    let now = seconds(options);
    on_line(now.checked_mul(SECOND), now)
}

/// The next line of a store that has minted `newest` and no more: above all
/// that it can have minted until now, which is fewer than 2^20 a second.
pub(crate) fn next(options: &Options, newest: Option<ResourceVersion>) -> Result<ResourceVersion, StoreError> {
    let now = seconds(options);
    let next_second = on_line(now.saturating_add(1).checked_mul(SECOND), now)?;
    Ok(newest.map_or(next_second, |newest| newest.next().max(next_second)))
}

/// The line of a restored backup, whose store went on to mint more than
/// `newest`. A clock that is well ahead of it decides; behind that, a jump
/// does, and the clock only keeps two restores of one backup apart.
pub(crate) fn restored(options: &Options, newest: ResourceVersion) -> Result<ResourceVersion, StoreError> {
    let now = seconds(options);
    let next_second = on_line(now.saturating_add(1).checked_mul(SECOND), now)?;
    if next_second.raw() >= newest.raw() + 2 * RESTORE_JUMP {
        return Ok(next_second);
    }
    let apart = (now % RESTORE_JUMP_SECONDS) * SECOND;
    on_line(Some(newest.raw() + RESTORE_JUMP + apart), now)
}

fn seconds(options: &Options) -> u64 {
    options.clock.now_ms() / 1000
}

fn on_line(raw: Option<u64>, clock_seconds: u64) -> Result<ResourceVersion, StoreError> {
    raw.and_then(ResourceVersion::checked_from_raw).ok_or(StoreError::OffLine { clock_seconds })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Clock;

    const CREATED: u64 = 1_763_240_000;
    const DAY: u64 = 86_400;

    fn at(seconds: u64) -> Options {
        Options { clock: Clock::new(move || seconds * 1000), ..Options::default() }
    }

    #[test]
    fn a_restored_line_is_above_what_was_seen_wherever_the_clock_stands() {
        let newest = ResourceVersion::from_raw(CREATED * SECOND + 1_000_000);
        let seen = newest.raw() + 1_000_000_000_000;
        for now in [CREATED - 3000 * DAY, CREATED - 1, CREATED, CREATED + 1, CREATED + 40 * DAY, CREATED + 60 * DAY] {
            let start = restored(&at(now), newest).unwrap();
            assert!(start.raw() > seen, "{now}");
            let again = restored(&at(now + 60), newest).unwrap();
            assert_eq!(again.raw() - start.raw(), 60 * SECOND, "{now}: two restores of one backup");
        }
        assert_eq!(restored(&at(CREATED + 60 * DAY), newest).unwrap().raw(), (CREATED + 60 * DAY + 1) * SECOND);
    }

    #[test]
    fn a_clock_off_the_line_is_refused() {
        let newest = ResourceVersion::from_raw(CREATED * SECOND);
        for (now, fits) in [
            (0, false),
            (953_600_000, false),   // the day before the line's begin
            (953_700_000, true),    // March 2000
            (8_589_900_000, true),  // March 2242
            (8_590_000_000, false), // the day after the line's end
            (u64::MAX / 1000, false),
        ] {
            let options = at(now);
            assert_eq!(first(&options).is_ok(), fits, "{now}");
            assert_eq!(next(&options, Some(newest)).is_ok(), fits, "{now}");
            assert_eq!(restored(&options, newest).is_ok(), fits, "{now}");
        }
        let last = ResourceVersion::from_raw((1 << 53) - 1);
        assert!(restored(&at(CREATED), last).is_err(), "no line is left above it");
    }
}
