//! How many files this process may have open, and what that means for the
//! number of its connections.
//!
//! Invariant: connections never take the files that the store and git need, so
//! a crowd of clients is refused at the door instead of failing a write.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tidegate_store::OPEN_TABLES_MAX;

/// Besides the store's tables: journals, git's pipes, and what libraries open.
const OTHER_FILES: u64 = 128;
/// Kept from connections: 512 files.
const RESERVE: u64 = OPEN_TABLES_MAX as u64 + OTHER_FILES;
/// Below this, a server is too small for its defaults and says so.
const COMFORTABLE_MIN: u64 = 1024;

/// Raises the limit as far as it goes without privileges. `None`: there is none.
pub fn raise() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return current;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum,
        Err(error) => {
            tracing::debug!(%error, ?current, ?maximum, "failed to raise the limit of open files");
            current
        }
    }
}

/// The connections that fit under `limit`, at most `wanted`, and what to tell
/// the operator about it.
pub fn connections(limit: Option<u64>, wanted: u32) -> (u32, Option<String>) {
    let Some(limit) = limit else { return (wanted, None) };
    // A tiny limit is shared; the store does not start with less than half.
    let reserve = RESERVE.min(limit / 2);
    let room = u32::try_from(limit - reserve).unwrap_or(u32::MAX).max(1);
    let fitting = wanted.min(room);
    if fitting == wanted && limit >= COMFORTABLE_MIN {
        return (fitting, None);
    }
    let enough = (u64::from(wanted) + RESERVE).max(COMFORTABLE_MIN);
    let warning = format!(
        "at most {limit} files may be open: {fitting} of the {wanted} connections of `http.connections_max` are \
         taken, and {reserve} files kept for the store and git; raise the hard limit to {enough} \
         (`ulimit -Hn {enough}`, or `LimitNOFILE={enough}` in a systemd unit)"
    );
    (fitting, Some(warning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_room_for_the_store() {
        for (limit, wanted, fitting, enough) in [
            (None, 8192, 8192, None),
            (Some(1_048_576), 8192, 8192, None),
            (Some(8704), 8192, 8192, None),
            (Some(8703), 8192, 8191, Some(8704)),
            (Some(1024), 8192, 512, Some(8704)),
            (Some(1024), 100, 100, None),
            (Some(1000), 100, 100, Some(1024)),
            (Some(256), 8192, 128, Some(8704)),
            (Some(0), 8192, 1, Some(8704)),
        ] {
            let (connections, warning) = connections(limit, wanted);
            assert_eq!(connections, fitting, "{limit:?} for {wanted}");
            let told = warning.as_deref().map(|text| text.contains(&format!("LimitNOFILE={}", enough.unwrap_or(0))));
            assert_eq!(told, enough.map(|_| true), "{limit:?} for {wanted}: {warning:?}");
        }
    }

    #[test]
    fn the_limit_goes_up_to_the_hard_one() {
        let raised = raise();
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        assert_eq!((raised, current), (maximum, maximum));
    }
}
