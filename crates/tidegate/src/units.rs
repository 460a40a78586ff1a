//! Durations and sizes as people write them: `1h30m`, `64MiB`.
//!
//! Invariant: what is shown parses back to the same value.

use std::time::Duration;

const DURATION_UNITS: &[(&str, u64)] = &[("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
const BYTE_UNITS: &[(&str, u64)] = &[("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

/// `24h`, `1h30m`, `500ms`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let invalid = || format!("`{text}` is not a duration: write it as `90s`, `5m`, `1h30m`, `500ms` or `7d`");
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total_ms: u64 = 0;
    while !rest.is_empty() {
        let (number, unit, after) = split_part(rest).ok_or_else(invalid)?;
        let (_, scale) = DURATION_UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(invalid)?;
        total_ms = number.checked_mul(*scale).and_then(|ms| total_ms.checked_add(ms)).ok_or_else(invalid)?;
        rest = after;
    }
    Ok(Duration::from_millis(total_ms))
}

/// `1h30m`; in whole milliseconds.
pub fn show_duration(duration: Duration) -> String {
    let mut rest_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let mut text = String::new();
    // Days are read, but 24h is what people call a day's window.
    for (unit, scale) in &DURATION_UNITS[1..] {
        if rest_ms >= *scale {
            text.push_str(&format!("{}{unit}", rest_ms / scale));
            rest_ms %= scale;
        }
    }
    if text.is_empty() { "0s".into() } else { text }
}

/// `4GiB`, `512KiB`, `1024`.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let invalid = || format!("`{text}` is not a size: write it as `4GiB`, `32MiB`, `512KiB` or a number of bytes");
    let trimmed = text.trim();
    if let Ok(bytes) = trimmed.parse() {
        return Ok(bytes);
    }
    let (number, unit, after) = split_part(trimmed).ok_or_else(invalid)?;
    let (_, scale) = BYTE_UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(invalid)?;
    number.checked_mul(*scale).filter(|_| after.is_empty()).ok_or_else(invalid)
}

/// The largest unit that divides it.
pub fn show_bytes(bytes: u64) -> String {
    let fits = |(_, scale): &&(&str, u64)| bytes >= *scale && bytes.is_multiple_of(*scale);
    BYTE_UNITS.iter().find(fits).map_or_else(|| bytes.to_string(), |(unit, scale)| format!("{}{unit}", bytes / scale))
}

/// `12ab34…` → 12, `ab`, `34…`.
fn split_part(text: &str) -> Option<(u64, &str, &str)> {
    let (number, rest) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let (unit, after) = rest.split_at(rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len()));
    Some((number.parse().ok()?, unit, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, expected_ms) in [
            ("24h", Some(86_400_000)),
            ("7d", Some(604_800_000)),
            ("1h30m", Some(5_400_000)),
            ("500ms", Some(500)),
            ("1s500ms", Some(1_500)),
            ("0s", Some(0)),
            ("", None),
            ("5", None),
            ("h", None),
            ("-5s", None),
            ("5 s", None),
            ("5x", None),
            ("1.5h", None),
            ("99999999999999999999s", None),
            ("9999999999999999999d", None),
        ] {
            let parsed = parse_duration(text).ok();
            assert_eq!(parsed, expected_ms.map(Duration::from_millis), "{text}");
            if let Some(duration) = parsed {
                assert_eq!(parse_duration(&show_duration(duration)), Ok(duration), "{text}");
            }
        }
        assert_eq!(show_duration(Duration::from_secs(86_400)), "24h");
        assert_eq!(show_duration(Duration::from_millis(5_400_250)), "1h30m250ms");
    }

    #[test]
    fn sizes() {
        for (text, expected) in [
            ("4GiB", Some(4 << 30)),
            ("32MiB", Some(32 << 20)),
            ("1024", Some(1024)),
            ("7B", Some(7)),
            ("", None),
            ("4GB", None),
            ("GiB", None),
            ("4GiB2", None),
            ("-1", None),
            ("99999999999GiB", None),
        ] {
            let parsed = parse_bytes(text).ok();
            assert_eq!(parsed, expected, "{text}");
            if let Some(bytes) = parsed {
                assert_eq!(parse_bytes(&show_bytes(bytes)), Ok(bytes), "{text}");
            }
        }
        assert_eq!((show_bytes(4 << 30), show_bytes(1536)), ("4GiB".into(), "1536B".into()));
    }
}
