//! What the server does not let us do, said once for all who notice.
//!
//! A manager whose account has the wrong role is refused dozens of requests.
//! One line names all of them and the remedy; another follows only if more is
//! refused than was said, and one when all of it is allowed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use tidegate_model::ObjectKey;
use tokio::time::Instant;

use crate::Kind;

/// Readers begin together: their refusals make one line.
const GATHER: Duration = Duration::from_secs(1);
/// After a line that it is allowed now, the same refusal is no news for so
/// long: a role that allows every other request must not fill the log.
const PAUSE: Duration = Duration::from_secs(60);
/// Nobody asks for it any more: the longest backoff is 5 minutes.
const STALE: Duration = Duration::from_secs(10 * 60);
/// Of about 100 bytes each. Permissions are few; namespaces may be many.
const MISSING_MAX: usize = 256;
/// Of one line of the log.
const NAMED_MAX: usize = 8;

/// A request, by the permission that it needs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Asked<'a> {
    List(&'a Kind),
    Watch(&'a Kind),
    Get(&'a Kind, &'a ObjectKey),
    Status(&'a Kind, &'a ObjectKey),
    Finalizers(&'a Kind, &'a ObjectKey),
    Lease,
    StateRead,
    StateWrite,
}

impl fmt::Display for Asked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (verb, resource, part, key) = match self {
            Self::List(kind) => ("list", &kind.resource, "", None),
            Self::Watch(kind) => ("watch", &kind.resource, "", None),
            Self::Get(kind, key) => ("get", &kind.resource, "", Some(key)),
            Self::Status(kind, key) => ("patch", &kind.resource, "/status", Some(key)),
            Self::Finalizers(kind, key) => ("patch", &kind.resource, "/finalizers", Some(key)),
            Self::Lease => return f.write_str("patch leases.coordination.k8s.io"),
            Self::StateRead => return f.write_str("get controllerstates.tidegate.dev"),
            Self::StateWrite => return f.write_str("patch controllerstates.tidegate.dev"),
        };
        write!(f, "{verb} {resource}{part}")?;
        match key.and_then(|key| key.namespace.as_deref()) {
            Some(namespace) => write!(f, " in the namespace {namespace}"),
            None => Ok(()),
        }
    }
}

/// What is refused now, and what was said of it.
#[derive(Default, Debug)]
pub(crate) struct Refused {
    /// And when it was last asked for.
    missing: BTreeMap<String, Instant>,
    /// What the log has named.
    said: BTreeSet<String>,
    /// When what is new may be said.
    due: Option<Instant>,
    /// Since the log says that it is allowed; `None` if it does not.
    allowed: Option<Instant>,
}

impl Refused {
    /// Returns what to say is missing.
    pub fn failed(&mut self, asked: Asked<'_>, now: Instant) -> Option<String> {
        let asked = asked.to_string();
        if self.missing.len() < MISSING_MAX || self.missing.contains_key(&asked) {
            self.missing.insert(asked, now);
        }
        if self.allowed.is_some_and(|allowed| now - allowed >= PAUSE) {
            self.said.clear();
        }
        let is_news = self.missing.keys().any(|asked| !self.said.contains(asked));
        if !is_news || now < *self.due.get_or_insert(now + GATHER) {
            return None;
        }
        (self.due, self.allowed) = (None, None);
        self.said.extend(self.missing.keys().cloned());
        Some(named(self.missing.keys()))
    }

    /// Whether to say that it is allowed now.
    pub fn worked(&mut self, asked: Asked<'_>, now: Instant) -> bool {
        if self.missing.is_empty() {
            return false;
        }
        self.missing.remove(&asked.to_string());
        self.missing.retain(|_, failed| now - *failed < STALE);
        if !self.missing.is_empty() {
            return false;
        }
        self.due = None;
        let is_news = !self.said.is_empty() && self.allowed.is_none();
        if is_news {
            self.allowed = Some(now);
        }
        is_news
    }
}

fn named<'a>(missing: impl ExactSizeIterator<Item = &'a String>) -> String {
    let more = missing.len().saturating_sub(NAMED_MAX);
    let named: Vec<&str> = missing.take(NAMED_MAX).map(String::as_str).collect();
    let rest = if more == 0 { String::new() } else { format!(", and {more} more") };
    format!("{}{rest}", named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    enum Step<'a> {
        Fails(Asked<'a>, Option<&'static str>),
        Works(Asked<'a>, bool),
    }
    use Step::{Fails, Works};

    #[tokio::test(start_paused = true)]
    async fn refusals_are_one_line_until_they_are_others() {
        let start = Instant::now();
        let (lease, read, write) = (Asked::Lease, Asked::StateRead, Asked::StateWrite);
        let two = "get controllerstates.tidegate.dev, patch leases.coordination.k8s.io";
        let kind = Kind::new("example.com/v1", "Thing", "things");
        let mut refused = Refused::default();
        for (seconds, step) in [
            (0, Works(lease, false)),
            (1, Fails(lease, None)),
            (1, Fails(read, None)),
            (2, Fails(lease, Some(two))),
            (9, Fails(read, None)),
            (3600, Fails(lease, None)),
            // Less is refused, then more.
            (3601, Works(read, false)),
            (3602, Fails(write, None)),
            (3604, Fails(lease, Some("patch controllerstates.tidegate.dev, patch leases.coordination.k8s.io"))),
            (3605, Works(write, false)),
            (3606, Works(lease, true)),
            (3607, Works(lease, false)),
            // Again, at once: only if it lasts. Others are news.
            (3608, Fails(lease, None)),
            (3609, Works(lease, false)),
            (3610, Fails(read, None)),
            (3612, Fails(read, None)),
            (3613, Works(read, false)),
            (3620, Fails(Asked::Watch(&kind), None)),
            (3622, Fails(Asked::Watch(&kind), Some("watch things.example.com"))),
            (3623, Works(Asked::Watch(&kind), true)),
            (3624, Fails(lease, None)),
            (3684, Fails(lease, None)),
            (3685, Fails(lease, Some("patch leases.coordination.k8s.io"))),
            // Nobody asks for a lease any more.
            (5000, Works(read, true)),
        ] {
            let now = start + Duration::from_secs(seconds);
            match step {
                Fails(asked, said) => assert_eq!(refused.failed(asked, now).as_deref(), said, "{seconds} s"),
                Works(asked, said) => assert_eq!(refused.worked(asked, now), said, "{seconds} s"),
            }
        }
    }

    #[test]
    fn a_line_is_bounded() {
        let missing: BTreeSet<String> = (0..300).map(|at| format!("list kind-{at:03}")).collect();
        let text = named(missing.iter());
        assert!(text.starts_with("list kind-000, ") && text.ends_with("list kind-007, and 292 more"), "{text}");
    }
}
