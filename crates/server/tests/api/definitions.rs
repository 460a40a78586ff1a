//! Kinds that come, change and go while the server runs.

use serde_json::{Value, json};
use tidegate_model::{GroupResource, ObjectKey};

use crate::support::{TestServer, WIDGETS};

fn crd_key(name: &str) -> ObjectKey {
    ObjectKey::new(GroupResource::new("apiextensions.k8s.io", "customresourcedefinitions"), None, name)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_and_its_objects_in_one_change() {
    let server = TestServer::start().await;
    let text = format!(
        "{WIDGETS}---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: shop}}\n---\napiVersion: example.com/v1\nkind: Widget\nmetadata: {{name: a, namespace: shop}}\nspec: {{size: 1, unknown: gone}}\n"
    );
    server.project(&[("all.yaml", &text)], &[]).await.unwrap();
    let data =
        server.client.data("{ widgets { nodes { metadata { namespace name } spec { size } } } }", json!({})).await;
    assert_eq!(
        data["widgets"]["nodes"],
        json!([{"metadata": {"namespace": "shop", "name": "a"}, "spec": {"size": 1}}])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_schema_is_swapped_while_subscriptions_go_on() {
    let server = TestServer::with_widgets().await;
    let start =
        server.client.data("{ widgets { resourceVersion } }", json!({})).await["widgets"]["resourceVersion"].take();
    let query = "subscription($rv: String) { watchWidgets(resourceVersion: $rv) { type name } }";
    let mut socket = server.client.subscribe(query, json!({"rv": start})).await;
    server.widget("a", "{}").await;
    assert_eq!(socket.event().await["name"], "a");
    assert_eq!(server.client.code("{ widgets { nodes { spec { weight } } } }", json!({})).await, "BAD_REQUEST");

    server
        .project(
            &[(
                "crd.yaml",
                &WIDGETS
                    .replace("color: {type: string}", "color: {type: string}\n              weight: {type: number}"),
            )],
            &[],
        )
        .await
        .unwrap();
    assert_eq!(server.client.code("{ widgets { nodes { spec { weight } } } }", json!({})).await, "OK");
    server.widget("b", "{}").await;
    assert_eq!(socket.event().await["name"], "b");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_that_would_strand_objects_is_refused_with_their_number() {
    let server = TestServer::with_widgets().await;
    server.widget("a", "{}").await;
    server.widget("b", "{}").await;
    let cluster_scoped = WIDGETS.replace("scope: Namespaced", "scope: Cluster");
    let refused = server.project(&[("crd.yaml", &cluster_scoped)], &[]).await.unwrap_err();
    assert!(refused.contains('2'), "{refused}");
    let refused = server.project(&[], &[("crd.yaml", crd_key("widgets.example.com"))]).await.unwrap_err();
    assert!(refused.contains('2'), "{refused}");
    assert_eq!(server.client.code("{ widgets { resourceVersion } }", json!({})).await, "OK");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_that_goes_ends_its_watches_and_its_fields() {
    let server = TestServer::start().await;
    server.project(&[("crd.yaml", WIDGETS)], &[]).await.unwrap();
    let mut socket =
        server.client.subscribe("subscription { watchWidgets(sendInitialEvents: true) { type } }", json!({})).await;
    assert_eq!(socket.event().await["type"], "BOOKMARK");
    server.project(&[], &[("crd.yaml", crd_key("widgets.example.com"))]).await.unwrap();
    assert_eq!(socket.ending().await, "KIND_NOT_FOUND");
    assert_eq!(server.client.code("{ widgets { resourceVersion } }", json!({})).await, "BAD_REQUEST");
    let found = server.client.data("{ kinds { plural } }", json!({})).await;
    assert!(!found["kinds"].as_array().unwrap().contains(&json!({"plural": "widgets"})), "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_groups_may_have_one_kind() {
    let server = TestServer::with_widgets().await;
    server.apply("other.yaml", &WIDGETS.replace("example.com", "other.org")).await;
    let data =
        server.client.data("{ widgets { resourceVersion } otherOrgWidgets { nodes { kind } } }", json!({})).await;
    assert_eq!(data["otherOrgWidgets"]["nodes"], Value::Array(Vec::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_are_none_in_graphql_take_nothing_away() {
    let server = TestServer::start().await;
    let odd = "a-b: {type: string}\n              a_b: {type: string}\n              é: {type: string}\n              日: {type: string}\n              __typename: {type: string}";
    server.apply("crd.yaml", &WIDGETS.replace("color: {type: string}", odd)).await;
    server
        .apply(
            "a.yaml",
            "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\nspec: {a-b: dash, a_b: underscore, é: e}\n",
        )
        .await;
    let data = server
        .client
        .data("{ widget(namespace: \"default\", name: \"a\") { spec { a_b a_b_ field } } }", json!({}))
        .await;
    assert_eq!(data["widget"]["spec"], json!({"a_b": "underscore", "a_b_": "dash", "field": "e"}));
}
