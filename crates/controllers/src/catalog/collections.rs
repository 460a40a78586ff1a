//! Collections: products that a label selector chooses.

use serde_json::json;
use tidegate_model::{LabelSelector, Labels};

use super::facts::{Common, Fields};
use super::table::Slot;
use super::{Catalog, CatalogKind};
use crate::report::{Condition, Report};

pub(crate) struct Collection {
    pub common: Common,
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
    pub(super) fn apply_collection(&mut self, slot: Slot, fields: Option<Fields<'_>>) {
        let namespace = self.collections.node(slot).namespace;
        let facts = fields.map(|fields| {
            let (selector, problem) = read_selector(fields);
            let common = self.read_common(namespace, CatalogKind::Collection, slot, fields);
            Collection { common, selector, problem, product_count: 0 }
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

fn read_selector(fields: Fields<'_>) -> (Option<LabelSelector>, Option<Box<str>>) {
    let Some(selector) = fields.spec("/selector") else { return (None, None) };
    match LabelSelector::from_object_form("spec.selector", selector) {
        Ok(selector) => ((!selector.is_empty()).then_some(selector), None),
        Err(errors) => (None, errors.first().map(|error| error.to_string().into())),
    }
}
