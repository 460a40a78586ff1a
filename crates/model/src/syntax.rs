//! The syntax of names, label keys and label values, as Kubernetes has it.
//!
//! Each check answers with what is expected, so that every caller's message
//! says the same.

/// A label value, and the name part of a label key.
pub const LABEL_PART_BYTES_MAX: usize = 63;
/// A DNS subdomain: object names, the prefix of a label key.
pub const DNS_SUBDOMAIN_BYTES_MAX: usize = 253;
/// A DNS label: namespace names.
pub const DNS_LABEL_BYTES_MAX: usize = 63;

const LABEL_VALUE_EXPECTED: &str = "at most 63 letters, digits, '-', '_' or '.', \
     starting and ending with a letter or digit, or nothing";
const LABEL_KEY_EXPECTED: &str = "an optional DNS prefix and '/', then 1 to 63 letters, digits, '-', '_' or '.', \
     starting and ending with a letter or digit";
const DNS_SUBDOMAIN_EXPECTED: &str = "at most 253 lower case letters, digits, '-' or '.', \
     each part starting and ending with a letter or digit";
const DNS_LABEL_EXPECTED: &str =
    "1 to 63 lower case letters, digits or '-', starting and ending with a letter or digit";

/// `Err` is what was expected.
pub fn check_label_key(text: &str) -> Result<(), &'static str> {
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    let prefix_fits = prefix.is_none_or(|prefix| check_dns_subdomain(prefix).is_ok());
    if prefix_fits && !name.is_empty() && is_label_part(name) { Ok(()) } else { Err(LABEL_KEY_EXPECTED) }
}

/// `Err` is what was expected.
pub fn check_label_value(text: &str) -> Result<(), &'static str> {
    if is_label_part(text) { Ok(()) } else { Err(LABEL_VALUE_EXPECTED) }
}

/// `Err` is what was expected.
pub fn check_dns_subdomain(text: &str) -> Result<(), &'static str> {
    let fits = text.len() <= DNS_SUBDOMAIN_BYTES_MAX && text.split('.').all(is_dns_part);
    if fits { Ok(()) } else { Err(DNS_SUBDOMAIN_EXPECTED) }
}

/// `Err` is what was expected.
pub fn check_dns_label(text: &str) -> Result<(), &'static str> {
    if text.len() <= DNS_LABEL_BYTES_MAX && is_dns_part(text) { Ok(()) } else { Err(DNS_LABEL_EXPECTED) }
}

fn is_label_part(text: &str) -> bool {
    let bytes = text.as_bytes();
    text.len() <= LABEL_PART_BYTES_MAX
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        && bytes.first().is_none_or(u8::is_ascii_alphanumeric)
        && bytes.last().is_none_or(u8::is_ascii_alphanumeric)
}

fn is_dns_part(text: &str) -> bool {
    let is_alphanumeric = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(is_alphanumeric)
        && bytes.last().is_some_and(is_alphanumeric)
        && bytes.iter().all(|b| is_alphanumeric(b) || *b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_keys() {
        let long = "k".repeat(64);
        for (text, ok) in [
            ("app", true),
            ("app.kubernetes.io/name", true),
            ("A_b-c.d", true),
            ("", false),
            ("/app", false),
            ("a/", false),
            ("a/b/c", false),
            ("-a", false),
            ("Upper.Prefix/a", false),
            (&long, false),
            ("schön", false),
        ] {
            assert_eq!(check_label_key(text).is_ok(), ok, "{text}");
        }
    }

    #[test]
    fn label_values() {
        let long = "v".repeat(64);
        for (text, ok) in [("", true), ("a.b_C-1", true), ("-", false), ("a ", false), (&long, false)] {
            assert_eq!(check_label_value(text).is_ok(), ok, "{text}");
        }
    }

    #[test]
    fn dns_names() {
        for (text, subdomain, label) in
            [("a", true, true), ("a.b-c", true, false), ("a..b", false, false), ("A", false, false), ("", false, false)]
        {
            assert_eq!(
                (check_dns_subdomain(text).is_ok(), check_dns_label(text).is_ok()),
                (subdomain, label),
                "{text}"
            );
        }
    }
}
