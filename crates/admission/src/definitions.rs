//! Definitions of kinds take force before anything else of the change, so
//! that a kind and its objects arrive in one push.

use std::sync::Arc;

use tidegate_model::GroupResource;
use tidegate_model::kinds::{Kind, KindSet};
use tidegate_model::manifest::{Diagnostic, Document};

use crate::judge::Judged;
use crate::places::defined_resource;
use crate::removals::Removal;
use crate::report::{Report, diagnostics};

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
        let Ok(kind) = Kind::from_crd(&definition.object) else { continue };
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
    document.object.kind() == "CustomResourceDefinition"
        && document.object.api_version().starts_with("apiextensions.k8s.io/")
}

/// Whether `document` is of the kind that `definition` is about, valid or not.
pub(crate) fn is_of_kind(document: &Document<'_>, definition: &Document<'_>) -> bool {
    let spec = definition.object.spec();
    let text = |pointer: &str| spec.and_then(|spec| spec.pointer(pointer)).and_then(|text| text.as_str());
    let gvk = document.object.gvk();
    text("/group") == Some(gvk.group.as_str()) && text("/names/kind") == Some(gvk.kind.as_str())
}
