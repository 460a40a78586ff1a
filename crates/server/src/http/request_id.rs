//! One id for a request, in its span, its answer and its errors.

use std::fmt;
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName, HeaderValue};

pub(super) const REQUEST_ID_HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// Enough for a UUID, a ULID or a trace id with a suffix.
const REQUEST_ID_BYTES_MAX: usize = 64;

tokio::task_local! {
    static CURRENT: RequestId;
}

/// In the extensions of every request, and known to the task that answers it.
///
/// Invariant: 1 to 64 of `A-Z a-z 0-9 . _ -`, so it is safe in a log line, a
/// header and JSON.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RequestId(Arc<str>);

impl RequestId {
    /// The caller's id if it is a sane one, else a new one.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let given = headers.get(REQUEST_ID_HEADER).and_then(|value| value.to_str().ok());
        match given.filter(|id| is_sane(id)) {
            Some(id) => Self(id.into()),
            None => Self(uuid::Uuid::new_v4().to_string().into()),
        }
    }

    /// Of the request that this task answers; `None` in a task of its own.
    pub fn current() -> Option<Self> {
        CURRENT.try_with(Clone::clone).ok()
    }

    pub(super) async fn scope<F: Future>(&self, answer: F) -> F::Output {
        CURRENT.scope(self.clone(), answer).await
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn header_value(&self) -> HeaderValue {
        HeaderValue::from_str(&self.0).expect("a sane id is a header value")
    }
}

fn is_sane(id: &str) -> bool {
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=REQUEST_ID_BYTES_MAX).contains(&id.len()) && id.bytes().all(is_safe)
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sane_id_is_kept_and_any_other_replaced() {
        let long = "a".repeat(REQUEST_ID_BYTES_MAX + 1);
        for (given, is_kept) in [
            ("abc-1.2_3", true),
            (&long[1..], true),
            (&long, false),
            ("", false),
            ("a b", false),
            ("a\"b", false),
            ("ü", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(REQUEST_ID_HEADER, HeaderValue::from_bytes(given.as_bytes()).unwrap());
            let id = RequestId::of(&headers);
            assert_eq!(id.as_str() == given, is_kept, "{given}");
            assert!(is_sane(id.as_str()));
        }
        assert_ne!(RequestId::of(&HeaderMap::new()), RequestId::of(&HeaderMap::new()));
    }
}
