//! The text of a commit.

use gix_hash::ObjectId;

/// A name and an address, as they may stand in a commit.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Person {
    name: String,
    email: String,
}

impl Person {
    /// Git's marks cannot be part of a name: they are left out. Nobody is
    /// nameless.
    pub fn new(name: &str, email: &str) -> Self {
        let clean = |text: &str| {
            let kept: String = text.chars().filter(|c| !c.is_control() && !matches!(c, '<' | '>')).collect();
            kept.trim().to_owned()
        };
        let name = Some(clean(name)).filter(|name| !name.is_empty()).unwrap_or_else(|| "unknown".to_owned());
        Self { name, email: clean(email) }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SignError(pub String);

/// Signs the text of a commit.
pub trait Signer: Send + Sync {
    /// The armored signature.
    fn sign(&self, text: &[u8]) -> Result<String, SignError>;
}

#[derive(Clone, Copy)]
pub struct CommitText<'t> {
    pub author: &'t Person,
    pub committer: &'t Person,
    /// Seconds since 1970, in UTC.
    pub time_s: u64,
    pub message: &'t str,
    pub signer: Option<&'t dyn Signer>,
}

impl CommitText<'_> {
    pub(super) fn encode(&self, tree: &ObjectId, parent: Option<&ObjectId>) -> Result<Vec<u8>, SignError> {
        let line =
            |role: &str, person: &Person| format!("{role} {} <{}> {} +0000\n", person.name, person.email, self.time_s);
        let mut head = format!("tree {tree}\n");
        head.extend(parent.map(|parent| format!("parent {parent}\n")));
        head.push_str(&line("author", self.author));
        head.push_str(&line("committer", self.committer));
        let message = self.message.replace('\0', "");
        let body = format!("\n{}\n", message.trim_end());
        let Some(signer) = self.signer else { return Ok((head + &body).into_bytes()) };
        let signature = signer.sign((head.clone() + &body).as_bytes())?;
        head.push_str(&format!("gpgsig {}\n", signature.trim_end().replace('\n', "\n ")));
        Ok((head + &body).into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_the_header() {
        for (name, email, expected) in [
            ("alice", "alice@example.com", ("alice", "alice@example.com")),
            ("a\nparent x <b>", "c>\u{0}d", ("aparent x b", "cd")),
            (" ", "", ("unknown", "")),
            ("system:serviceaccount:ns:name", "x", ("system:serviceaccount:ns:name", "x")),
        ] {
            let person = Person::new(name, email);
            assert_eq!((person.name.as_str(), person.email.as_str()), expected);
        }
    }
}
