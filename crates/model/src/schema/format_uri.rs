//! Absolute URIs and absolute paths, as Go's `url.ParseRequestURI` takes them.

const HOST_SYMBOLS: &str = "-_.~!$&'()*+,;=:[]<>\"";
const USER_SYMBOLS: &str = "-._:~!$&'()*+,;=%@";

pub(super) fn is_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|b| b.is_ascii_control()) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let Some((scheme, rest)) = split_scheme(text) else { return false };
    let rest = rest.split_once('?').map_or(rest, |(path, _)| path);
    match (scheme, rest.strip_prefix("//")) {
        // `mailto:a@b`: opaque, not looked into.
        (Some(_), None) if !rest.starts_with('/') => true,
        (Some(_), Some(after)) => {
            let (authority, path) = after.split_at(after.find('/').unwrap_or(after.len()));
            is_authority(authority) && escapes_are_whole(path)
        }
        _ => rest.starts_with('/') && escapes_are_whole(rest),
    }
}

/// The scheme, if there is one; `None` where it is missing before its colon.
fn split_scheme(text: &str) -> Option<(Option<&str>, &str)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    match text.find(|c| !is_part(c)) {
        Some(0) if text.starts_with(':') => None,
        Some(end) if text[end..].starts_with(':') && text.starts_with(|c: char| c.is_ascii_alphabetic()) => {
            Some((Some(&text[..end]), &text[end + 1..]))
        }
        _ => Some((None, text)),
    }
}

fn is_authority(authority: &str) -> bool {
    let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    let is_user_char = |c: char| c.is_ascii_alphanumeric() || USER_SYMBOLS.contains(c);
    let is_user = user.is_none_or(|user| user.chars().all(is_user_char) && escapes_are_whole(user));
    is_user && is_host(host)
}

fn is_host(host: &str) -> bool {
    let is_port = |port: &str| port.is_empty() || port.strip_prefix(':').is_some_and(is_digits_or_nothing);
    if let Some(inner) = host.strip_prefix('[') {
        let Some((address, port)) = inner.rsplit_once(']') else { return false };
        let address = address.split_once("%25").map_or(address, |(address, _)| address);
        return is_port(port) && address.parse::<std::net::Ipv6Addr>().is_ok();
    }
    let port = host.rfind(':').map_or("", |at| &host[at..]);
    let is_host_char = |c: char| c.is_ascii_alphanumeric() || !c.is_ascii() || HOST_SYMBOLS.contains(c) || c == '%';
    is_port(port) && host.chars().all(is_host_char) && host_escapes_are_whole(host)
}

/// A host escapes what is not ASCII, and the percent sign.
fn host_escapes_are_whole(host: &str) -> bool {
    let is_allowed = |tail: &str| {
        tail.starts_with("25") || tail.starts_with(|c: char| matches!(c, '8' | '9' | 'a'..='f' | 'A'..='F'))
    };
    escapes_are_whole(host) && host.split('%').skip(1).all(is_allowed)
}

fn escapes_are_whole(text: &str) -> bool {
    let is_hex = |tail: &str| tail.bytes().all(|b| b.is_ascii_hexdigit());
    text.split('%').skip(1).all(|tail| tail.get(..2).is_some_and(is_hex))
}

fn is_digits_or_nothing(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris() {
        for text in [
            "https://example.com/a?b=%zz",
            "/a/b",
            "urn:x:y",
            "*",
            "http:",
            "http://",
            "http://[::1]:80/",
            "/a b",
            "//a",
            "http://a:/",
        ] {
            assert!(is_uri(text), "{text:?} is refused");
        }
        for text in [
            "",
            "a b",
            "example",
            "/a%2",
            "http://[::1",
            "http://a:b",
            ":a",
            "http://a b/",
            "?a",
            "a/b:c",
            "http://%41/",
        ] {
            assert!(!is_uri(text), "{text:?} is accepted");
        }
    }
}
