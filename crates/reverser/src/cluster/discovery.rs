//! What the API server serves, asked in two requests where it can.

use serde_json::Value;

use super::api::{Api, ApiError};
use crate::claims::{Catalog, GroupVersion, ServedType, TypeId};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                          application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

/// The catalogue, and the versions of groups that did not answer: each may
/// be another server's.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Discovered {
    pub catalog: Catalog,
    pub failed: Vec<GroupVersion>,
}

pub async fn discover(api: &Api) -> Result<Discovered, ApiError> {
    let (core, groups) = (api.get_as("/api", AGGREGATED).await?, api.get_as("/apis", AGGREGATED).await?);
    if core["kind"] == "APIGroupDiscoveryList" && groups["kind"] == "APIGroupDiscoveryList" {
        return Ok(aggregated(&[core, groups]));
    }
    by_group(api, &core, &groups).await
}

/// Versions come in the server's order of preference.
fn aggregated(answers: &[Value]) -> Discovered {
    let (mut types, mut failed) = (Vec::new(), Vec::new());
    for group in answers.iter().flat_map(|answer| list(&answer["items"])) {
        let name = text(&group["metadata"], "name");
        for version in list(&group["versions"]) {
            let version_name = text(version, "version");
            if version["freshness"] == "Stale" {
                failed.push(GroupVersion::new(name, version_name));
            }
            types.extend(list(&version["resources"]).iter().map(|resource| ServedType {
                id: TypeId::new(name, version_name, text(resource, "resource")),
                kind: text(&resource["responseKind"], "kind").to_owned(),
                namespaced: resource["scope"] == "Namespaced",
                watchable: watchable(&resource["verbs"]),
            }));
        }
    }
    Discovered { catalog: Catalog::new(types), failed }
}

async fn by_group(api: &Api, core: &Value, groups: &Value) -> Result<Discovered, ApiError> {
    let (mut types, mut failed) = (Vec::new(), Vec::new());
    for version in list(&core["versions"]).iter().filter_map(Value::as_str) {
        types.extend(resources("", version, &api.get(&format!("/api/{version}")).await?));
    }
    for group in list(&groups["groups"]) {
        let name = text(group, "name");
        let preferred = text(&group["preferredVersion"], "version");
        let mut versions: Vec<_> = list(&group["versions"]).iter().map(|version| text(version, "version")).collect();
        versions.sort_by_key(|version| *version != preferred);
        for version in versions {
            match api.get(&format!("/apis/{name}/{version}")).await {
                Ok(answer) => types.extend(resources(name, version, &answer)),
                Err(error) => {
                    tracing::warn!(group = name, version, error = error.told(), "this API did not answer discovery");
                    failed.push(GroupVersion::new(name, version));
                }
            }
        }
    }
    Ok(Discovered { catalog: Catalog::new(types), failed })
}

fn resources<'a>(group: &'a str, version: &'a str, answer: &'a Value) -> impl Iterator<Item = ServedType> + 'a {
    let resources = list(&answer["resources"]).iter().filter(|resource| !text(resource, "name").contains('/'));
    resources.map(move |resource| ServedType {
        id: TypeId::new(group, version, text(resource, "name")),
        kind: text(resource, "kind").to_owned(),
        namespaced: resource["namespaced"] == true,
        watchable: watchable(&resource["verbs"]),
    })
}

fn watchable(verbs: &Value) -> bool {
    ["list", "watch"].iter().all(|verb| list(verbs).iter().any(|own| own == verb))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_stale_group_has_failed() {
        let resource = |plural: &str| json!({"resource": plural, "scope": "Namespaced", "responseKind": {"kind": "X"}, "verbs": ["list", "watch"]});
        let answer = json!({"items": [
            {"metadata": {"name": "example.com"}, "versions": [
                {"version": "v2", "resources": [resource("widgets")]},
                {"version": "v1", "resources": [resource("widgets")]},
            ]},
            {"metadata": {"name": "metrics.k8s.io"}, "versions": [{"version": "v1", "freshness": "Stale"}]},
        ]});
        let found = aggregated(&[answer]);
        assert_eq!(found.failed, [GroupVersion::new("metrics.k8s.io", "v1")]);
        let versions = found.catalog.resources().next().unwrap();
        assert_eq!(versions[0].id.version, "v2");
        assert!(versions[0].watchable);
    }
}
