//! Types that discovery does not show any more: gone, or only not there yet?
//!
//! An API server that starts answers discovery before it has read its
//! CustomResourceDefinitions, and one whose aggregated API is away may leave
//! that group out. Whoever believed it would delete every file of these types.

use serde_json::Value;

use super::api::{Api, ApiError};
use super::discovery::Discovered;
use super::path::object;
use crate::claims::{Catalog, GroupVersion, TypeId};

/// Puts back what is missing and still defined, and notes that it failed.
pub async fn keep_defined(api: &Api, before: &Catalog, found: &mut Discovered) {
    found.catalog.keep(before, &found.failed);
    let missing: Vec<_> = before.missing_from(&found.catalog).cloned().collect();
    for id in missing {
        let of = GroupVersion::new(&id.group, &id.version);
        if !id.group.is_empty() && is_defined(api, &id, found.catalog.has_version(&of)).await {
            tracing::warn!(type = %id, "is defined and not served right now; what is known of it stays");
            found.catalog.put_back(before, &id);
            found.failed.push(of);
        }
    }
}

/// `is_version_served`: another type of its group and version is.
async fn is_defined(api: &Api, id: &TypeId, is_version_served: bool) -> bool {
    let definitions = TypeId::new("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    let services = TypeId::new("apiregistration.k8s.io", "v1", "apiservices");
    let definition = api.get(&object(&definitions, None, &id.qualified())).await;
    let service = api.get(&object(&services, None, &format!("{}.{}", id.version, id.group))).await;
    says_defined(&definition, &service, &id.version, is_version_served)
}

/// An answer in doubt is no proof that something is gone.
fn says_defined(
    definition: &Result<Value, ApiError>,
    service: &Result<Value, ApiError>,
    version: &str,
    is_version_served: bool,
) -> bool {
    match (definition, service) {
        (Ok(definition), _) => serves(definition, version),
        (Err(error), _) if !error.is_not_found() => true,
        // Of a server of its own, which shows all of its types or none.
        (_, Ok(service)) => !is_version_served && !service["spec"]["service"].is_null() && !is_ending(service),
        (_, Err(error)) => !error.is_not_found(),
    }
}

fn serves(definition: &Value, version: &str) -> bool {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let versions = list(&definition["spec"]["versions"]);
    let conditions = list(&definition["status"]["conditions"]);
    !is_ending(definition)
        && versions.iter().any(|own| own["name"] == version && own["served"] == true)
        && conditions.iter().any(|condition| condition["type"] == "Established" && condition["status"] == "True")
}

fn is_ending(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

#[cfg(test)]
mod tests {
    use http::{Method, StatusCode};
    use serde_json::json;

    use super::*;

    fn answer(status: u16) -> Result<Value, ApiError> {
        let status = StatusCode::from_u16(status).unwrap();
        Err(ApiError::Refused { method: Method::GET, path: String::new(), status, message: String::new() })
    }

    fn definition(served: bool, established: &str, metadata: Value) -> Result<Value, ApiError> {
        Ok(json!({
            "metadata": metadata, "spec": {"versions": [{"name": "v1", "served": served}]},
            "status": {"conditions": [{"type": "Established", "status": established}]},
        }))
    }

    #[test]
    fn only_a_clear_answer_is_gone() {
        let service = |service: Value| Ok(json!({"metadata": {}, "spec": {"service": service}}));
        let ending = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
        for (definition, service, is_version_served, expected, case) in [
            (definition(true, "True", json!({})), answer(404), false, true, "the server has just started"),
            (definition(false, "True", json!({})), answer(404), false, false, "the version is served no more"),
            (definition(true, "False", json!({})), answer(404), false, false, "never served"),
            (definition(true, "True", ending.clone()), answer(404), false, false, "being deleted"),
            (answer(404), answer(404), false, false, "deleted"),
            (answer(500), answer(404), false, true, "who knows"),
            (answer(403), answer(404), false, true, "we may not know"),
            (answer(404), answer(500), false, true, "who knows"),
            (answer(404), service(json!({"name": "s"})), false, true, "an aggregated API that is away"),
            (answer(404), service(json!({"name": "s"})), true, false, "an aggregated API that dropped a type"),
            (answer(404), service(Value::Null), false, false, "the last definition of its group is gone"),
        ] {
            assert_eq!(says_defined(&definition, &service, "v1", is_version_served), expected, "{case}");
        }
    }
}
