//! Definitions of kinds take force before anything else of the change, so
//! that a kind and its objects arrive in one push.

use std::sync::Arc;

use serde_json::Value;
use tidegate_model::GroupResource;
use tidegate_model::kinds::{Kind, KindSet};
use tidegate_model::manifest::{Diagnostic, Document};

use crate::judge::Judged;
use crate::places::defined_resource;
use crate::removals::Removal;
use crate::report::{Report, diagnostics};

const DEFINITION: &str = "CustomResourceDefinition";

/// The kinds after the change, and those whose definition it replaces.
pub(crate) struct InForce {
    pub kinds: KindSet,
    pub replaced: Vec<Replaced>,
}

/// What a new definition breaks if objects of the old one remain.
pub(crate) struct Replaced {
    pub resource: GroupResource,
    pub broken: Vec<Diagnostic>,
}

/// Removed ones go first: their names are then free for others.
pub(crate) fn put_in_force(
    kinds: &KindSet,
    removals: &[Removal<'_>],
    definitions: &[Judged<'_>],
    report: &mut Report,
) -> InForce {
    let gone = removals.iter().filter_map(|removal| defined_resource(&removal.key));
    let mut after = gone.fold(kinds.clone(), |kinds, resource| kinds.without(&resource));
    let mut replaced = Vec::new();
    for definition in definitions {
        // Admission has compiled it once already: it cannot fail.
        let Ok(kind) = Kind::from_crd(&definition.desired.object()) else { continue };
        if let Some(before) = kinds.by_resource(&kind.resource) {
            let broken = diagnostics(&definition.document, &before.check_replacement(&kind));
            replaced.push(Replaced { resource: kind.resource.clone(), broken });
        }
        match after.with(Arc::new(kind)) {
            Ok(next) => after = next,
            Err(errors) => report.extend(diagnostics(&definition.document, &errors)),
        }
    }
    InForce { kinds: after, replaced }
}

pub(crate) fn defines_a_kind(document: &Document<'_>) -> bool {
    document.object.kind() == DEFINITION && document.object.api_version().starts_with("apiextensions.k8s.io/")
}

/// What a definition is about, valid or not.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Subject {
    group: String,
    kind: String,
}

impl Subject {
    /// `None` if the document defines no kind, or does not say which.
    pub fn of(document: &Document<'_>) -> Option<Self> {
        let spec = document.object.spec().filter(|_| defines_a_kind(document))?;
        let text = |pointer: &str| spec.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        Some(Self { group: text("/group")?, kind: text("/names/kind")? })
    }

    pub fn is_kind_of(&self, document: &Document<'_>) -> bool {
        let gvk = document.object.gvk();
        self.group == gvk.group.as_str() && self.kind == gvk.kind.as_str()
    }
}

/// Whether a file may define a kind: all that do are among these.
pub(crate) fn may_define(bytes: &[u8]) -> bool {
    may_have_word(bytes, DEFINITION)
}

/// A scalar that does not have the word as it is has an escape.
pub(crate) fn may_have_word(bytes: &[u8], word: &str) -> bool {
    memchr::memchr(b'\\', bytes).is_some() || memchr::memmem::find(bytes, word.as_bytes()).is_some()
}
