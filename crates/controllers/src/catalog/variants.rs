//! Variants: their product, the options they select, their SKU, their prices.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::facts::{Common, CommonFacts, Fields, Often, Selected};
use super::pricing::Pricing;
use super::table::{NamespaceId, Slot};
use super::{Catalog, CatalogKind, Touched};
use crate::report::{Condition, Report, listed};

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct VariantFacts<'f> {
    #[serde(borrow)]
    common: CommonFacts<'f>,
    product: Option<&'f str>,
    sku: Option<&'f str>,
    created: i64,
    #[serde(borrow)]
    selected: Vec<(&'f str, &'f str)>,
    pricing: Pricing,
}

impl<'f> VariantFacts<'f> {
    pub fn common(&self) -> &CommonFacts<'f> {
        &self.common
    }

    pub fn product(&self) -> Option<&'f str> {
        self.product
    }

    /// What it asks for, and since when.
    pub fn claim(&self) -> Option<(&'f str, i64)> {
        Some((self.sku?, self.created))
    }

    pub fn read(fields: Fields<'f>) -> Self {
        Self {
            common: CommonFacts::read(CatalogKind::ProductVariant, fields),
            product: fields.text("/productRef/name"),
            sku: fields.text("/sku"),
            created: fields.created(),
            selected: fields.pairs("/selectedOptions", "value"),
            pricing: Pricing::read(fields),
        }
    }
}

pub(crate) struct Variant {
    pub common: Common,
    product: Option<Slot>,
    pub sku: Option<Arc<str>>,
    /// Seconds; decides who keeps a SKU.
    pub created: i64,
    selected: Often<Selected>,
    pricing: Arc<Pricing>,
}

pub(super) const CONDITIONS: &[&str] = &["ProductResolved", "OptionsAccepted", "SkuUnique", "PricingAccepted"];

impl Catalog {
    pub(super) fn apply_variant(&mut self, slot: Slot, facts: Option<VariantFacts<'_>>, touched: &mut Touched) {
        let namespace = self.variants.node(slot).namespace;
        let name: Arc<str> = self.variants.name(slot).into();
        let facts = facts.map(|facts| self.enter_variant(namespace, slot, facts));
        let product = facts.as_ref().and_then(|facts| facts.product);
        let claim = |facts: Option<&Variant>| facts.and_then(|facts| Some((facts.sku.clone()?, facts.created)));
        let claimed = claim(facts.as_ref());
        let before = self.variants.replace(slot, facts);
        let claimed_before = claim(before.as_ref());
        if claimed != claimed_before {
            if let Some((sku, created)) = claimed_before {
                self.skus.remove(namespace, &sku, &(created, name.clone(), slot), touched);
            }
            if let Some((sku, created)) = claimed {
                self.skus.insert(namespace, &sku, (created, name, slot), touched);
            }
        }
        let product_before = before.as_ref().and_then(|before| before.product);
        if product != product_before {
            touched.extend(CatalogKind::Product, product.into_iter().chain(product_before));
        }
        if let Some(before) = before {
            self.forget_variant(slot, before, product);
        }
    }

    fn enter_variant(&mut self, namespace: NamespaceId, slot: Slot, facts: VariantFacts<'_>) -> Variant {
        let product = facts.product.map(|name| {
            let product = self.products.refer(namespace, name);
            self.product_variants.insert(product, slot);
            product
        });
        let selected = (!facts.selected.is_empty()).then(|| self.selected.share(Selected::new(&facts.selected)));
        Variant {
            common: self.enter_common(namespace, CatalogKind::ProductVariant, slot, &facts.common),
            product,
            sku: facts.sku.map(Into::into),
            created: facts.created,
            selected,
            pricing: self.pricing.share(facts.pricing),
        }
    }

    pub(super) fn variant_facts(&self, slot: Slot) -> Option<VariantFacts<'_>> {
        let variant = self.variants.facts(slot)?;
        Some(VariantFacts {
            common: self.common_facts(&variant.common),
            product: variant.product.map(|product| self.products.name(product)),
            sku: variant.sku.as_deref(),
            created: variant.created,
            selected: variant.selected.as_ref().map(|selected| selected.facts()).unwrap_or_default(),
            pricing: (*variant.pricing).clone(),
        })
    }

    fn forget_variant(&mut self, slot: Slot, before: Variant, product: Option<Slot>) {
        self.forget_common(CatalogKind::ProductVariant, slot, before.common);
        if let Some(product_before) = before.product {
            if product != before.product {
                self.product_variants.remove(product_before, slot);
            }
            self.products.release(product_before);
        }
        if let Some(selected) = before.selected {
            self.selected.release(selected);
        }
        self.pricing.release(before.pricing);
    }

    pub(super) fn plan_variant(&self, slot: Slot) -> Option<Report> {
        let variant = self.variants.facts(slot)?;
        let product = variant.product.filter(|product| self.products.exists(*product));
        let conditions = [
            Some(self.product_resolved(variant)),
            Some(self.options_selected(variant, product)),
            Some(self.sku_unique(slot, variant)),
            Some(variant.pricing.accepted()),
            self.missing_files(&variant.common),
        ];
        let resolved = json!({
            "product": product.map(|product| self.products.name(product)),
            "priceSet": variant.pricing.resolved(),
        });
        Some(Report::new(variant.common.generation, conditions.into_iter().flatten().collect(), Some(resolved)))
    }

    fn product_resolved(&self, variant: &Variant) -> Condition {
        const KIND: &str = "ProductResolved";
        match variant.product {
            Some(product) if self.products.exists(product) => Condition::holds(KIND, "Resolved", ""),
            product => {
                let name = product.map_or("", |product| self.products.name(product));
                let remedy = "add it, or correct spec.productRef.name";
                Condition::fails(
                    KIND,
                    "ProductNotFound",
                    format!("Product {name} does not exist in this namespace: {remedy}"),
                )
            }
        }
    }

    fn options_selected(&self, variant: &Variant, product: Option<Slot>) -> Condition {
        const KIND: &str = "OptionsAccepted";
        let Some(selected) = &variant.selected else {
            return Condition::holds(KIND, "NoOptions", "");
        };
        let Some(product) = product else {
            return Condition::fails(KIND, "ProductNotFound", "its product does not exist, so its options are unknown");
        };
        let options = self.products.facts(product).and_then(|product| product.options.as_deref());
        let wrong: Vec<String> = selected
            .0
            .iter()
            .filter_map(|(name, value)| match options.and_then(|options| options.get(name)) {
                None => Some(format!("{name} (no such option)")),
                Some(option) if !option.values.contains(value) => Some(format!("{name}={value} (no such value)")),
                Some(_) => None,
            })
            .collect();
        if wrong.is_empty() {
            return Condition::holds(KIND, "Accepted", "");
        }
        let product = self.products.name(product);
        let wrong = listed(wrong.iter().map(String::as_str));
        let message = format!(
            "Product {product} does not offer {wrong}: add it to its spec.options, or correct spec.selectedOptions"
        );
        Condition::fails(KIND, "OptionNotFound", message)
    }

    /// No other variant has its SKU.
    pub(super) fn holds_sku(&self, slot: Slot) -> bool {
        self.variants.facts(slot).is_some_and(|variant| self.sku_rival(slot, variant).is_none())
    }

    /// Who has its SKU, if it is another.
    fn sku_rival(&self, slot: Slot, variant: &Variant) -> Option<&str> {
        let namespace = self.variants.node(slot).namespace;
        let (_, name, holder) = self.skus.holder(namespace, variant.sku.as_ref()?)?;
        (*holder != slot).then_some(&**name)
    }

    fn sku_unique(&self, slot: Slot, variant: &Variant) -> Condition {
        const KIND: &str = "SkuUnique";
        let Some(sku) = &variant.sku else {
            return Condition::holds(KIND, "NoSku", "");
        };
        match self.sku_rival(slot, variant) {
            Some(name) => {
                let message = format!(
                    "sku {sku} is held by ProductVariant {name}, which is older: give this one another, or remove that one"
                );
                Condition::fails(KIND, "SkuTaken", message)
            }
            _ => Condition::holds(KIND, "Unique", ""),
        }
    }
}
