//! Durations as Repository objects have them, checked by the schema's format:
//! Go's (`1h30m`) and longer units (`3 days`, `2w`).

use std::time::Duration;

const UNITS_S: [(&[&str], f64); 8] = [
    (&["ns", "nano"], 1e-9),
    (&["us", "µs", "μs", "micro"], 1e-6),
    (&["ms", "milli"], 1e-3),
    (&["s", "sec", "second"], 1.0),
    (&["m", "min", "minute"], 60.0),
    (&["h", "hr", "hour"], 3_600.0),
    (&["d", "day"], 86_400.0),
    (&["w", "wk", "week"], 604_800.0),
];
/// Longer is never.
const SECONDS_MAX: f64 = 1e9;

/// `None` for what the schema would not have let in.
pub fn parse(text: &str) -> Option<Duration> {
    let (mut rest, mut total) = (text.trim(), 0.0);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let unit = rest[digits..].trim_start();
        let end = unit.find(|c: char| !c.is_alphabetic()).unwrap_or(unit.len());
        total += rest[..digits].parse::<f64>().ok()? * seconds(&unit[..end])?;
        rest = unit[end..].trim_start();
    }
    (total > 0.0).then(|| Duration::from_secs_f64(total.min(SECONDS_MAX)))
}

fn seconds(unit: &str) -> Option<f64> {
    let is_known = |names: &&[&str]| names.iter().any(|name| unit == *name || unit.strip_suffix('s') == Some(name));
    UNITS_S.iter().find(|(names, _)| is_known(names)).map(|(_, seconds)| *seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_schema_lets_in() {
        for (text, expected_ms) in [
            ("1m", 60_000),
            ("1h30m", 5_400_000),
            ("1.5s", 1_500),
            ("300ms", 300),
            ("2 days", 172_800_000),
            ("2w", 1_209_600_000),
        ] {
            assert_eq!(parse(text), Some(Duration::from_millis(expected_ms)), "{text}");
        }
        for text in ["", "1", "m", "0s", "-1s", "1 fortnight"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
