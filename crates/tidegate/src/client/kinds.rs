//! The kind that somebody meant by a word.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use anyhow::{Result, bail};
use serde::Deserialize;
use serde_json::json;
use tidegate_client::Client;

use crate::nearest::hint;

const QUERY: &str = "{ kinds { apiVersion kind group plural singular shortNames namespaced hasStatus \
                     columns { name type jsonPath priority } } }";

/// One served version of a kind.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KindInfo {
    pub api_version: String,
    pub kind: String,
    pub group: String,
    pub plural: String,
    pub singular: String,
    pub short_names: Vec<String>,
    pub namespaced: bool,
    pub has_status: bool,
    pub columns: Vec<Column>,
}

#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Column {
    pub name: String,
    #[serde(rename = "type")]
    pub column_type: String,
    pub json_path: String,
    pub priority: i64,
}

impl KindInfo {
    /// `products.catalog.gitstore.dev`; the core group has no dot.
    pub fn resource(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    fn version(&self) -> &str {
        self.api_version.rsplit_once('/').map_or(&*self.api_version, |(_, version)| version)
    }

    fn is_called(&self, word: &str) -> bool {
        let names = [&self.plural, &self.singular, &self.kind];
        names.into_iter().chain(&self.short_names).any(|name| name.eq_ignore_ascii_case(word))
    }
}

pub async fn fetch(client: &Client) -> Result<Vec<KindInfo>> {
    #[derive(Deserialize)]
    struct Data {
        kinds: Vec<KindInfo>,
    }
    Ok(client.query::<Data>(QUERY, json!({})).await?.kinds)
}

/// `word` is a plural, singular, short name or kind, alone, with its group
/// (`products.catalog.gitstore.dev`), or with version and group.
pub fn resolve(kinds: &[KindInfo], word: &str) -> Result<KindInfo> {
    let matching: Vec<&KindInfo> = kinds.iter().filter(|kind| is_meant(kind, word)).collect();
    let mut resources: BTreeMap<String, &KindInfo> = BTreeMap::new();
    for kind in matching {
        let preferred = resources.entry(kind.resource()).or_insert(kind);
        if priority(kind.version()) > priority(preferred.version()) {
            *preferred = kind;
        }
    }
    let candidates: Vec<String> = resources.keys().map(|resource| format!("`{resource}`")).collect();
    match resources.into_values().next() {
        Some(kind) if candidates.len() == 1 => Ok(kind.clone()),
        Some(_) => bail!("`{word}` is ambiguous: name one of {}", candidates.join(", ")),
        None => {
            let known = kinds.iter().flat_map(|kind| [&*kind.plural, &*kind.singular]);
            bail!(
                "the server knows no kind `{word}`{}\n  next: `tidegate kinds` lists what there is",
                hint(word, known)
            )
        }
    }
}

fn is_meant(kind: &KindInfo, word: &str) -> bool {
    if kind.is_called(word) {
        return true;
    }
    let Some((name, rest)) = word.split_once('.') else { return false };
    let versioned = format!("{}.{}", kind.version(), kind.group);
    kind.is_called(name) && (rest == kind.group || rest == versioned.trim_end_matches('.'))
}

/// As Kubernetes orders versions: stable, beta, alpha, anything else; the
/// higher number first.
fn priority(version: &str) -> (u8, u64, u64, Reverse<&str>) {
    let parsed = version.strip_prefix('v').and_then(|rest| {
        let (major, rest) = leading_number(rest)?;
        match rest {
            "" => Some((3, major, 0)),
            _ => {
                let (stage, rest) = rest
                    .strip_prefix("beta")
                    .map(|rest| (2, rest))
                    .or_else(|| rest.strip_prefix("alpha").map(|rest| (1, rest)))?;
                let (minor, rest) = leading_number(rest)?;
                rest.is_empty().then_some((stage, major, minor))
            }
        }
    });
    let (stage, major, minor) = parsed.unwrap_or_default();
    (stage, major, minor, Reverse(version))
}

fn leading_number(text: &str) -> Option<(u64, &str)> {
    let (digits, rest) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    Some((digits.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(api_version: &str, kind: &str, plural: &str, short: &[&str]) -> KindInfo {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        KindInfo {
            api_version: api_version.into(),
            kind: kind.into(),
            group: group.into(),
            plural: plural.into(),
            singular: kind.to_lowercase(),
            short_names: short.iter().map(ToString::to_string).collect(),
            namespaced: true,
            has_status: true,
            columns: Vec::new(),
        }
    }

    fn resolved(word: &str) -> Result<String, String> {
        let kinds = [
            kind("v1", "Namespace", "namespaces", &["ns"]),
            kind("catalog.gitstore.dev/v1beta1", "Product", "products", &["prod"]),
            kind("shop.example.com/v1alpha1", "Order", "orders", &[]),
            kind("shop.example.com/v1", "Order", "orders", &[]),
            kind("shop.example.com/v2beta1", "Order", "orders", &[]),
            kind("one.example.com/v1", "Widget", "widgets", &["w"]),
            kind("two.example.com/v1", "Widget", "widgets", &["w"]),
        ];
        resolve(&kinds, word)
            .map(|kind| format!("{} {}", kind.api_version, kind.kind))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn words_for_a_kind() {
        for (word, expected) in [
            ("products", "catalog.gitstore.dev/v1beta1 Product"),
            ("product", "catalog.gitstore.dev/v1beta1 Product"),
            ("Product", "catalog.gitstore.dev/v1beta1 Product"),
            ("prod", "catalog.gitstore.dev/v1beta1 Product"),
            ("products.catalog.gitstore.dev", "catalog.gitstore.dev/v1beta1 Product"),
            ("products.v1beta1.catalog.gitstore.dev", "catalog.gitstore.dev/v1beta1 Product"),
            ("ns", "v1 Namespace"),
            ("namespaces.v1", "v1 Namespace"),
            ("orders", "shop.example.com/v1 Order"),
            ("orders.v1alpha1.shop.example.com", "shop.example.com/v1alpha1 Order"),
            ("w.two.example.com", "two.example.com/v1 Widget"),
        ] {
            assert_eq!(resolved(word).as_deref(), Ok(expected), "{word}");
        }
    }

    #[test]
    fn refusals_name_what_was_meant() {
        for (word, expected) in [
            ("widgets", "`widgets` is ambiguous: name one of `widgets.one.example.com`, `widgets.two.example.com`"),
            ("prodcuts", "did you mean `products`?"),
            ("zebra", "the server knows no kind `zebra`\n"),
            ("products.example.com", "the server knows no kind"),
            ("", "the server knows no kind"),
        ] {
            let refusal = resolved(word).unwrap_err();
            assert!(refusal.contains(expected), "{word}: {refusal}");
        }
    }

    #[test]
    fn versions_in_their_order() {
        let ordered = ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10"];
        for pair in ordered.windows(2) {
            assert!(priority(pair[0]) > priority(pair[1]), "{pair:?}");
        }
    }
}
