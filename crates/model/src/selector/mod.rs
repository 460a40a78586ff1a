//! Which objects a list or a watch is about: by labels, or by name.
//!
//! Invariant: a selector is canonical. Two texts that mean the same
//! requirements give equal selectors with equal text, so watchers that ask for
//! the same selection share one entry whatever their spelling.

mod field;
mod object_form;
mod parse;
#[cfg(test)]
mod properties;

use std::fmt;
use std::sync::Arc;

pub use field::{FieldRequirement, FieldSelector, SelectableField};

use crate::Labels;

/// As long as a URL may be at most servers, and more than a person types.
pub const SELECTOR_BYTES_MAX: usize = 8 * 1024;
/// Each event is matched against each requirement of a watch.
pub const SELECTOR_REQUIREMENTS_MAX: usize = 64;
/// Values of one `in (…)`; 256 of them with 63 bytes are 16 KiB.
pub const SELECTOR_VALUES_MAX: usize = 256;

/// Requirements that must all hold; none of them selects everything.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct LabelSelector {
    /// Sorted, without repetitions.
    requirements: Arc<[Requirement]>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct Requirement {
    key: Box<str>,
    operator: Operator,
}

/// Value lists are sorted, without repetitions and never empty.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Operator {
    In(Box<[Box<str>]>),
    /// Holds for an object without the label, too.
    NotIn(Box<[Box<str>]>),
    Exists,
    Absent,
    GreaterThan(i64),
    LessThan(i64),
}

/// A selector's text that cannot be read, and where.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("selector, character {position}: {message}")]
pub struct SelectorError {
    /// Counted from 1.
    pub position: usize,
    pub message: String,
}

impl LabelSelector {
    pub fn everything() -> Self {
        Self::default()
    }

    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    pub fn matches(&self, labels: &Labels) -> bool {
        self.requirements.iter().all(|requirement| requirement.matches(labels))
    }

    /// A pair that every matching object carries, if one is required: by it a
    /// watch is found from an event's labels without trying all watches.
    pub fn equality(&self) -> Option<(&str, &str)> {
        self.requirements.iter().find_map(|requirement| match &requirement.operator {
            Operator::In(values) if values.len() == 1 => Some((&*requirement.key, &*values[0])),
            _ => None,
        })
    }

    fn new(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort();
        requirements.dedup();
        Self { requirements: requirements.into() }
    }
}

impl Requirement {
    fn new(key: &str, operator: Operator) -> Self {
        Self { key: key.into(), operator }
    }

    fn matches(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        let is_among = |values: &[Box<str>], value: &str| values.binary_search_by(|v| (**v).cmp(value)).is_ok();
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.operator {
            Operator::In(values) => value.is_some_and(|value| is_among(values, value)),
            Operator::NotIn(values) => value.is_none_or(|value| !is_among(values, value)),
            Operator::Exists => value.is_some(),
            Operator::Absent => value.is_none(),
            Operator::GreaterThan(bound) => number().is_some_and(|number| number > *bound),
            Operator::LessThan(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

/// The canonical value list of an operator.
fn value_set(mut values: Vec<Box<str>>) -> Box<[Box<str>]> {
    values.sort();
    values.dedup();
    values.into()
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, requirement) in self.requirements.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{requirement}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        match &self.operator {
            Operator::In(values) if values.len() == 1 => write!(f, "{key}={}", values[0]),
            Operator::In(values) => write!(f, "{key} in ({})", values.join(",")),
            Operator::NotIn(values) if values.len() == 1 => write!(f, "{key}!={}", values[0]),
            Operator::NotIn(values) => write!(f, "{key} notin ({})", values.join(",")),
            Operator::Exists => f.write_str(key),
            Operator::Absent => write!(f, "!{key}"),
            Operator::GreaterThan(bound) => write!(f, "{key}>{bound}"),
            Operator::LessThan(bound) => write!(f, "{key}<{bound}"),
        }
    }
}
