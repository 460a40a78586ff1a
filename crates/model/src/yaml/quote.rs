//! How a text is written so that no reader of YAML 1.1 or 1.2 mistakes it.

use super::scalar::{is_non_finite, resolve_plain};

/// The text on one line: plain if every reader takes it for the same text.
/// Quoted in double quotes what would be taken for something else, as kubectl
/// does it, and in single quotes what only has characters of YAML's syntax.
pub(super) fn inline(text: &str) -> String {
    if text.chars().any(needs_escape) || is_ambiguous(text) {
        return double_quoted(text);
    }
    if is_plain(text) { text.into() } else { format!("'{}'", text.replace('\'', "''")) }
}

/// A text of several lines that a literal block carries unchanged.
pub(super) fn fits_literal(text: &str) -> bool {
    let is_blank = |line: &str| !line.is_empty() && line.trim_matches([' ', '\t']).is_empty();
    text.contains('\n')
        && !text.chars().any(|c| c != '\n' && c != '\t' && needs_escape(c))
        && text.chars().any(|c| c != '\n')
        && !text.split('\n').any(is_blank)
}

/// The header of a literal block: `|`, with a digit where a reader cannot see
/// the indentation, and with what happens to the line breaks at the end.
pub(super) fn literal_header(text: &str) -> String {
    let first = text.split('\n').find(|line| !line.is_empty()).unwrap_or_default();
    let indentation = if text.starts_with('\n') || first.starts_with([' ', '\t']) { "2" } else { "" };
    let chomping = match text.len() - text.trim_end_matches('\n').len() {
        0 => "-",
        1 => "",
        _ => "+",
    };
    format!("|{indentation}{chomping}")
}

fn double_quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            c if !needs_escape(c) => quoted.push(c),
            c if (c as u32) < 0x100 => quoted.push_str(&format!("\\x{:02X}", c as u32)),
            c if (c as u32) < 0x10000 => quoted.push_str(&format!("\\u{:04X}", c as u32)),
            c => quoted.push_str(&format!("\\U{:08X}", c as u32)),
        }
    }
    quoted.push('"');
    quoted
}

/// What is not printable in YAML, breaks a line, or cannot be seen.
fn needs_escape(c: char) -> bool {
    match c {
        ' '..='~' => false,
        '\u{a0}' | '\u{ad}' | '\u{2028}' | '\u{2029}' | '\u{feff}' => true,
        // Marks that reorder or hide text: a review must see them.
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' => true,
        '\u{a1}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' => false,
        c => !('\u{10000}'..='\u{10ffff}').contains(&c) || (c as u32) & 0xfffe == 0xfffe,
    }
}

fn is_plain(text: &str) -> bool {
    let mut chars = text.chars();
    let (first, second) = (chars.next(), chars.next());
    let starts_plain = match first {
        None => false,
        Some('-' | '?' | ':') => second.is_some_and(|c| !" -?:,[]{}".contains(c)),
        Some(c) => !" ,[]{}#&*!|>'\"%@`".contains(c),
    };
    let is_document_mark = text.starts_with("---") || text.starts_with("...");
    starts_plain && !is_document_mark && !text.ends_with([' ', ':']) && !text.contains(": ") && !text.contains(" #")
}

/// Whether some reader takes the plain text for another type.
fn is_ambiguous(text: &str) -> bool {
    const WORDS: [&str; 12] = ["", "~", "=", "<<", "y", "n", "yes", "no", "on", "off", "true", "false"];
    let lower = text.to_ascii_lowercase();
    WORDS.contains(&lower.as_str())
        || matches!(lower.as_str(), "null" | "nil" | "nan" | "inf" | "+inf" | "-inf" | "-.nan" | "+.nan")
        || is_non_finite(&lower)
        || !matches!(resolve_plain(text), Ok(serde_json::Value::String(_)))
        || is_number_like(text)
        || is_date_like(text)
}

/// Numbers of any dialect: `1:30` (base 60), `1_000.5`, `0o7`, `1e999`, `1,000`.
fn is_number_like(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let starts = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let fits = |c: char| c.is_ascii_digit() || matches!(c, '_' | ':' | '.' | ',' | 'e' | 'E' | '+' | '-');
    let has_radix = ["0x", "0X", "0o", "0O", "0b", "0B"].iter().any(|radix| digits.starts_with(radix));
    let is_hex = |text: &str| text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'_');
    starts
        && digits.contains(|c: char| c.is_ascii_digit())
        && (digits.chars().all(fits) || has_radix && is_hex(&digits[2..]))
}

/// `2024-01-01`, with a time or without.
fn is_date_like(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= 8
        && bytes[..4].iter().all(u8::is_ascii_digit)
        && bytes[4] == b'-'
        && bytes.iter().all(|b| b.is_ascii_digit() || b"-:.+tTzZ \t".contains(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_reader_would_mistake_is_quoted() {
        for text in [
            "",
            "~",
            "null",
            "Null",
            "yes",
            "No",
            "ON",
            "oFF",
            "y",
            "N",
            "true",
            "FALSE",
            "=",
            "<<",
            "0",
            "-1",
            "+1",
            "0777",
            "0o7",
            "0x1F",
            "0b1",
            "1_000",
            "1,000",
            "1.5",
            "1e3",
            "1e999",
            ".5",
            ".inf",
            "-.INF",
            ".nan",
            "NaN",
            "1:30",
            "190:20:30.15",
            "2024-01-01",
            "2024-01-01T00:00:00Z",
            "2001-12-14 21:59:43.10 -5",
            "1.2.3",
        ] {
            assert_eq!(inline(text), format!("\"{text}\""), "{text}");
        }
    }

    #[test]
    fn what_has_syntax_is_quoted() {
        for text in [
            " a", "a ", "a: b", "a:", "a #b", "#a", "- a", "-", "--", "---", "...", "?", "? a", ": a", "[a", "{a}",
            "]", "&a", "*a", "!a", "|", ">", "'a'", "\"a\"", "%a", "@a", "`a", ",a", "-[", ":,", "--- a",
        ] {
            assert_eq!(inline(text), format!("'{}'", text.replace('\'', "''")), "{text}");
        }
    }

    #[test]
    fn the_rest_is_plain() {
        for text in [
            "a",
            "a b",
            "a:b",
            "a#b",
            "a, b",
            "a[0]",
            "x=y",
            "-a",
            ":a",
            "?a",
            "100Mi",
            "v1",
            "1st",
            "apps/v1",
            "é",
            "日本語",
            "😀",
            "it's",
            "a\"b",
            "C:\\dir",
            "https://example.com/a?b=c#d",
            "nullable",
            "10.0.0.1/8",
            "deadbeef",
        ] {
            assert_eq!(inline(text), text);
        }
    }

    #[test]
    fn what_cannot_be_seen_is_escaped() {
        for (text, expected) in [
            ("a\tb", r#""a\tb""#),
            ("\u{0}\u{1b}\u{7f}", r#""\x00\x1B\x7F""#),
            ("a\u{a0}b\u{85}", r#""a\xA0b\x85""#),
            ("\u{feff}\u{2028}\u{202e}", r#""\uFEFF\u2028\u202E""#),
            ("\u{1fffe}", r#""\U0001FFFE""#),
            ("a\r\n\"\\", r#""a\r\n\"\\""#),
        ] {
            assert_eq!(inline(text), expected);
        }
    }
}
