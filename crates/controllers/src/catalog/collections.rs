//! Collections: products that a label selector chooses.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tidegate_model::{LabelSelector, Labels};

use super::facts::{Common, CommonFacts, Fields};
use super::table::Slot;
use super::{Catalog, CatalogKind};
use crate::report::{Condition, Report};

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct CollectionFacts<'f> {
    #[serde(borrow)]
    common: CommonFacts<'f>,
    /// `spec.selector` as JSON.
    #[serde(borrow)]
    selector: Option<Cow<'f, str>>,
}

impl<'f> CollectionFacts<'f> {
    pub fn common(&self) -> &CommonFacts<'f> {
        &self.common
    }

    pub fn read(fields: Fields<'f>) -> Self {
        Self {
            common: CommonFacts::read(CatalogKind::Collection, fields),
            selector: fields.spec("/selector").map(|selector| selector.to_string().into()),
        }
    }
}

pub(crate) struct Collection {
    pub common: Common,
    /// As it was written.
    selector_json: Option<Box<str>>,
    /// `None` if it has no members: without a selector, with an empty one, or
    /// with one that cannot be read.
    selector: Option<LabelSelector>,
    problem: Option<Box<str>>,
    pub product_count: i64,
}

impl Collection {
    pub fn selects(&self, labels: &Labels) -> bool {
        self.selector.as_ref().is_some_and(|selector| selector.matches(labels))
    }
}

impl Catalog {
    pub(super) fn apply_collection(&mut self, slot: Slot, facts: Option<CollectionFacts<'_>>) {
        let namespace = self.collections.node(slot).namespace;
        let facts = facts.map(|facts| {
            let (selector, problem) = read_selector(facts.selector.as_deref());
            let common = self.enter_common(namespace, CatalogKind::Collection, slot, &facts.common);
            let selector_json = facts.selector.map(|json| json.into_owned().into());
            Collection { common, selector_json, selector, problem, product_count: 0 }
        });
        let selector = facts.as_ref().and_then(|facts| facts.selector.clone());
        let before = self.collections.replace(slot, facts);
        let selector_before = before.as_ref().and_then(|before| before.selector.as_ref());
        let product_count = match &before {
            Some(before) if before.selector == selector => before.product_count,
            _ => self.labels.select(namespace, slot, selector_before, selector.as_ref()),
        };
        if selector.is_some()
            && let Some(facts) = self.collections.facts_mut(slot)
        {
            facts.product_count = product_count;
        }
        if let Some(before) = before {
            self.forget_common(CatalogKind::Collection, slot, before.common);
        }
    }

    pub(super) fn collection_facts(&self, slot: Slot) -> Option<CollectionFacts<'_>> {
        let collection = self.collections.facts(slot)?;
        let selector = collection.selector_json.as_deref().map(Cow::Borrowed);
        Some(CollectionFacts { common: self.common_facts(&collection.common), selector })
    }

    pub(super) fn plan_collection(&self, slot: Slot) -> Option<Report> {
        let collection = self.collections.facts(slot)?;
        let unreadable = collection
            .problem
            .as_ref()
            .map(|problem| Condition::fails("Ready", "SelectorInvalid", format!("{problem}; correct spec.selector")));
        let conditions = [unreadable, self.missing_files(&collection.common)];
        let resolved = json!({"productCount": collection.product_count});
        Some(Report::new(collection.common.generation, conditions.into_iter().flatten().collect(), Some(resolved)))
    }
}

fn read_selector(json: Option<&str>) -> (Option<LabelSelector>, Option<Box<str>>) {
    let Some(json) = json else { return (None, None) };
    let value: Value = serde_json::from_str(json).unwrap_or_default();
    match LabelSelector::from_object_form("spec.selector", &value) {
        Ok(selector) => ((!selector.is_empty()).then_some(selector), None),
        Err(errors) => (None, errors.first().map(|error| error.to_string().into())),
    }
}
