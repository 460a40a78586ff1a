//! The resourceVersion: one number line for a whole store.
//!
//! Invariant: a version is minted by the store's commit alone. Everybody else
//! treats its text as opaque.

use std::fmt;
use std::str::FromStr;

/// A point on a store's number line.
///
/// The line starts at the store's creation time in seconds × 2^20, so two
/// lines never overlap and every version is a decimal of [`Self::DIGITS`]
/// digits, exact in a JSON number (below 2^53) until the year 2242.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ResourceVersion(u64);

impl ResourceVersion {
    /// Each version prints with this many digits: from 10^15 (reached in
    /// March 2000) to 2^53, about 9.007 × 10^15.
    pub const DIGITS: usize = 16;
    const MIN: u64 = 1_000_000_000_000_000;
    const MAX: u64 = 1 << 53;
    const LINE_SHIFT: u32 = 20;
    /// How far apart lines begin that start in neighbouring seconds.
    pub const LINE_SECOND: u64 = 1 << Self::LINE_SHIFT;

    /// The first version of a number line that starts at `epoch_seconds`.
    pub fn line_start(epoch_seconds: u64) -> Self {
        Self(epoch_seconds << Self::LINE_SHIFT)
    }

    /// For the store, which alone may build a version from a number.
    pub fn from_raw(raw: u64) -> Self {
        debug_assert!((Self::MIN..Self::MAX).contains(&raw), "version {raw} is off the line");
        Self(raw)
    }

    /// `None` off the line: before March 2000 or after the year 2242.
    pub fn checked_from_raw(raw: u64) -> Option<Self> {
        (Self::MIN..Self::MAX).contains(&raw).then_some(Self(raw))
    }

    pub fn raw(self) -> u64 {
        self.0
    }

    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016}", self.0)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` {reason}: pass one that a list, a get or a watch event returned")]
pub struct InvalidVersion {
    pub text: String,
    reason: &'static str,
}

const NO_VERSION: &str = "is not a resourceVersion";
const OFF_THE_LINE: &str = "is before or after every resourceVersion that a server can have";

impl FromStr for ResourceVersion {
    type Err = InvalidVersion;

    fn from_str(text: &str) -> Result<Self, InvalidVersion> {
        let invalid = |reason| InvalidVersion { text: text.chars().take(64).collect(), reason };
        if text.len() != Self::DIGITS || !text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(invalid(NO_VERSION));
        }
        text.parse().ok().and_then(Self::checked_from_raw).ok_or_else(|| invalid(OFF_THE_LINE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips_and_sorts_as_the_number() {
        let start = ResourceVersion::line_start(1_763_240_000);
        assert_eq!(start.to_string().parse(), Ok(start));
        assert!(start.to_string() < start.next().to_string());
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "0", "37", "-1", "+848736000000000", "1848736.00000000", "18487360000000000"] {
            let error = text.parse::<ResourceVersion>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{text}` is not a resourceVersion: ")), "{error}");
        }
    }

    #[test]
    fn what_only_looks_like_one_is_told_apart() {
        for text in ["9999999999999999", "0000000000000001"] {
            let error = text.parse::<ResourceVersion>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{text}` is before or after every resourceVersion")), "{error}");
        }
    }
}
