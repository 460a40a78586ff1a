//! Categories: their place in the forest, their children and products.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::facts::{CommonFacts, Fields};
use super::table::Slot;
use super::taxonomy::{CATEGORY_DEPTH_MAX, Category, Standing};
use super::{Catalog, CatalogKind, Touched};
use crate::report::{Condition, Report};

/// A cycle's message shows so many of its members.
const RING_SHOWN_MAX: usize = 10;

pub(super) const CONDITIONS: &[&str] = &["ParentResolved", "Acyclic"];

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct CategoryFacts<'f> {
    #[serde(borrow)]
    common: CommonFacts<'f>,
    parent: Option<&'f str>,
}

impl<'f> CategoryFacts<'f> {
    pub fn common(&self) -> &CommonFacts<'f> {
        &self.common
    }

    pub fn parent(&self) -> Option<&'f str> {
        self.parent
    }

    pub fn read(fields: Fields<'f>) -> Self {
        let common = CommonFacts::read(CatalogKind::CategoryTaxonomy, fields);
        Self { common, parent: fields.text("/parentRef/name") }
    }
}

impl Catalog {
    pub(super) fn apply_category(&mut self, slot: Slot, facts: Option<CategoryFacts<'_>>, touched: &mut Touched) {
        const KIND: CatalogKind = CatalogKind::CategoryTaxonomy;
        let namespace = self.taxonomy.table.node(slot).namespace;
        let common = facts.as_ref().map(|facts| self.enter_common(namespace, KIND, slot, &facts.common));
        let exists = common.is_some();
        let parent_name = facts.and_then(|facts| facts.parent);
        // A slot of its own while the change is made: it may lose all others.
        let held = self.taxonomy.table.hold(slot);
        let before = self.taxonomy.replace(slot, parent_name, common);
        let parent = self.taxonomy.table.facts(slot).and_then(|facts| facts.parent);
        let parent_before = before.as_ref().and_then(|before| before.parent);
        self.taxonomy.unlink(slot, parent_before, parent);
        if parent != parent_before {
            let known = parent_before.filter(|parent| self.taxonomy.table.known(*parent).is_some());
            touched.extend(KIND, parent.into_iter().chain(known));
        }
        let came_or_went = before.is_some() != exists;
        if came_or_went || parent != parent_before {
            touched.extend(KIND, self.taxonomy.replant(slot));
        } else if let (Some(before), Some(facts)) = (&before, self.taxonomy.table.facts_mut(slot)) {
            facts.standing = before.standing;
        }
        if came_or_went {
            touched.extend(CatalogKind::Product, self.category_products.of(slot));
        }
        if let Some(before) = before {
            self.forget_common(KIND, slot, before.common);
        }
        self.taxonomy.table.let_go(held);
    }

    pub(super) fn category_facts(&self, slot: Slot) -> Option<CategoryFacts<'_>> {
        let category = self.taxonomy.table.facts(slot)?;
        let parent = category.parent.map(|parent| self.taxonomy.table.name(parent));
        Some(CategoryFacts { common: self.common_facts(&category.common), parent })
    }

    pub(super) fn plan_category(&self, slot: Slot) -> Option<Report> {
        let category = self.taxonomy.table.facts(slot)?;
        let conditions = [
            Some(self.parent_resolved(category)),
            Some(self.acyclic(slot, category)),
            self.rooted(category),
            self.missing_files(&category.common),
        ];
        let path = self.taxonomy.path(slot);
        let resolved = json!({
            "depth": path.as_ref().map(|path| path.len() - 1),
            "path": path,
            "childCount": self.taxonomy.child_count(slot),
            "productCount": self.taxonomy.product_count(slot),
        });
        Some(Report::new(category.common.generation, conditions.into_iter().flatten().collect(), Some(resolved)))
    }

    fn parent_resolved(&self, category: &Category) -> Condition {
        const KIND: &str = "ParentResolved";
        let Some(parent) = category.parent else {
            return Condition::holds(KIND, "NoParent", "");
        };
        if self.taxonomy.table.exists(parent) {
            return Condition::holds(KIND, "Resolved", "");
        }
        let name = self.taxonomy.table.name(parent);
        let message =
            format!("CategoryTaxonomy {name} does not exist in this namespace: add it, or correct spec.parentRef.name");
        Condition::fails(KIND, "ParentNotFound", message)
    }

    fn acyclic(&self, slot: Slot, category: &Category) -> Condition {
        const KIND: &str = "Acyclic";
        match category.standing {
            Standing::InCycle => {
                let message = format!(
                    "it is its own ancestor: {}; give one of them another parent, or none",
                    self.show_ring(slot)
                );
                Condition::fails(KIND, "Cycle", message)
            }
            Standing::BelowCycle => {
                let message = "an ancestor is in a cycle, so there is no path to a root: mend the cycle, or choose another parent";
                Condition::fails(KIND, "AncestorInCycle", message)
            }
            _ => Condition::holds(KIND, "Acyclic", ""),
        }
    }

    /// `a → b → c → a`, from the parent's name onwards.
    fn show_ring(&self, slot: Slot) -> String {
        let ring = self.taxonomy.ring(slot);
        let name = |slot: &Slot| self.taxonomy.table.name(*slot);
        let mut shown: Vec<&str> = ring.iter().take(RING_SHOWN_MAX).map(name).collect();
        let more = ring.len() - shown.len();
        let hidden = format!("({more} more)");
        if more > 0 {
            shown.push(&hidden);
        }
        shown.push(name(&slot));
        shown.join(" → ")
    }

    /// A part of `Ready`: what keeps a category from having a path although
    /// its own parent exists.
    fn rooted(&self, category: &Category) -> Option<Condition> {
        match category.standing {
            Standing::TooDeep => {
                let message = format!("more than {CATEGORY_DEPTH_MAX} levels deep: choose a parent nearer to the root");
                Some(Condition::fails("Ready", "TooDeep", message))
            }
            Standing::Orphaned if category.parent.is_some_and(|parent| self.taxonomy.table.exists(parent)) => {
                let message =
                    "the parent of an ancestor does not exist: mend the nearest one whose ParentResolved is False";
                Some(Condition::fails("Ready", "AncestorNotFound", message))
            }
            _ => None,
        }
    }
}
