//! What speaks against a push that admission has found good: what this
//! server's configuration forbids, and a repository that is turned to a place
//! that is not there.
//!
//! Only pushes are asked. What a branch has stays in force when the
//! configuration changes, and its Repository says by a condition what it
//! cannot do: a projection depends on the branch alone.

use memchr::memmem;
use serde_json::Value;
use tidegate_admission::Rules;
use tidegate_git::{PlainHttp, RemoteUrl};
use tidegate_model::manifest::{Diagnostic, Document, parse_file};
use tidegate_model::{FieldError, FieldErrorReason};

use super::change::Work;
use super::hosting::{Hosted, Hosting};
use super::id::RepositoryId;
use super::mark::Tally;
use super::projector::ProjectorError;

const KIND: &str = "Repository";
const URL: &str = "spec.remote.url";

impl Work {
    /// Of a push to a repository with these rules.
    pub async fn objections(
        &self,
        hosting: &Hosting,
        rules: &Rules,
        plain_http: PlainHttp,
    ) -> Result<Vec<Diagnostic>, ProjectorError> {
        let finder = memmem::Finder::new(KIND);
        let files = self.files().filter(|(_, bytes)| finder.find(bytes).is_some());
        let documents = files.flat_map(|(path, bytes)| parse_file(path, bytes).unwrap_or_default());
        let mut objections = Vec::new();
        for document in documents.filter(is_repository) {
            objections.extend(unwanted_address(&document, plain_http));
            objections.extend(nowhere(hosting, rules, &document).await?);
        }
        Ok(objections)
    }
}

fn is_repository(document: &Document<'_>) -> bool {
    document.object.kind() == KIND && document.object.api_version().starts_with("tidegate.dev/")
}

/// A branch or a folder that is not there, in place of one whose objects are
/// in force: they would all go, most often for a slip of the keyboard.
async fn nowhere(
    hosting: &Hosting,
    rules: &Rules,
    document: &Document<'_>,
) -> Result<Option<Diagnostic>, ProjectorError> {
    let object = &document.object;
    let namespace = object.namespace().unwrap_or(&rules.default_namespace);
    let Some(id) = RepositoryId::new(namespace, object.name()) else { return Ok(None) };
    let Some(now) = hosting.as_stored(&id)? else { return Ok(None) };
    let in_force = Tally::read(&hosting.view(), &id)?.map_or(0, |tally| tally.objects);
    let next = hosting.describe(&id, Some(object));
    let is_same = (&now.branch, &now.path) == (&next.branch, &next.path);
    // One that is elsewhere keeps what it has until it finds something.
    if in_force == 0 || is_same || next.remote.is_some() {
        return Ok(None);
    }
    let Hosted { git, branch, path, .. } = next;
    let (field, what, remedy) = if git.head(&branch).await?.is_none() {
        ("spec.branch", format!("has no branch `{branch}`"), "push the branch first")
    } else if !path.is_empty() && !git.has_folder(&branch, &path).await? {
        ("spec.path", format!("has no folder `{path}` on {branch}"), "push it first")
    } else {
        return Ok(None);
    };
    let message = format!("repository {id} {what}, and its {in_force} objects in force would go: {remedy}");
    Ok(Some(document.diagnostic(&FieldError::new(field, FieldErrorReason::Invalid, message))))
}

fn unwanted_address(document: &Document<'_>, plain_http: PlainHttp) -> Option<Diagnostic> {
    let object = &document.object;
    let url = object.spec()?.pointer("/remote/url").and_then(Value::as_str)?;
    let error = RemoteUrl::parse(url, plain_http).err()?;
    Some(document.diagnostic(&FieldError::new(URL, FieldErrorReason::Invalid, error.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, plain_http: PlainHttp, expected: Option<&str>) {
        let documents = parse_file("a.yaml", text.as_bytes()).unwrap();
        let found = Some(&documents[0])
            .filter(|found| is_repository(found))
            .and_then(|found| unwanted_address(found, plain_http))
            .map(|found| found.to_string());
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
