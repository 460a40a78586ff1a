//! What this server's configuration forbids of what is pushed.
//!
//! Only pushes are asked. What a branch has stays in force when the
//! configuration changes, and its Repository says by a condition what it
//! cannot do: a projection depends on the branch alone.

use memchr::memmem;
use serde_json::Value;
use tidegate_git::{PlainHttp, RemoteUrl};
use tidegate_model::manifest::{Diagnostic, Document, parse_file};
use tidegate_model::{FieldError, FieldErrorReason};

use super::change::Work;

const KIND: &str = "Repository";
const URL: &str = "spec.remote.url";

impl Work {
    /// Of what admission has found good.
    pub fn objections(&self, plain_http: PlainHttp) -> Vec<Diagnostic> {
        let finder = memmem::Finder::new(KIND);
        let files = self.files().filter(|(_, bytes)| finder.find(bytes).is_some());
        let documents = files.flat_map(|(path, bytes)| parse_file(path, bytes).unwrap_or_default());
        documents.filter_map(|document| objection(&document, plain_http)).collect()
    }
}

fn objection(document: &Document<'_>, plain_http: PlainHttp) -> Option<Diagnostic> {
    let object = &document.object;
    if object.kind() != KIND || !object.api_version().starts_with("tidegate.dev/") {
        return None;
    }
    let url = object.spec()?.pointer("/remote/url").and_then(Value::as_str)?;
    let error = RemoteUrl::parse(url, plain_http).err()?;
    Some(document.diagnostic(&FieldError::new(URL, FieldErrorReason::Invalid, error.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, plain_http: PlainHttp, expected: Option<&str>) {
        let documents = parse_file("a.yaml", text.as_bytes()).unwrap();
        let found = objection(&documents[0], plain_http).map(|found| found.to_string());
        assert_eq!(found.is_some(), expected.is_some(), "{text}: {found:?}");
        assert!(found.unwrap_or_default().starts_with(expected.unwrap_or_default()), "{text}");
    }

    #[test]
    fn addresses_that_are_not_fetched_from() {
        let repository = |url: &str| {
            format!(
                "apiVersion: tidegate.dev/v1\nkind: Repository\nmetadata: {{name: a}}\nspec:\n  remote:\n    url: {url}\n"
            )
        };
        let plain = "a.yaml:6: spec.remote.url: http:// to example.com would send everything in the open: use https";
        check(&repository("http://example.com/a"), PlainHttp::LoopbackOnly, Some(plain));
        check(&repository("http://example.com/a"), PlainHttp::Allowed, None);
        check(&repository("http://127.0.0.1/a"), PlainHttp::LoopbackOnly, None);
        check(&repository("https://example.com"), PlainHttp::Allowed, Some("a.yaml:6: spec.remote.url: "));
        check(&repository("git@example.com:a/b.git"), PlainHttp::LoopbackOnly, None);
        let other = repository("http://example.com/a").replace("tidegate.dev", "example.com");
        check(&other, PlainHttp::LoopbackOnly, None);
        check(&repository("x").replace("remote", "other"), PlainHttp::LoopbackOnly, None);
    }
}
