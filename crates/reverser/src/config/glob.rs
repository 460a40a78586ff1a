//! Patterns of branch names: `*` within a segment, `**` across, `?`, `[…]`.

use regex::Regex;

/// A branch pattern is a name, not a program; Git itself refuses longer refs on most disks.
const PATTERN_BYTES_MAX: usize = 255;

#[derive(Clone, Debug)]
pub struct Glob(Regex);

impl Glob {
    pub fn new(pattern: &str) -> Result<Self, String> {
        if pattern.is_empty() || pattern.len() > PATTERN_BYTES_MAX {
            return Err(format!("a branch pattern has 1 to {PATTERN_BYTES_MAX} bytes"));
        }
        let text = translate(pattern)?;
        Regex::new(&text).map(Self).map_err(|_| format!("`{pattern}` is not a branch pattern: check its brackets"))
    }

    /// A pattern of `git ls-remote` that finds at least what this one matches:
    /// a host with many branches is asked for few.
    pub fn widened(pattern: &str) -> String {
        match pattern.find(['*', '?', '[', '\\']) {
            Some(end) => format!("refs/heads/{}*", &pattern[..end]),
            None => format!("refs/heads/{pattern}"),
        }
    }

    pub fn matches(&self, branch: &str) -> bool {
        self.0.is_match(branch)
    }
}

fn translate(pattern: &str) -> Result<String, String> {
    let mut text = String::from("^");
    let mut rest = pattern.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '*' if rest.next_if_eq(&'*').is_some() => text.push_str(".*"),
            '*' => text.push_str("[^/]*"),
            '?' => text.push_str("[^/]"),
            '[' => text.push_str(&class(&mut rest).ok_or_else(|| format!("`{pattern}`: `[` without `]`"))?),
            '\\' => {
                let escaped = rest.next().ok_or_else(|| format!("`{pattern}` ends with a backslash"))?;
                text.push_str(&regex::escape(&escaped.to_string()));
            }
            c => text.push_str(&regex::escape(&c.to_string())),
        }
    }
    text.push('$');
    Ok(text)
}

/// The part between brackets; `!` and `^` negate, a class never matches `/`.
fn class(rest: &mut impl Iterator<Item = char>) -> Option<String> {
    let (mut negated, mut members) = (false, String::new());
    for (at, c) in rest.by_ref().enumerate() {
        match c {
            '!' | '^' if at == 0 => negated = true,
            ']' if !members.is_empty() => {
                let negation = if negated { "^/" } else { "" };
                return Some(format!("[{negation}{members}]"));
            }
            '-' => members.push('-'),
            c => members.push_str(&regex::escape(&c.to_string())),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, branch: &str, expected: bool) {
        assert_eq!(Glob::new(pattern).unwrap().matches(branch), expected, "{pattern} on {branch}");
    }

    #[test]
    fn patterns() {
        check("main", "main", true);
        check("main", "maintenance", false);
        check("feature/*", "feature/a", true);
        check("feature/*", "feature/a/b", false);
        check("feature/**", "feature/a/b", true);
        check("release/v*", "release/v1.2", true);
        check("v?", "v1", true);
        check("v?", "v/", false);
        check("v[0-9]", "v7", true);
        check("v[!0-9]", "v7", false);
        check("v[!0-9]", "v/", false);
        check("a.b", "axb", false);
        check("a+b", "a+b", true);
        check("\\*", "*", true);
        check("*", "main", true);
    }

    #[test]
    fn a_host_is_asked_for_no_less() {
        for (pattern, expected) in [
            ("main", "refs/heads/main"),
            ("v[0-9]", "refs/heads/v*"),
            ("**", "refs/heads/*"),
            ("a/?x", "refs/heads/a/*"),
        ] {
            assert_eq!(Glob::widened(pattern), expected);
        }
    }

    #[test]
    fn bad_patterns_say_what_is_wrong() {
        for pattern in ["", "v[0-9", "a\\", &"x".repeat(256)] {
            assert!(Glob::new(pattern).is_err(), "{pattern}");
        }
    }
}
