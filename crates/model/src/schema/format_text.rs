//! Predicates of the string formats, as go-openapi's `strfmt` decides them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use chrono::{DateTime, NaiveDate};

pub(super) fn is_bson_object_id(text: &str) -> bool {
    text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Standard base64 with padding; line breaks are skipped, as Go's decoder does.
pub(super) fn is_base64(text: &str) -> bool {
    let symbols: Vec<u8> = text.bytes().filter(|b| !matches!(b, b'\n' | b'\r')).collect();
    let padding = symbols.iter().rev().take_while(|b| **b == b'=').count();
    let body = &symbols[..symbols.len() - padding];
    let is_symbol = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/');
    symbols.len().is_multiple_of(4) && padding <= 2 && body.iter().all(is_symbol)
}

pub(super) fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let bits_max = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    is_digits(bits) && bits.parse::<u8>().is_ok_and(|bits| bits <= bits_max)
}

pub(super) fn is_ipv4(text: &str) -> bool {
    text.parse::<Ipv4Addr>().is_ok()
}

pub(super) fn is_ipv6(text: &str) -> bool {
    text.parse::<Ipv6Addr>().is_ok()
}

pub(super) fn is_date(text: &str) -> bool {
    text.len() == 10 && NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok()
}

pub(super) fn is_date_time(text: &str) -> bool {
    // chrono takes a space for the `T`; RFC 3339 as Kubernetes reads it does not.
    !text.contains(' ') && DateTime::parse_from_rfc3339(text).is_ok()
}

/// Go's durations (`1h30m`) and strfmt's longer units (`3 days`, `2w`).
pub(super) fn is_duration(text: &str) -> bool {
    const UNITS: [&str; 22] = [
        "ns", "nano", "us", "µs", "μs", "micro", "ms", "milli", "s", "sec", "second", "m", "min", "minute", "h", "hr",
        "hour", "d", "day", "w", "wk", "week",
    ];
    let mut rest = text.trim().trim_start_matches(['-', '+']);
    if rest == "0" {
        return true;
    }
    let mut parts = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let unit = rest[digits..].trim_start();
        let unit_end = unit.find(|c: char| !c.is_alphabetic()).unwrap_or(unit.len());
        let name = &unit[..unit_end];
        let known = UNITS.iter().any(|known| name == *known || name.strip_suffix('s') == Some(known));
        if rest[..digits].parse::<f64>().is_err() || !known {
            return false;
        }
        rest = unit[unit_end..].trim_start();
        parts += 1;
    }
    parts > 0
}

pub(super) fn is_email(text: &str) -> bool {
    let address = text.strip_suffix('>').and_then(|t| t.rsplit_once('<')).map_or(text, |(_, address)| address);
    let Some((local, domain)) = address.rsplit_once('@') else { return false };
    let is_atom = |c: char| c.is_alphanumeric() || "!#$%&'*+-/=?^_`{|}~.".contains(c);
    let is_local = !local.is_empty()
        && local.chars().all(is_atom)
        && !local.starts_with('.')
        && !local.ends_with('.')
        && !local.contains("..");
    is_local && !domain.is_empty() && domain.split('.').all(|label| !label.is_empty() && label.chars().all(is_host))
}

pub(super) fn is_hostname(text: &str) -> bool {
    let labels = text.strip_suffix('.').unwrap_or(text);
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.chars().all(is_host)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= 255 && labels.split('.').all(is_label)
}

fn is_host(c: char) -> bool {
    c.is_alphanumeric() || c == '-' || c == '_'
}

pub(super) fn is_mac(text: &str) -> bool {
    let groups = |separator: char, width: usize| {
        let parts: Vec<&str> = text.split(separator).collect();
        let bytes = parts.len() * width / 2;
        [6, 8, 20].contains(&bytes) && parts.iter().all(|part| part.len() == width && is_hex(part))
    };
    groups(':', 2) || groups('-', 2) || groups('.', 4)
}

/// An absolute URI, or an absolute path: what Go's `ParseRequestURI` takes.
pub(super) fn is_uri(text: &str) -> bool {
    if text.chars().any(|c| c.is_control() || c == ' ') || !escapes_are_whole(text) {
        return false;
    }
    let Some((scheme, rest)) = text.split_once(':') else { return text.starts_with('/') };
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    text.starts_with('/') || (is_scheme && !rest.is_empty())
}

fn escapes_are_whole(text: &str) -> bool {
    let path = text.split('?').next().unwrap_or_default();
    path.split('%').skip(1).all(|tail| tail.get(..2).is_some_and(is_hex))
}

pub(super) fn is_uuid(text: &str, version: Option<u8>) -> bool {
    let bare = text.replace('-', "");
    let dashes_in_place = !text.contains('-')
        || (text.len() == 36 && text.bytes().enumerate().all(|(at, b)| (b == b'-') == [8, 13, 18, 23].contains(&at)));
    let is_version = version.is_none_or(|version| bare.as_bytes().get(12) == Some(&version));
    bare.len() == 32 && is_hex(&bare) && dashes_in_place && is_version
}

pub(super) fn is_isbn10(text: &str) -> bool {
    let symbols = without_separators(text);
    if symbols.len() != 10 || !is_digits(&symbols[..9]) {
        return false;
    }
    let digit =
        |b: u8| if b.eq_ignore_ascii_case(&b'x') { Some(10) } else { b.is_ascii_digit().then(|| u32::from(b - b'0')) };
    let sum = symbols.bytes().zip((1..=10).rev()).try_fold(0, |sum, (b, weight)| Some(sum + digit(b)? * weight));
    sum.is_some_and(|sum| sum % 11 == 0)
}

pub(super) fn is_isbn13(text: &str) -> bool {
    let symbols = without_separators(text);
    let weights = [1, 3].into_iter().cycle();
    let sum: u32 = symbols.bytes().zip(weights).map(|(b, weight)| u32::from(b.wrapping_sub(b'0')) * weight).sum();
    symbols.len() == 13 && is_digits(&symbols) && sum.is_multiple_of(10)
}

pub(super) fn is_credit_card(text: &str) -> bool {
    let digits = without_separators(text);
    let luhn = |(at, b): (usize, u8)| {
        let digit = u32::from(b.wrapping_sub(b'0'));
        if at % 2 == 0 { digit } else { digit * 2 / 10 + digit * 2 % 10 }
    };
    let sum: u32 = digits.bytes().rev().enumerate().map(luhn).sum();
    (13..=19).contains(&digits.len()) && is_digits(&digits) && sum.is_multiple_of(10)
}

pub(super) fn is_ssn(text: &str) -> bool {
    let parts: Vec<&str> = text.split(['-', ' ']).collect();
    let widths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    widths == [3, 2, 4] && parts.iter().all(|part| is_digits(part))
}

pub(super) fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && is_hex(digits)
}

pub(super) fn is_rgb_color(text: &str) -> bool {
    let Some(inner) = text.strip_prefix("rgb(").and_then(|t| t.strip_suffix(')')) else { return false };
    let parts: Vec<&str> = inner.split(',').map(str::trim).collect();
    parts.len() == 3 && parts.iter().all(|part| is_digits(part) && part.parse::<u8>().is_ok())
}

fn without_separators(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '-' | ' ')).filter(char::is_ascii).collect()
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(test: fn(&str) -> bool, accepted: &[&str], refused: &[&str]) {
        for text in accepted {
            assert!(test(text), "{text:?} is refused");
        }
        for text in refused {
            assert!(!test(text), "{text:?} is accepted");
        }
    }

    #[test]
    fn times() {
        check(is_date, &["2026-02-28"], &["2026-02-30", "2026-2-8", "x"]);
        check(
            is_date_time,
            &["2026-02-28T10:00:00Z", "2026-02-28T10:00:00.123+02:00", "2026-02-28t10:00:00z"],
            &["2026-02-28", "2026-02-28 10:00:00Z", "2026-02-28T25:00:00Z", ""],
        );
        check(is_duration, &["1h30m", "0", "-1.5s", "3 days", "2w", "10ms"], &["", "1", "h", "1 fortnight", "1h x"]);
    }

    #[test]
    fn networks() {
        check(is_cidr, &["10.0.0.0/8", "::/0"], &["10.0.0.0", "10.0.0.0/33", "10.0.0.0/+8", "x/8"]);
        check(is_ipv4, &["127.0.0.1"], &["256.0.0.1", "::1"]);
        check(is_ipv6, &["::1", "2001:db8::1"], &["1.2.3.4", "g::"]);
        check(is_mac, &["01:23:45:67:89:ab", "0123.4567.89ab"], &["01:23:45", "01-23:45-67:89-ab"]);
        check(is_hostname, &["a.example", "a-b.c."], &["", "-a.b", "a..b", &"a".repeat(64)]);
        check(is_uri, &["https://example.com/a?b=%zz", "/a/b", "urn:x:y"], &["", "a b", "example", "/a%2"]);
        check(is_email, &["a@b.c", "A B <a@b.c>"], &["a", "@b.c", "a@", "a..b@c.d"]);
    }

    #[test]
    fn identifiers() {
        check(is_bson_object_id, &["507f1f77bcf86cd799439011"], &["507f", "z07f1f77bcf86cd799439011"]);
        check(is_base64, &["", "YQ==", "YW\nI="], &["YQ=", "Y===", "Y-=="]);
        check(
            |t| is_uuid(t, None),
            &["550e8400-e29b-41d4-a716-446655440000", "550e8400e29b41d4a716446655440000"],
            &["550e8400-e29b41d4-a716-446655440000", "x"],
        );
        check(
            |t| is_uuid(t, Some(b'4')),
            &["550e8400-e29b-41d4-a716-446655440000"],
            &["550e8400-e29b-51d4-a716-446655440000"],
        );
        check(is_isbn10, &["0-306-40615-2", "080442957X"], &["0-306-40615-3", "123", "é234567890"]);
        check(is_isbn13, &["978-0-306-40615-7"], &["978-0-306-40615-8", "x"]);
        check(is_credit_card, &["4111 1111 1111 1111"], &["4111 1111 1111 1112", "1"]);
        check(is_ssn, &["111-22-3333", "111 22 3333"], &["11-22-3333", "111223333"]);
        check(is_hex_color, &["#fff", "a0b1c2"], &["#ffff", "#ggg"]);
        check(is_rgb_color, &["rgb(0, 255,1)"], &["rgb(0,256,1)", "rgb(0,1)"]);
    }
}
