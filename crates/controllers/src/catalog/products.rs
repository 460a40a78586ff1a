//! Products: the category they are in, their options, their variants.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::facts::{Common, CommonFacts, Fields, Often, OptionFacts, Options};
use super::table::{NamespaceId, Slot};
use super::{Catalog, CatalogKind, Touched};
use crate::report::{Condition, Report, listed};

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct ProductFacts<'f> {
    #[serde(borrow)]
    common: CommonFacts<'f>,
    category: Option<&'f str>,
    #[serde(borrow)]
    labels: Vec<(&'f str, &'f str)>,
    #[serde(borrow)]
    options: OptionFacts<'f>,
}

impl<'f> ProductFacts<'f> {
    pub fn common(&self) -> &CommonFacts<'f> {
        &self.common
    }

    pub fn category(&self) -> Option<&'f str> {
        self.category
    }

    pub fn read(fields: Fields<'f>) -> Self {
        Self {
            common: CommonFacts::read(CatalogKind::Product, fields),
            category: fields.text("/categoryRef/name"),
            labels: fields.labels(),
            options: Options::read(fields),
        }
    }
}

pub(crate) struct Product {
    pub common: Common,
    category: Option<Slot>,
    label_set: Slot,
    pub options: Often<Options>,
}

pub(super) const CONDITIONS: &[&str] = &["CategoryResolved", "OptionsAccepted"];

impl Catalog {
    pub(super) fn apply_product(&mut self, slot: Slot, facts: Option<ProductFacts<'_>>, touched: &mut Touched) {
        let namespace = self.products.node(slot).namespace;
        let facts = facts.map(|facts| self.enter_product(namespace, slot, &facts));
        let category = facts.as_ref().and_then(|facts| facts.category);
        let label_set = facts.as_ref().map(|facts| facts.label_set);
        let before = self.products.replace(slot, facts);
        let category_before = before.as_ref().and_then(|before| before.category);
        let label_set_before = before.as_ref().map(|before| before.label_set);
        self.labels.count_move(label_set_before, label_set, &mut self.collections, touched);
        if category != category_before {
            touched.extend(CatalogKind::CategoryTaxonomy, category.into_iter().chain(category_before));
        }
        // Its variants ask whether it exists and which options it has.
        let options = |product: Option<&Product>| product.map(|product| product.options.clone());
        if options(before.as_ref()) != options(self.products.known(slot)) {
            touched.extend(CatalogKind::ProductVariant, self.product_variants.of(slot));
        }
        if let Some(before) = before {
            self.forget_product(slot, before, category);
        }
    }

    fn enter_product(&mut self, namespace: NamespaceId, slot: Slot, facts: &ProductFacts<'_>) -> Product {
        let category = facts.category.map(|name| {
            let category = self.taxonomy.table.refer(namespace, name);
            self.category_products.insert(category, slot);
            category
        });
        let options = (!facts.options.is_empty()).then(|| self.options.share(Options::new(&facts.options)));
        Product {
            common: self.enter_common(namespace, CatalogKind::Product, slot, &facts.common),
            category,
            label_set: self.labels.enter(namespace, &facts.labels, &self.collections),
            options,
        }
    }

    pub(super) fn product_facts(&self, slot: Slot) -> Option<ProductFacts<'_>> {
        let product = self.products.facts(slot)?;
        Some(ProductFacts {
            common: self.common_facts(&product.common),
            category: product.category.map(|category| self.taxonomy.table.name(category)),
            labels: self.labels.labels(product.label_set),
            options: product.options.as_ref().map(|options| options.facts()).unwrap_or_default(),
        })
    }

    fn forget_product(&mut self, slot: Slot, before: Product, category: Option<Slot>) {
        let Product { common, category: category_before, label_set, options } = before;
        self.forget_common(CatalogKind::Product, slot, common);
        if let Some(before) = category_before {
            if category != category_before {
                self.category_products.remove(before, slot);
            }
            self.taxonomy.table.release(before);
        }
        self.labels.leave(label_set);
        if let Some(options) = options {
            self.options.release(options);
        }
    }

    pub(super) fn plan_product(&self, slot: Slot) -> Option<Report> {
        let product = self.products.facts(slot)?;
        let conditions = [
            Some(self.category_resolved(product)),
            Some(options_accepted(product)),
            self.missing_files(&product.common),
        ];
        let found = product.category.filter(|category| self.taxonomy.table.exists(*category));
        let resolved = json!({
            "category": found.map(|category| self.taxonomy.table.name(category)),
            "variantCount": self.products.referrers(slot),
        });
        Some(Report::new(product.common.generation, conditions.into_iter().flatten().collect(), Some(resolved)))
    }

    fn category_resolved(&self, product: &Product) -> Condition {
        const KIND: &str = "CategoryResolved";
        let Some(category) = product.category else {
            return Condition::holds(KIND, "NoCategory", "");
        };
        let name = self.taxonomy.table.name(category);
        if self.taxonomy.table.exists(category) {
            return Condition::holds(KIND, "Resolved", "");
        }
        let message = format!(
            "CategoryTaxonomy {name} does not exist in this namespace: add it, or correct spec.categoryRef.name"
        );
        Condition::fails(KIND, "CategoryNotFound", message)
    }
}

fn options_accepted(product: &Product) -> Condition {
    const KIND: &str = "OptionsAccepted";
    let Some(options) = &product.options else {
        return Condition::holds(KIND, "NoOptions", "");
    };
    let repeats = options.iter().flat_map(|option| {
        let repeated = option.values.iter().enumerate().filter(|(at, value)| option.values[..*at].contains(value));
        repeated.map(|(_, value)| format!("{}={value}", option.name))
    });
    let repeats: Vec<String> = repeats.collect();
    if repeats.is_empty() {
        return Condition::holds(KIND, "Accepted", "");
    }
    let message =
        format!("values that are listed twice: {}; remove the repetitions", listed(repeats.iter().map(String::as_str)));
    Condition::fails(KIND, "DuplicateValue", message)
}
