//! Text of strangers on a terminal: a name or a value must not be able to
//! begin a line of its own, move the cursor or reorder what is around it.

use std::borrow::Cow;
use std::fmt::Write;

/// Control characters, and marks that nobody sees or that reorder the text.
pub fn is_unprintable(letter: char) -> bool {
    let is_invisible = matches!(
        letter,
        '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
    );
    letter.is_control() || is_invisible
}

/// One line: what cannot be printed stands there as an escape.
pub fn one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unprintable) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 8);
    text.chars().for_each(|letter| push(&mut shown, letter));
    shown.into()
}

/// A path as git shows it: in quotes, with escapes, if it has anything odd.
pub fn quoted_path(path: &str) -> Cow<'_, str> {
    if !path.contains(|letter| is_unprintable(letter) || matches!(letter, '"' | '\\')) {
        return path.into();
    }
    let mut quoted = String::from('"');
    for letter in path.chars() {
        if matches!(letter, '"' | '\\') {
            quoted.push('\\');
        }
        push(&mut quoted, letter);
    }
    quoted.push('"');
    quoted.into()
}

fn push(shown: &mut String, letter: char) {
    // A `String` takes whatever is written.
    let _ = match letter {
        '\n' => shown.write_str("\\n"),
        '\r' => shown.write_str("\\r"),
        '\t' => shown.write_str("\\t"),
        letter if letter.is_ascii() && is_unprintable(letter) => write!(shown, "\\{:03o}", u32::from(letter)),
        letter if is_unprintable(letter) => write!(shown, "\\u{{{:x}}}", u32::from(letter)),
        letter => shown.write_char(letter),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_is_shown() {
        for (text, line, path) in [
            ("a b/ä.yaml", "a b/ä.yaml", "a b/ä.yaml"),
            ("a\nb", "a\\nb", "\"a\\nb\""),
            ("a\r\tb", "a\\r\\tb", "\"a\\r\\tb\""),
            ("\u{1b}[2Jx\u{7f}", "\\033[2Jx\\177", "\"\\033[2Jx\\177\""),
            ("\u{9b}2J", "\\u{9b}2J", "\"\\u{9b}2J\""),
            ("a\u{202e}b\u{2028}", "a\\u{202e}b\\u{2028}", "\"a\\u{202e}b\\u{2028}\""),
            ("say \"x\\y\"", "say \"x\\y\"", "\"say \\\"x\\\\y\\\"\""),
        ] {
            assert_eq!((&*one_line(text), &*quoted_path(text)), (line, path), "{text:?}");
        }
    }
}
