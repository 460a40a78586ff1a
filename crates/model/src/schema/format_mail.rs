//! Mail addresses as Go's `net/mail` reads them: `a@b`, `"a b"@c`,
//! `Name <a@b>`, with comments in brackets.

/// Comments inside each other; each is a level of recursion.
const COMMENT_DEPTH_MAX: usize = 32;

pub(super) fn is_email(text: &str) -> bool {
    let mut reader = Reader { rest: text };
    reader.address().is_some() && reader.space().is_some() && reader.rest.is_empty()
}

struct Reader<'t> {
    rest: &'t str,
}

impl Reader<'_> {
    /// An address alone, or in angle brackets after a name.
    fn address(&mut self) -> Option<()> {
        self.space()?;
        let start = self.rest;
        if self.address_spec().is_some() {
            return Some(());
        }
        self.rest = start;
        while !self.rest.starts_with('<') {
            self.word()?;
            self.space()?;
        }
        self.take('<')?;
        self.address_spec()?;
        self.take('>')
    }

    fn address_spec(&mut self) -> Option<()> {
        if self.rest.starts_with('"') {
            self.quoted()?
        } else {
            self.dotted()?
        }
        self.take('@')?;
        if self.rest.starts_with('[') { self.literal() } else { self.dotted() }
    }

    /// A part of a name, which may have dots anywhere.
    fn word(&mut self) -> Option<()> {
        if self.rest.starts_with('"') {
            return self.quoted();
        }
        let end = self.rest.find(|c| !is_atom(c) && c != '.').unwrap_or(self.rest.len());
        self.skip(end)
    }

    fn dotted(&mut self) -> Option<()> {
        self.space()?;
        let end = self.rest.find(|c| !is_atom(c) && c != '.').unwrap_or(self.rest.len());
        let is_whole = self.rest[..end].split('.').all(|part| !part.is_empty());
        if is_whole { self.skip(end) } else { None }
    }

    fn quoted(&mut self) -> Option<()> {
        self.take('"')?;
        let mut is_escaped = false;
        for (at, c) in self.rest.char_indices() {
            match c {
                '"' if !is_escaped => return self.skip(at + 1),
                '\\' if !is_escaped => is_escaped = true,
                c if c.is_control() && c != '\t' => return None,
                _ => is_escaped = false,
            }
        }
        None
    }

    /// `[127.0.0.1]`.
    fn literal(&mut self) -> Option<()> {
        let end = self.rest.find(']')?;
        let inner = self.rest.get(1..end)?;
        let is_address = inner.parse::<std::net::IpAddr>().is_ok();
        if is_address { self.skip(end + 1) } else { None }
    }

    /// Blanks and comments.
    fn space(&mut self) -> Option<()> {
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t']);
            if !self.rest.starts_with('(') {
                return Some(());
            }
            let (mut depth, mut is_escaped, mut end) = (0_usize, false, None);
            for (at, c) in self.rest.char_indices() {
                match c {
                    _ if is_escaped => is_escaped = false,
                    '\\' => is_escaped = true,
                    '(' => depth += 1,
                    ')' if depth == 1 => end = Some(at + 1),
                    ')' => depth -= 1,
                    _ => {}
                }
                if end.is_some() || depth > COMMENT_DEPTH_MAX {
                    break;
                }
            }
            self.skip(end?)?;
        }
    }

    fn take(&mut self, expected: char) -> Option<()> {
        self.rest = self.rest.strip_prefix(expected)?;
        Some(())
    }

    /// Nothing is no part of an address.
    fn skip(&mut self, bytes: usize) -> Option<()> {
        self.rest = self.rest.get(bytes..)?;
        (bytes > 0).then_some(())
    }
}

fn is_atom(c: char) -> bool {
    c.is_ascii_alphanumeric() || !c.is_ascii() || "!#$%&'*+-/=?^_`{|}~".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for text in [
            "a@b.c",
            "A B <a@b.c>",
            "a@b.c ",
            "\"a b\"@c.d",
            "a@ b",
            "a@[127.0.0.1]",
            "ä@ö",
            "a@b (c(d))",
            "A. B <a@b>",
        ] {
            assert!(is_email(text), "{text:?} is refused");
        }
        for text in [
            "", "a", "@b.c", "a@", "a..b@c.d", "a@b@c", ".a@b", "a.@b", "a b@c", "<a@b", "a@b (", "\"a@b", "a@[x]",
            "a(x)@b",
        ] {
            assert!(!is_email(text), "{text:?} is accepted");
        }
    }
}
