//! Predicates of the string formats, as go-openapi's `strfmt` decides them.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::LazyLock;

use chrono::NaiveDate;
use regex::Regex;

pub(super) fn is_bson_object_id(text: &str) -> bool {
    text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Standard base64 with padding; nothing at all is not base64.
pub(super) fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let is_symbol = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/');
    !text.is_empty() && text.len().is_multiple_of(4) && text.len() - body.len() <= 2 && body.bytes().all(is_symbol)
}

pub(super) fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let bits_max = match parse_sloppy(address) {
        Some(IpAddr::V4(_)) => 32,
        Some(IpAddr::V6(_)) => 128,
        None => return false,
    };
    is_digits(bits) && bits.parse::<u8>().is_ok_and(|bits| bits <= bits_max)
}

/// Also an IPv6 address that ends like one of IPv4.
pub(super) fn is_ipv4(text: &str) -> bool {
    text.contains('.') && parse_sloppy(text).is_some()
}

/// Leading zeros are skipped in the parts between dots: Go once did so, and
/// Kubernetes still does.
fn parse_sloppy(text: &str) -> Option<IpAddr> {
    let (head, tail) = text.rsplit_once(':').map_or(("", text), |(head, _)| text.split_at(head.len() + 1));
    if !tail.contains('.') {
        return text.parse().ok();
    }
    let part = |part: &str| match part.trim_start_matches('0') {
        "" if !part.is_empty() => "0".to_owned(),
        rest => rest.to_owned(),
    };
    let parts: Vec<String> = tail.split('.').map(part).collect();
    format!("{head}{}", parts.join(".")).parse().ok()
}

pub(super) fn is_ipv6(text: &str) -> bool {
    text.parse::<Ipv6Addr>().is_ok()
}

pub(super) fn is_date(text: &str) -> bool {
    text.len() == 10 && NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok()
}

/// A date, a `T`, and a time of day with its zone; the fraction may follow any
/// character, and what follows another `t` is not looked at.
pub(super) fn is_date_time(text: &str) -> bool {
    static TIME: LazyLock<Regex> = LazyLock::new(|| {
        let time = r"^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})$";
        Regex::new(time).expect("a pattern of ours")
    });
    let text = text.to_ascii_lowercase();
    let mut parts = text.split('t');
    parts.next().is_some_and(is_date) && parts.next().is_some_and(|time| TIME.is_match(time))
}

pub(super) fn is_duration(text: &str) -> bool {
    super::duration::parse_format(text).is_some()
}

/// One label with at most one dash, right after its first character; or
/// several, the last of letters alone. Symbols count as letters, except in the
/// last.
pub(super) fn is_hostname(text: &str) -> bool {
    static NAME: LazyLock<Regex> = LazyLock::new(|| {
        let (first, inner) = (r"[a-zA-Z0-9\p{S}\p{L}]", r"[a-zA-Z0-9\-\p{S}\p{L}]");
        let single = format!("{first}-?{first}{{0,62}}");
        let several = format!(r"({first}({inner}{{0,61}}{first})?\.)+[a-zA-Z\p{{L}}]{{2,63}}");
        Regex::new(&format!("^({single}|{several})$")).expect("a pattern of ours")
    });
    text.len() <= 255 && text.split('.').all(|label| label.len() <= 63) && NAME.is_match(text)
}

pub(super) fn is_mac(text: &str) -> bool {
    let groups = |separator: char, width: usize| {
        let parts: Vec<&str> = text.split(separator).collect();
        let bytes = parts.len() * width / 2;
        [6, 8, 20].contains(&bytes) && parts.iter().all(|part| part.len() == width && is_hex(part))
    };
    groups(':', 2) || groups('-', 2) || groups('.', 4)
}

/// Each dash may be left out. Versions 4 and 5 fix a second digit, too.
pub(super) fn is_uuid(text: &str, version: Option<u8>) -> bool {
    let mut digits = Vec::with_capacity(32);
    for byte in text.bytes() {
        match byte {
            b'-' if [8, 12, 16, 20].contains(&digits.len()) && !text.contains("--") => {}
            byte if byte.is_ascii_hexdigit() => digits.push(byte.to_ascii_lowercase()),
            _ => return false,
        }
    }
    let is_version = version.is_none_or(|version| digits.get(12) == Some(&version));
    let is_variant =
        !matches!(version, Some(b'4' | b'5')) || digits.get(16).is_some_and(|digit| b"89ab".contains(digit));
    digits.len() == 32 && is_version && is_variant
}

pub(super) fn is_isbn10(text: &str) -> bool {
    let symbols = without_separators(text);
    if symbols.len() != 10 || !symbols.get(..9).is_some_and(is_digits) {
        return false;
    }
    let digit = |b: u8| if b == b'X' { Some(10) } else { b.is_ascii_digit().then(|| u32::from(b - b'0')) };
    let sum = symbols.bytes().zip((1..=10).rev()).try_fold(0, |sum, (b, weight)| Some(sum + digit(b)? * weight));
    sum.is_some_and(|sum| sum % 11 == 0)
}

pub(super) fn is_isbn13(text: &str) -> bool {
    let symbols = without_separators(text);
    let weights = [1, 3].into_iter().cycle();
    let sum: u32 = symbols.bytes().zip(weights).map(|(b, weight)| u32::from(b.wrapping_sub(b'0')) * weight).sum();
    symbols.len() == 13 && is_digits(&symbols) && sum.is_multiple_of(10)
}

/// Whatever is not a digit is skipped; the first digits tell the issuer, whose
/// numbers have their own length.
pub(super) fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let starts = |with: &[&str]| with.iter().any(|start| digits.starts_with(start));
    let is_issued = match digits.len() {
        13 => starts(&["4"]),
        14 => starts(&["300", "301", "302", "303", "304", "305", "36", "38"]),
        15 => starts(&["34", "37", "2131", "1800"]),
        16 => starts(&["4", "51", "52", "53", "54", "55", "6011", "65", "35"]),
        _ => false,
    };
    let luhn = |(at, b): (usize, u8)| {
        let digit = u32::from(b.wrapping_sub(b'0'));
        if at % 2 == 0 { digit } else { digit * 2 / 10 + digit * 2 % 10 }
    };
    let sum: u32 = digits.bytes().rev().enumerate().map(luhn).sum();
    is_issued && sum.is_multiple_of(10)
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
    let is_level =
        |part: &&str| is_digits(part) && part.parse::<u8>().is_ok() && (*part == "0" || !part.starts_with('0'));
    parts.len() == 3 && parts.iter().all(is_level)
}

fn without_separators(text: &str) -> String {
    text.chars().filter(|c| *c != '-' && !c.is_ascii_whitespace()).collect()
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
            &["2026-02-28", "2026-02-28 10:00:00Z", "2026-02-28T25:00:00Z", "2026-02-28T10:00:60Z", ""],
        );
        check(is_duration, &["1h30m", "0", "3 days", "PT1H"], &["", "1", "1 fortnight"]);
    }

    #[test]
    fn networks() {
        check(is_cidr, &["10.0.0.0/8", "::/0", "010.0.0.0/08"], &["10.0.0.0", "10.0.0.0/33", "10.0.0.0/+8", "x/8"]);
        check(is_ipv4, &["127.0.0.1", "01.2.3.004", "::ffff:1.2.3.4"], &["256.0.0.1", "::1", "1..2.3"]);
        check(is_ipv6, &["::1", "2001:db8::1"], &["1.2.3.4", "g::"]);
        check(is_mac, &["01:23:45:67:89:ab", "0123.4567.89ab"], &["01:23:45", "01-23:45-67:89-ab"]);
        check(
            is_hostname,
            &["a.example", "a-b.cd", "a-", "1", "ä.de"],
            &["", "-a.bc", "a..bc", "a.b", "my-host", &"a".repeat(64)],
        );
    }

    #[test]
    fn identifiers() {
        check(is_bson_object_id, &["507f1f77bcf86cd799439011"], &["507f", "z07f1f77bcf86cd799439011"]);
        check(is_base64, &["YQ==", "YWJj"], &["", "YQ=", "Y===", "Y-==", "YW\nI="]);
        check(
            |t| is_uuid(t, None),
            &["550e8400-e29b-41d4-a716-446655440000", "550e8400e29b41d4a716446655440000"],
            &["550e8400--e29b41d4-a716-446655440000", "550e8-400e29b41d4a716446655440000", "x"],
        );
        check(
            |t| is_uuid(t, Some(b'4')),
            &["550e8400-e29b-41d4-a716-446655440000"],
            &["550e8400-e29b-51d4-a716-446655440000"],
        );
        check(is_isbn10, &["0-306-40615-2", "080442957X"], &["0-306-40615-3", "123", "é234567890", "080442957x"]);
        check(is_isbn13, &["978-0-306-40615-7"], &["978-0-306-40615-8", "x"]);
        check(
            is_credit_card,
            &["4111 1111 1111 1111", "3782-822463-10005"],
            &["4111 1111 1111 1112", "1", "1234567812345670"],
        );
        check(is_ssn, &["111-22-3333", "111 22 3333"], &["11-22-3333", "111223333"]);
        check(is_hex_color, &["#fff", "a0b1c2"], &["#ffff", "#ggg"]);
        check(is_rgb_color, &["rgb(0, 255,1)"], &["rgb(0,256,1)", "rgb(0,1)", "rgb(00,1,1)"]);
    }
}
