//! Structural schemas of `apiextensions.k8s.io/v1`: what an object of a kind
//! may contain.
//!
//! A schema is compiled once, when its kind is loaded, and then only read.
//! Invariant: compiling is bounded by the limits below whatever the input, and
//! pruning, defaulting and validating never panic and never run longer than
//! the object, the schema and the rules' budget allow.

mod cel;
mod checks;
mod compile;
mod compile_checks;
mod defaulting;
mod duration;
mod format_mail;
mod format_text;
mod format_uri;
mod formats;
mod go_regex;
mod judge;
mod node;
pub(crate) mod object_meta;
pub(crate) mod path;
mod prune;
mod source;
mod structural;
mod validate;

use std::sync::Arc;

use serde_json::Value;

pub use checks::{Bound, Checks, Pattern};
pub use defaulting::DefaultsTooLarge;
pub use node::{Additional, ArrayNode, ListType, Node, NodeKind, ObjectNode};
pub use path::ERRORS_MAX;

use crate::{FieldError, FieldErrorReason};
use path::{Errors, Path};
use prune::Role;

/// Nesting of a schema; the CRDs we test with reach 18. Walks recurse once a
/// level, at most ~500 bytes of stack each.
pub const SCHEMA_DEPTH_MAX: usize = 64;
/// Places in one schema, counted before sharing; the CRDs we test with have at
/// most 2,113. At ~300 bytes each a schema stays below ~30 MiB.
pub const SCHEMA_NODES_MAX: usize = 100_000;
/// Different patterns in one schema, each at most 512 KiB when compiled, so
/// 256 MiB at the very worst; the CRDs we test with have at most 11.
pub const PATTERNS_MAX: usize = 500;
/// What defaults may add to one object, as JSON; an object may have as much in
/// all. A default is copied into every item that lacks it, so that 100,000
/// times `{}` and a default of 100 KB would otherwise be 10 GB.
pub const DEFAULTS_BYTES_MAX: usize = 3 << 20;
/// Characters of a description that are kept.
pub const DESCRIPTION_LENGTH_MAX: usize = 300;

/// The compiled schema of one version of a kind; its root is the whole object.
#[derive(Debug)]
pub struct Schema {
    root: Arc<Node>,
}

impl Schema {
    pub fn compile(open_api_v3: &Value) -> Result<Self, Vec<FieldError>> {
        let (root, errors) = compile::compile(open_api_v3);
        if errors.is_empty() { Ok(Self { root }) } else { Err(errors.into_vec()) }
    }

    /// Some rule may look at the old state of an object.
    pub(crate) fn has_rules(&self) -> bool {
        self.root.has_rules
    }

    pub fn root(&self) -> &Node {
        &self.root
    }

    /// Drops unspecified fields.
    pub fn prune(&self, object: &mut Value) {
        prune::prune(&self.root, object, Role::Object);
    }

    /// Fills in defaults. Where a null is not allowed it counts as absent.
    pub fn default(&self, object: &mut Value) -> Result<(), DefaultsTooLarge> {
        defaulting::fill(&self.root, object)
    }

    /// What is wrong with `object`; with `old`, transition rules are checked
    /// too.
    pub fn validate(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut errors = Errors::default();
        validate::structure(&self.root, object, &Path::Root, Role::Object, &mut errors);
        run_rules(&self.root, object, old, &Path::Root, &mut errors);
        errors.into_vec()
    }

    /// What is wrong with `.status`, and what rules on the whole object say.
    pub fn validate_status(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut errors = Errors::default();
        let path = Path::Root.field("status");
        if let (Some(node), Some(status)) = (self.root.property("status"), object.get("status")) {
            validate::structure(node, status, &path, Role::Part, &mut errors);
            run_rules(node, status, old.and_then(|old| old.get("status")), &path, &mut errors);
        }
        if errors.is_empty() {
            cel::rules_at(&self.root, object, old, &Path::Root, &mut errors);
        }
        errors.into_vec()
    }
}

/// Rules may rely on the types and bounds that the schema promises, so they are
/// not run on an object that breaks them.
fn run_rules(node: &Node, value: &Value, old: Option<&Value>, path: &Path, errors: &mut Errors) {
    if !node.has_rules {
        return;
    }
    if errors.any(is_blocking) {
        errors.invalid(
            "",
            "some validation rules were not checked because the object was invalid; \
             correct the existing errors to complete validation",
        );
    } else {
        cel::rules(node, value, old, path, errors);
    }
}

fn is_blocking(error: &FieldError) -> bool {
    use FieldErrorReason as Reason;
    let blocking = [Reason::NotSupported, Reason::Required, Reason::TooLong, Reason::TooMany, Reason::TypeInvalid];
    blocking.contains(&error.reason)
}
