//! Patterns are written for Go's RE2; this turns one into the same language
//! for the `regex` crate, and bounds what it may cost.
//!
//! Both engines run in linear time. They differ where a pattern is quiet about
//! it: RE2's `\d`, `\w`, `\s` and `\b` are ASCII, a `[` inside a class is
//! itself, and a `{` that starts no repetition is a brace.

use std::iter::Peekable;
use std::str::Chars;

use regex::{Regex, RegexBuilder};

/// A compiled pattern's program. Go has no such limit, but bounds repetitions
/// at 1,000; no CRD that we test with needs half of this.
const PROGRAM_BYTES_MAX: usize = 512 << 10;
/// The lazily built automaton of one pattern and thread.
const AUTOMATON_BYTES_MAX: usize = 1 << 20;
const PATTERN_LENGTH_MAX: usize = 8 << 10;

pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    if pattern.len() > PATTERN_LENGTH_MAX {
        return Err(format!("must not be longer than {PATTERN_LENGTH_MAX} bytes"));
    }
    RegexBuilder::new(&translate(pattern))
        .size_limit(PROGRAM_BYTES_MAX)
        .dfa_size_limit(AUTOMATON_BYTES_MAX)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(limit) => {
                format!("compiles to more than {limit} bytes: use smaller repetitions")
            }
            other => other.to_string(),
        })
}

fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut rest = pattern.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\\' => escape(&mut rest, &mut out, Place::Outside),
            '[' => class(&mut rest, &mut out),
            '{' if !starts_repetition(&rest) => out.push_str("\\{"),
            _ => out.push(c),
        }
    }
    out
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    Outside,
    InClass,
}

fn escape(rest: &mut Peekable<Chars>, out: &mut String, place: Place) {
    let Some(c) = rest.next() else {
        out.push('\\');
        return;
    };
    let ascii = match c {
        'd' => "0-9",
        'w' => "0-9A-Za-z_",
        's' => r"\t\n\x0c\r\x20",
        'D' => "^0-9",
        'W' => "^0-9A-Za-z_",
        'S' => r"^\t\n\x0c\r\x20",
        'b' if place == Place::Outside => return out.push_str(r"(?-u:\b)"),
        'B' if place == Place::Outside => return out.push_str(r"\B"),
        '<' | '>' => return out.push(c),
        'Q' if place == Place::Outside => return quoted(rest, out),
        _ => {
            out.push('\\');
            return out.push(c);
        }
    };
    let bare = place == Place::InClass && !ascii.starts_with('^');
    if bare { out.push_str(ascii) } else { out.extend(["[", ascii, "]"]) }
}

/// `\Q…\E`: literal text.
fn quoted(rest: &mut Peekable<Chars>, out: &mut String) {
    while let Some(c) = rest.next() {
        if c == '\\' && rest.peek() == Some(&'E') {
            rest.next();
            return;
        }
        out.push_str(&regex::escape(c.encode_utf8(&mut [0; 4])));
    }
}

fn class(rest: &mut Peekable<Chars>, out: &mut String) {
    out.push('[');
    if rest.next_if_eq(&'^').is_some() {
        out.push('^');
    }
    if rest.next_if_eq(&']').is_some() {
        out.push_str("\\]");
    }
    while let Some(c) = rest.next() {
        match c {
            ']' => return out.push(']'),
            '\\' => escape(rest, out, Place::InClass),
            '[' if rest.peek() == Some(&':') => posix_class(rest, out),
            // Set operations of the `regex` crate that RE2 does not have.
            '[' | '&' | '~' => out.extend(['\\', c]),
            '-' if rest.peek() == Some(&'-') => out.push_str("\\-"),
            _ => out.push(c),
        }
    }
}

/// `[:alpha:]`, copied up to its own bracket.
fn posix_class(rest: &mut Peekable<Chars>, out: &mut String) {
    out.push('[');
    for c in rest.by_ref() {
        out.push(c);
        if c == ']' {
            return;
        }
    }
}

/// Whether what follows a `{` reads `n}`, `n,}` or `n,m}`.
fn starts_repetition(rest: &Peekable<Chars>) -> bool {
    let mut ahead = rest.clone().skip_while(char::is_ascii_digit).peekable();
    let has_minimum = rest.clone().next().is_some_and(|c| c.is_ascii_digit());
    if ahead.next_if_eq(&',').is_some() {
        return has_minimum && ahead.find(|c| !c.is_ascii_digit()) == Some('}');
    }
    has_minimum && ahead.next() == Some('}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_patterns_mean_the_same() {
        let table: &[(&str, &str, bool)] = &[
            (r"^\d+$", "42", true),
            (r"^\d+$", "٤٢", false),
            (r"^[\w.]+$", "a_b.c", true),
            (r"^[\w.]+$", "é", false),
            (r"^\S+$", "a b", false),
            (r"^[^\s/]+$", "a\u{a0}b", true),
            (r"^[[a]+$", "[a[", true),
            (r"^[]a]+$", "]a", true),
            (r"^[a&&b]+$", "a&b", true),
            (r"^{x}$", "{x}", true),
            (r"^a{2}$", "aa", true),
            (r"^a{1,2}$", "aaa", false),
            (r"^a{1,}$", "aaa", true),
            (r"^[[:alpha:]-]+$", "a-b", true),
            (r"^\Qa.b\E$", "a.b", true),
            (r"^\Qa.b\E$", "axb", false),
            (r"^a\<b\>$", "a<b>", true),
            (r"^[\-\/_]+$", "-/_", true),
            (r"^(0|(([0-9]+)y)?(([0-9]+)ms)?)$", "3y20ms", true),
        ];
        for (pattern, text, matches) in table {
            let regex = compile(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
            assert_eq!(regex.is_match(text), *matches, "{pattern} on {text}");
        }
    }

    #[test]
    fn refuses_what_is_wrong_or_too_large() {
        for pattern in ["(", "[a", r"\", "a{1000}{1000}{1000}", &"a".repeat(PATTERN_LENGTH_MAX + 1)] {
            assert!(compile(pattern).is_err(), "{}", &pattern[..pattern.len().min(20)]);
        }
    }
}
