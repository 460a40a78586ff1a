//! What a variant's prices come to. The schema has refused what is malformed;
//! here is what only a look at the whole price set shows.

use std::collections::{BTreeSet, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::facts::Fields;
use crate::report::{Condition, listed};

const KIND: &str = "PricingAccepted";

/// Most variants of a shop have the same: so many prices in these currencies.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Pricing {
    /// `None` without a price set.
    price_count: Option<u32>,
    currencies: Box<[Box<str>]>,
    problem: Option<(Problem, Box<str>)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
enum Problem {
    DuplicatePriceName,
    NegativeAmount,
}

impl Problem {
    fn reason(self) -> &'static str {
        match self {
            Self::DuplicatePriceName => "DuplicatePriceName",
            Self::NegativeAmount => "NegativeAmount",
        }
    }
}

impl Pricing {
    pub fn read(fields: Fields<'_>) -> Self {
        let prices: Vec<&Value> = fields.list("/pricing/priceSet/prices").collect();
        let currencies: BTreeSet<&str> = prices.iter().filter_map(|price| price["currencyCode"].as_str()).collect();
        let has_set = fields.spec("/pricing/priceSet").is_some();
        Self {
            price_count: has_set.then(|| u32::try_from(prices.len()).unwrap_or(u32::MAX)),
            currencies: currencies.into_iter().map(Into::into).collect(),
            problem: problem(&prices),
        }
    }

    pub fn accepted(&self) -> Condition {
        match (&self.problem, self.price_count) {
            (Some((problem, message)), _) => Condition::fails(KIND, problem.reason(), &**message),
            (None, None | Some(0)) => Condition::holds(KIND, "NoPrices", ""),
            (None, Some(_)) => Condition::holds(KIND, "Accepted", ""),
        }
    }

    pub fn resolved(&self) -> Value {
        match self.price_count {
            None => Value::Null,
            Some(count) => json!({"priceCount": count, "currencies": self.currencies}),
        }
    }
}

fn problem(prices: &[&Value]) -> Option<(Problem, Box<str>)> {
    let named = prices.iter().filter_map(|price| price["name"].as_str()).filter(|name| !name.is_empty());
    let mut seen = HashSet::new();
    let repeated: BTreeSet<&str> = named.filter(|name| !seen.insert(*name)).collect();
    if !repeated.is_empty() {
        let message = format!("prices of one name: {}; give each price its own", listed(repeated));
        return Some((Problem::DuplicatePriceName, message.into()));
    }
    let negative: Vec<String> = prices.iter().enumerate().filter(|(_, price)| is_negative(price)).map(label).collect();
    if !negative.is_empty() {
        let negative = listed(negative.iter().map(String::as_str));
        let message = format!("a price cannot be below zero: {negative}; correct spec.pricing.priceSet.prices");
        return Some((Problem::NegativeAmount, message.into()));
    }
    None
}

/// A percentage may lower another price; an amount of money may not be less
/// than nothing.
fn is_negative(price: &Value) -> bool {
    let is_percentage = price.pointer("/strategy/type").and_then(Value::as_str) == Some("percentage");
    let amount = price["amount"].as_str().unwrap_or_default();
    !is_percentage && amount.starts_with('-') && amount.bytes().any(|b| matches!(b, b'1'..=b'9'))
}

fn label((at, price): (usize, &&Value)) -> String {
    let amount = price["amount"].as_str().unwrap_or_default();
    match price["name"].as_str().filter(|name| !name.is_empty()) {
        Some(name) => format!("{name} ({amount})"),
        None => format!("prices[{at}] ({amount})"),
    }
}
