//! Labels apart from their object, so that a selector is evaluated without
//! decoding it.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Sorted pairs, shared; the empty set allocates nothing.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Labels(Option<Arc<[Pair]>>);

type Pair = (Box<str>, Box<str>);

impl Labels {
    pub fn get(&self, key: &str) -> Option<&str> {
        let pairs = self.0.as_deref()?;
        let at = pairs.binary_search_by(|(k, _)| (**k).cmp(key)).ok()?;
        Some(&pairs[at].1)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().flat_map(|pairs| pairs.iter()).map(|(k, v)| (&**k, &**v))
    }

    pub fn len(&self) -> usize {
        self.0.as_deref().map_or(0, <[_]>::len)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

impl<K: Into<Box<str>>, V: Into<Box<str>>> FromIterator<(K, V)> for Labels {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let sorted: BTreeMap<Box<str>, Box<str>> = pairs.into_iter().map(|(k, v)| (k.into(), v.into())).collect();
        if sorted.is_empty() { Self(None) } else { Self(Some(sorted.into_iter().collect())) }
    }
}
