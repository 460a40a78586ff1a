//! Times as objects carry them: RFC 3339, UTC, whole seconds.

use chrono::{DateTime, SecondsFormat, Utc};

/// The one spelling that this server writes: `2026-11-15T21:59:29Z`.
pub fn format_time(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// Reads any RFC 3339 spelling.
pub fn parse_time(text: &str) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(text).ok().map(|time| time.to_utc())
}
