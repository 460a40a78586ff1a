//! Get and list, typed and generic.

use serde_json::{Value, json};

use crate::support::TestServer;

#[tokio::test(flavor = "multi_thread")]
async fn a_new_server_has_its_namespaces() {
    let server = TestServer::start().await;
    let data = server
        .client
        .data("{ namespaces { nodes { metadata { name } } remainingCount } whoami { user groups } }", json!({}))
        .await;
    assert_eq!(
        data["namespaces"]["nodes"],
        json!([{"metadata": {"name": "default"}}, {"metadata": {"name": "system"}}])
    );
    assert_eq!(data["whoami"]["user"], "system:admin");
}

#[tokio::test(flavor = "multi_thread")]
async fn selections_are_applied_as_graphql_says() {
    let server = TestServer::with_widgets().await;
    server.widget("a", "{tier: gold}").await;
    let query = r#"
        query Q($with: Boolean!, $name: String = "a") {
          one: widget(namespace: "default", name: $name) { ...Names size: spec { size } spec { size } missing: status { note } }
          one: widget(namespace: "default", name: $name) { metadata { labels } }
          skipped: widget(namespace: "default", name: "a") @skip(if: true) { kind }
          included: widget(namespace: "default", name: "a") @include(if: $with) { __typename kind }
          none: widget(namespace: "default", name: "b") { kind }
          resource(apiVersion: "example.com/v1", kind: "Widget", namespace: "default", name: "a") {
            __typename apiVersion kind namespace name generation object
          }
          __typename
        }
        fragment Names on Widget { metadata { name namespace generation } ... on Widget { apiVersion } }
    "#;
    let mut data = server.client.data(query, json!({"with": true})).await;
    let object = data["resource"]["object"].take();
    let expected = json!({
        "one": {
            "metadata": {"name": "a", "namespace": "default", "generation": 1, "labels": {"tier": "gold"}},
            "apiVersion": "example.com/v1", "size": {"size": 1}, "spec": {"size": 1}, "missing": null,
        },
        "included": {"__typename": "Widget", "kind": "Widget"},
        "none": null,
        "resource": {"__typename": "Resource", "apiVersion": "example.com/v1", "kind": "Widget", "namespace": "default", "name": "a", "generation": 1, "object": null},
        "__typename": "Query",
    });
    assert_eq!(data, expected);
    assert_eq!(object["spec"], json!({"size": 1}));
    assert_eq!(object["metadata"]["annotations"]["tidegate.dev/source-path"], "a.yaml");
    assert_eq!(object["metadata"]["annotations"]["tidegate.dev/source-commit"], "0123abcd");
    assert_eq!(object["metadata"]["annotations"]["tidegate.dev/source-author"], "Ada <ada@example.com>");
}

const PAGE: &str = r#"query($first: Int, $after: String, $labels: String, $fields: String) {
    widgets(namespace: "default", first: $first, after: $after, labelSelector: $labels, fieldSelector: $fields) {
      resourceVersion remainingCount nodes { metadata { name } spec { size } } pageInfo { hasNextPage endCursor }
    } }"#;

fn names(page: &Value) -> Vec<&str> {
    page["widgets"]["nodes"].as_array().unwrap().iter().map(|node| node["metadata"]["name"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_of_a_list_is_of_one_version() {
    let server = TestServer::with_widgets().await;
    server.bulk(0..250, 1).await;
    let mut page = server.client.data(PAGE, json!({"first": 100})).await;
    let version = page["widgets"]["resourceVersion"].clone();
    assert_eq!(page["widgets"]["remainingCount"], 150);
    let mut seen: Vec<String> = names(&page).iter().map(ToString::to_string).collect();
    while page["widgets"]["pageInfo"]["hasNextPage"] == true {
        // Changed under the reader's feet: it must not notice.
        server.bulk(0..250, 2).await;
        server.bulk(250..260, 2).await;
        page = server.client.data(PAGE, json!({"first": 100, "after": page["widgets"]["pageInfo"]["endCursor"]})).await;
        assert_eq!(page["widgets"]["resourceVersion"], version);
        assert!(page["widgets"]["nodes"].as_array().unwrap().iter().all(|node| node["spec"]["size"] == 1));
        seen.extend(names(&page).iter().map(ToString::to_string));
    }
    let expected: Vec<String> = (0..250).map(|at| format!("w{at:06}")).collect();
    assert_eq!(seen, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_bounded_in_objects_and_bytes() {
    let server = TestServer::start_with(|options| {
        options.graphql.page_objects_max = 20;
        options.graphql.page_bytes_max = 2_000;
    })
    .await;
    server.apply("crd.yaml", crate::support::WIDGETS).await;
    server.bulk(0..30, 1).await;
    let page = server.client.data(PAGE, json!({})).await;
    let count = names(&page).len();
    assert!((1..20).contains(&count), "{count}");
    assert_eq!(page["widgets"]["pageInfo"]["hasNextPage"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn selectors_and_bad_arguments() {
    let server = TestServer::with_widgets().await;
    for (name, labels) in [("a", "{tier: gold}"), ("b", "{tier: silver, draft: \"\"}"), ("c", "{}")] {
        server.widget(name, labels).await;
    }
    for (variables, expected) in [
        (json!({"labels": "tier=gold"}), &["a"][..]),
        (json!({"labels": "tier in (gold, silver), !draft"}), &["a"]),
        (json!({"labels": "!tier"}), &["c"]),
        (json!({"fields": "metadata.name=b"}), &["b"]),
        (json!({"fields": "metadata.name!=b"}), &["a", "c"]),
        (json!({"labels": "tier", "fields": "metadata.name!=a"}), &["b"]),
        (json!({"fields": "metadata.namespace=default"}), &["a", "b", "c"]),
    ] {
        let page = server.client.data(PAGE, variables.clone()).await;
        assert_eq!(names(&page), expected, "{variables}");
    }
    for (variables, code) in [
        (json!({"labels": "tier in gold"}), "BAD_REQUEST"),
        (json!({"fields": "spec.size=1"}), "BAD_REQUEST"),
        (json!({"fields": "metadata.namespace=other"}), "BAD_REQUEST"),
        (json!({"first": 0}), "BAD_REQUEST"),
        (json!({"first": -1}), "BAD_REQUEST"),
        (json!({"after": "nonsense"}), "BAD_REQUEST"),
        (json!({"labels": 7}), "BAD_REQUEST"),
    ] {
        assert_eq!(server.client.code(PAGE, variables.clone()).await, code, "{variables}");
    }
    for (query, code) in [
        ("{ resources(apiVersion: \"example.com/v1\", kind: \"Nothing\") { resourceVersion } }", "KIND_NOT_FOUND"),
        ("{ resources(apiVersion: \"example.com/v9\", kind: \"Widget\") { resourceVersion } }", "KIND_NOT_FOUND"),
        ("{ resource(apiVersion: \"example.com/v1\", kind: \"Widget\", name: \"a\") { name } }", "BAD_REQUEST"),
        (
            "{ resource(apiVersion: \"v1\", kind: \"Namespace\", namespace: \"x\", name: \"a\") { name } }",
            "BAD_REQUEST",
        ),
        ("{ nothing }", "BAD_REQUEST"),
        ("{ widgets { ", "BAD_REQUEST"),
        ("query($a: String!) { widget(namespace: \"default\", name: $a) { kind } }", "BAD_REQUEST"),
        ("{ widgets { resourceVersion } __schema { queryType { name } } }", "BAD_REQUEST"),
    ] {
        let code_found = server.client.error(query, json!({})).await["extensions"]["code"]
            .as_str()
            .unwrap_or("BAD_REQUEST")
            .to_owned();
        assert_eq!(code_found, code, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_field_is_null_beside_good_ones() {
    let server = TestServer::with_widgets().await;
    let answer = server
        .client
        .send(
            "{ good: whoami { user } bad: resource(apiVersion: \"x/v1\", kind: \"Y\", name: \"z\") { name } }",
            json!({}),
        )
        .await;
    assert_eq!(answer["data"], json!({"good": {"user": "system:admin"}, "bad": null}));
    assert_eq!(answer["errors"][0]["path"], json!(["bad"]));
    let answer = server
        .client
        .send("{ bad: resources(apiVersion: \"x/v1\", kind: \"Y\") { resourceVersion } }", json!({}))
        .await;
    assert_eq!(answer["data"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_served_version_is_the_same_object() {
    let server = TestServer::start().await;
    let two = crate::support::WIDGETS.replace("  - name: v1\n", "  - name: v1beta1\n    served: true\n    storage: false\n    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}\n  - name: v1\n");
    server.apply("crd.yaml", &two).await;
    server.widget("a", "{}").await;
    let query = "query($v: String!) { resource(apiVersion: $v, kind: \"Widget\", namespace: \"default\", name: \"a\") { apiVersion uid object } }";
    let v1 = server.client.data(query, json!({"v": "example.com/v1"})).await;
    let beta = server.client.data(query, json!({"v": "example.com/v1beta1"})).await;
    assert_eq!(v1["resource"]["uid"], beta["resource"]["uid"]);
    assert_eq!(beta["resource"]["object"]["apiVersion"], "example.com/v1beta1");
    assert_eq!(beta["resource"]["object"]["spec"], v1["resource"]["object"]["spec"]);
}
