//! The name that somebody who mistyped most likely meant.

use strsim::levenshtein;

/// The closest of `known` to `given`, if it is close enough to be a typing
/// error: a third of the letters may differ.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let distances = known.into_iter().map(|name| (levenshtein(&given.to_lowercase(), &name.to_lowercase()), name));
    let (far, name) = distances.min()?;
    let is_close = far <= given.chars().count().max(name.chars().count()).div_ceil(3);
    is_close.then_some(name)
}

/// ": did you mean `x`?", or nothing.
pub fn hint<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(given, known).map_or_else(String::new, |name| format!(": did you mean `{name}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_finds_its_name() {
        let known = ["window.age", "window.events", "listen", "products"];
        for (given, expected) in [
            ("window.agee", Some("window.age")),
            ("Window.Events", Some("window.events")),
            ("lisetn", Some("listen")),
            ("prodcut", Some("products")),
            ("zebra", None),
            ("", None),
        ] {
            assert_eq!(nearest(given, known), expected, "{given}");
        }
        assert_eq!(nearest("a", []), None);
    }
}
