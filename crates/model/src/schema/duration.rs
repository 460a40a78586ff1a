//! Durations as Kubernetes reads them: Go's syntax, and for `format: duration`
//! also the looser one of go-openapi.

use chrono::TimeDelta;

const DAY_NANOS: f64 = 24.0 * 3600e9;

/// The names of a unit, of which the last may go on: `week`, `weeks`.
const LOOSE_UNITS: [(&[&str], f64); 8] = [
    (&["ns", "nano"], 1.0),
    (&["us", "µs", "micro"], 1e3),
    (&["ms", "milli"], 1e6),
    (&["s", "sec"], 1e9),
    (&["m", "min"], 60e9),
    (&["h", "hr", "hour"], 3600e9),
    (&["d", "day"], DAY_NANOS),
    (&["w", "wk", "week"], 7.0 * DAY_NANOS),
];

/// What a text of `format: duration` means.
pub(super) fn parse_format(text: &str) -> Option<TimeDelta> {
    parse_go(text).or_else(|| parse_loose(text))
}

/// `1h30m`, `-1.5s`, `0`.
pub(super) fn parse_go(text: &str) -> Option<TimeDelta> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(TimeDelta::zero());
    }
    let mut nanos = 0.0;
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let is_something = !rest.is_empty();
    while !rest.is_empty() {
        let digits = rest.find(|c| !is_number(c)).unwrap_or(rest.len());
        let number: f64 = rest[..digits].parse().ok()?;
        let unit = rest[digits..].find(is_number).unwrap_or(rest.len() - digits);
        nanos += number * unit_nanos(&rest[digits..digits + unit])?;
        rest = &rest[digits + unit..];
    }
    (is_something && nanos < i64::MAX as f64).then(|| TimeDelta::nanoseconds((sign * nanos) as i64))
}

fn unit_nanos(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1.0,
        "us" | "µs" | "μs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" => 60e9,
        "h" => 3600e9,
        _ => return None,
    })
}

/// The sum of every `3 days` anywhere in the text, whatever else it says, so
/// `PT1H` is an hour. A number too large for 64 bits is none.
fn parse_loose(text: &str) -> Option<TimeDelta> {
    let (mut nanos, mut is_something) = (0.0, false);
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        rest = &rest[start..];
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, tail) = rest.split_at(digits);
        let word = tail.trim_start_matches([' ', '\t', '\n', '\r', '\u{c}']);
        let end = word.find(|c: char| !c.is_ascii_alphabetic() && c != 'µ').unwrap_or(word.len());
        let (unit, after) = word.split_at(end);
        rest = if unit.is_empty() { tail } else { after };
        if unit.is_empty() {
            continue;
        }
        let number: i64 = number.parse().ok()?;
        if let Some(factor) = loose_nanos(&unit.to_lowercase()) {
            nanos += number as f64 * factor;
            is_something = true;
        }
    }
    is_something.then(|| TimeDelta::nanoseconds(nanos as i64))
}

fn loose_nanos(unit: &str) -> Option<f64> {
    let is_called = |names: &[&str]| names.contains(&unit) || names.last().is_some_and(|last| unit.starts_with(last));
    LOOSE_UNITS.iter().find(|(names, _)| is_called(names)).map(|(_, nanos)| *nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, seconds: Option<f64>) {
        let found = parse_format(text).and_then(|span| span.num_nanoseconds()).map(|nanos| nanos as f64 / 1e9);
        assert_eq!(found, seconds, "{text:?}");
    }

    #[test]
    fn both_syntaxes() {
        for (text, seconds) in [("1h30m", 5400.0), ("0", 0.0), ("-1.5s", -1.5), ("10ms", 0.01), ("+5s", 5.0)] {
            check(text, Some(seconds));
        }
        for (text, seconds) in [("3 days", 259_200.0), ("2w", 1_209_600.0), ("PT1H", 3600.0), ("1h and 2 mins", 3720.0)]
        {
            check(text, Some(seconds));
        }
        for text in ["", "1", "h", "1 fortnight", "-", "99999999999999999999h", "1.h.m"] {
            check(text, None);
        }
    }
}
