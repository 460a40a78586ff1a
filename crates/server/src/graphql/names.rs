//! How kinds and fields are named in GraphQL.
//!
//! Invariant: the same kinds in the same order give the same names, and a kind
//! that arrives later never renames one that is there.

use std::collections::HashSet;

/// `desk-lamp` → `desk_lamp`: the nearest GraphQL name.
pub fn field_name(json_key: &str) -> String {
    let mut name: String =
        json_key.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        name.insert(0, '_');
    }
    // GraphQL keeps names that begin with two underscores for itself.
    while name.starts_with("__") {
        name.remove(0);
    }
    if name == "_" { "field".into() } else { name }
}

/// `HTTPRoute` → `httpRoute`, `Product` → `product`.
pub fn lower_camel(kind: &str) -> String {
    let chars: Vec<char> = kind.chars().collect();
    let upper_run = chars.iter().take_while(|c| c.is_ascii_uppercase()).count();
    // The last capital of an initialism begins the next word, if one follows.
    let lowered = if upper_run > 1 && upper_run < chars.len() { upper_run - 1 } else { upper_run };
    chars.iter().enumerate().map(|(at, c)| if at < lowered { c.to_ascii_lowercase() } else { *c }).collect()
}

pub fn upper_camel(name: &str) -> String {
    let mut chars = name.chars();
    chars.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(chars).collect()
}

/// The plural as a word in the kind's own capitals: `HTTPRoute` and
/// `httproutes` → `HTTPRoutes`; a plural that does not begin with the kind
/// (`policies`) is taken as it is.
pub fn plural_word(kind: &str, plural: &str) -> String {
    let plural = field_name(plural);
    let common = kind.chars().zip(plural.chars()).take_while(|(a, b)| a.eq_ignore_ascii_case(b)).count();
    kind.chars().take(common).chain(plural.chars().skip(common)).collect()
}

/// A group as a word: `gateway.networking.k8s.io` → `GatewayNetworkingK8sIo`.
pub fn group_word(group: &str) -> String {
    group.split(['.', '-']).map(upper_camel).collect()
}

/// Names that are taken; a taken one is made free by underscores.
#[derive(Default)]
pub struct Taken(HashSet<String>);

impl Taken {
    pub fn claim(&mut self, mut name: String) -> String {
        while !self.0.insert(name.clone()) {
            name.push('_');
        }
        name
    }

    pub fn is_free(&self, name: &str) -> bool {
        !self.0.contains(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (key, expected) in [
            ("title", "title"),
            ("desk-lamp", "desk_lamp"),
            ("$ref", "_ref"),
            ("9lives", "_9lives"),
            ("__type", "_type"),
            ("", "field"),
        ] {
            assert_eq!(field_name(key), expected);
        }
        for (kind, expected) in
            [("Product", "product"), ("HTTPRoute", "httpRoute"), ("TLS", "tls"), ("GRPCRoute", "grpcRoute"), ("A", "a")]
        {
            assert_eq!(lower_camel(kind), expected);
        }
        for (kind, plural, expected) in [
            ("Product", "products", "Products"),
            ("HTTPRoute", "httproutes", "HTTPRoutes"),
            ("CategoryTaxonomy", "categorytaxonomies", "CategoryTaxonomies"),
            ("Mouse", "mice", "Mice"),
        ] {
            assert_eq!(plural_word(kind, plural), expected);
        }
        assert_eq!(group_word("gateway.networking.k8s.io"), "GatewayNetworkingK8sIo");
    }
}
