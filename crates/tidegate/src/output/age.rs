//! How old something is, in two units at most.

use chrono::{DateTime, Utc};
use tidegate_model::timestamp::parse_time;

/// `5s`, `3m20s`, `4h`, `12d`, `3y`, as kubectl writes it; what is not a time
/// has no age.
pub fn age(timestamp: &str, now: DateTime<Utc>) -> Option<String> {
    let seconds = now.signed_duration_since(parse_time(timestamp)?).num_seconds().max(0);
    Some(show(seconds))
}

/// `in 3m20s`, or `now` if it is not to come.
pub fn until(timestamp: &str, now: DateTime<Utc>) -> Option<String> {
    let seconds = parse_time(timestamp)?.signed_duration_since(now).num_seconds();
    Some(if seconds > 0 { format!("in {}", show(seconds)) } else { "now".into() })
}

fn show(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => pair(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => pair(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => pair(days, "d", hours % 24, "h"),
        691_200..63_072_000 => format!("{days}d"),
        _ => pair(days / 365, "y", days % 365, "d"),
    }
}

fn pair(large: i64, large_unit: &str, small: i64, small_unit: &str) -> String {
    if small == 0 { format!("{large}{large_unit}") } else { format!("{large}{large_unit}{small}{small_unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages() {
        for (seconds, expected) in [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (200, "3m20s"),
            (601, "10m"),
            (10_860, "3h1m"),
            (86_400, "24h"),
            (180_000, "2d2h"),
            (864_000, "10d"),
            (94_694_400, "3y1d"),
        ] {
            assert_eq!(show(seconds), expected, "{seconds}");
        }
    }

    #[test]
    fn of_timestamps() {
        let now = parse_time("2026-11-15T12:00:00Z").unwrap();
        assert_eq!(age("2026-11-15T11:59:00Z", now).as_deref(), Some("60s"));
        assert_eq!(age("2026-11-15T12:00:09Z", now).as_deref(), Some("0s"), "a clock ahead of ours");
        assert_eq!(age("yesterday", now), None);
    }
}
