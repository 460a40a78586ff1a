//! For a kind that does not exist: what to write instead.

use strsim::levenshtein;

use super::{Kind, KindSet};
use crate::GroupVersionKind;

/// Typing errors that still name the same word.
const EDITS_MAX: usize = 3;
/// No kind has a longer name; beyond it, nobody meant one.
const WORD_BYTES_MAX: usize = 63;

/// The sentence for whoever asked for it: what is unknown, and the kind that
/// was probably meant. If there is none, `define` says how to make it one; but
/// nobody adds to the core group.
pub fn unknown_kind(kinds: &KindSet, gvk: &GroupVersionKind, define: &str) -> String {
    let unknown = format!("there is no kind {} in {}", gvk.kind, gvk.api_version());
    match nearest(kinds, gvk) {
        Some(kind) => {
            let served: Vec<_> = kind.served_versions().map(|version| kind.api_version(version)).collect();
            format!("{unknown}: did you mean {} of {}?", kind.kind, served.join(" or "))
        }
        None if gvk.group.is_empty() => format!("{unknown}: {}", core_alone(kinds)),
        None => format!("{unknown}: {define}"),
    }
}

fn core_alone(kinds: &KindSet) -> String {
    let mut core: Vec<&str> =
        kinds.iter().filter(|kind| kind.resource.group.is_empty()).map(|kind| &*kind.kind).collect();
    core.sort_unstable();
    format!("the core group has {} and takes no others; define the kind in a group of your own", core.join(", "))
}

fn nearest<'k>(kinds: &'k KindSet, gvk: &GroupVersionKind) -> Option<&'k Kind> {
    if gvk.kind.len() > WORD_BYTES_MAX {
        return None;
    }
    let served = kinds.iter().filter(|kind| kind.served_versions().next().is_some());
    let ranked = served.map(|kind| {
        let elsewhere = usize::from(*kind.resource.group != *gvk.group);
        let edits = levenshtein(&kind.kind.to_lowercase(), &gvk.kind.to_lowercase());
        (edits, elsewhere, &**kind)
    });
    let best = ranked.min_by_key(|(edits, elsewhere, _)| (*edits, *elsewhere))?;
    // A short word is another word after two edits.
    let allowed = EDITS_MAX.min(gvk.kind.chars().count() / 3);
    (best.0 <= allowed).then_some(best.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_nearest() {
        let kinds = KindSet::builtin();
        let long = "x".repeat(WORD_BYTES_MAX + 1);
        for (api_version, kind, expected) in [
            (
                "catalog.gitstore.dev/v1beta1",
                "Prodct",
                "there is no kind Prodct in catalog.gitstore.dev/v1beta1: did you mean Product of catalog.gitstore.dev/v1beta1?",
            ),
            (
                "catalog.gitstore.dev/v1",
                "Product",
                "there is no kind Product in catalog.gitstore.dev/v1: did you mean Product of catalog.gitstore.dev/v1beta1?",
            ),
            ("v2", "namespace", "there is no kind namespace in v2: did you mean Namespace of v1?"),
            ("example.com/v1", "Widget", "there is no kind Widget in example.com/v1: define it"),
            (
                "v1",
                "ConfigMap",
                "there is no kind ConfigMap in v1: the core group has Namespace, ServiceAccount and takes no others; \
                 define the kind in a group of your own",
            ),
            ("example.com/v1", &long, &format!("there is no kind {long} in example.com/v1: define it")),
        ] {
            assert_eq!(unknown_kind(&kinds, &GroupVersionKind::new(api_version, kind), "define it"), expected);
        }
    }
}
