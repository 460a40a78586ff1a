//! For a kind that does not exist: the one that was probably meant.

use tidegate_model::GroupVersionKind;
use tidegate_model::kinds::{Kind, KindSet};

/// Typing errors that still name the same word.
const EDITS_MAX: usize = 3;

/// A sentence that says what is unknown and what to write instead.
pub(crate) fn unknown_kind(kinds: &KindSet, gvk: &GroupVersionKind) -> String {
    let unknown = format!("there is no kind {} in {}", gvk.kind, gvk.api_version());
    match nearest(kinds, gvk) {
        Some(kind) => {
            let served: Vec<_> = kind.served_versions().map(|version| kind.api_version(version)).collect();
            format!("{unknown}: did you mean {} of {}?", kind.kind, served.join(" or "))
        }
        None => format!("{unknown}: push its CustomResourceDefinition first, or in the same change"),
    }
}

fn nearest<'k>(kinds: &'k KindSet, gvk: &GroupVersionKind) -> Option<&'k Kind> {
    let served = kinds.iter().filter(|kind| kind.served_versions().next().is_some());
    let ranked = served.map(|kind| {
        let elsewhere = usize::from(*kind.resource.group != *gvk.group);
        let edits = edit_distance(&kind.kind.to_lowercase(), &gvk.kind.to_lowercase());
        (edits, elsewhere, &**kind)
    });
    let best = ranked.min_by_key(|(edits, elsewhere, _)| (*edits, *elsewhere))?;
    // A short word is another word after two edits.
    let allowed = EDITS_MAX.min(gvk.kind.chars().count() / 3);
    (best.0 <= allowed).then_some(best.2)
}

/// Levenshtein's; both words are names of at most 63 characters, and a longer
/// one is nobody's typing error.
fn edit_distance(a: &str, b: &str) -> usize {
    const WORD_CHARS_MAX: usize = 63;
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().max(b.len()) > WORD_CHARS_MAX {
        return usize::MAX;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_nearest() {
        let kinds = KindSet::builtin();
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
            (
                "example.com/v1",
                "Widget",
                "there is no kind Widget in example.com/v1: push its CustomResourceDefinition first, or in the same change",
            ),
        ] {
            assert_eq!(unknown_kind(&kinds, &GroupVersionKind::new(api_version, kind)), expected);
        }
    }

    #[test]
    fn edits() {
        for (a, b, expected) in [("", "", 0), ("a", "", 1), ("kitten", "sitting", 3), ("flaw", "lawn", 2)] {
            assert_eq!(edit_distance(a, b), expected, "{a} {b}");
        }
    }
}
