//! Finalizers hold a deletion until a controller has done its part.

use serde_json::{Value, json};

use tidegate_model::{GroupResource, ObjectKey};

use crate::support::{TestServer, widget_key, widget_yaml};

const UPDATE: &str = r#"mutation($rv: String!, $add: [String!], $remove: [String!]) {
    updateWidgetFinalizers(input: {namespace: "default", name: "a", resourceVersion: $rv, add: $add, remove: $remove}) {
      metadata { resourceVersion finalizers deletionTimestamp }
    } }"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_waits_for_its_finalizers() {
    let server = TestServer::with_widgets().await;
    server.widget("a", "{}").await;
    let start = server.get("a").await["resourceVersion"].take();
    let held = server.client.data(UPDATE, json!({"rv": start, "add": ["example.com/hold"]})).await;
    assert_eq!(held["updateWidgetFinalizers"]["metadata"]["finalizers"], json!(["example.com/hold"]));

    server.project(&[], &[("a.yaml", widget_key("a"))]).await.unwrap();
    let stamped = server.get("a").await;
    assert!(stamped["object"]["metadata"]["deletionTimestamp"].is_string());
    let refused = server.project(&[("a.yaml", &widget_yaml("a", "{}", 2))], &[]).await.unwrap_err();
    assert!(refused.contains("being deleted") || refused.contains("terminating"), "{refused}");
    let version = &stamped["resourceVersion"];
    assert_eq!(server.client.code(UPDATE, json!({"rv": version, "add": ["example.com/late"]})).await, "INVALID");
    assert_eq!(server.client.code(UPDATE, json!({"rv": start, "remove": ["example.com/hold"]})).await, "CONFLICT");

    let gone = server.client.data(UPDATE, json!({"rv": version, "remove": ["example.com/hold"]})).await;
    assert_eq!(gone["updateWidgetFinalizers"], Value::Null);
    assert_eq!(server.get("a").await, Value::Null);

    let query = "subscription($rv: String) { watchWidgets(resourceVersion: $rv) { type name object { metadata { finalizers } } } }";
    let mut socket = server.client.subscribe(query, json!({"rv": start})).await;
    let mut types = Vec::new();
    while types.last() != Some(&json!("DELETED")) {
        types.push(socket.event().await["type"].take());
    }
    assert_eq!(types, ["MODIFIED", "MODIFIED", "DELETED"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_goes_when_it_is_empty_and_not_before() {
    const UPDATE: &str = r#"mutation($rv: String!) {
        updateNamespaceFinalizers(input: {name: "shop", resourceVersion: $rv, remove: ["tidegate.dev/contents"]}) {
          metadata { name }
        } }"#;
    let query = r#"{ resource(apiVersion: "v1", kind: "Namespace", name: "shop") { resourceVersion object } }"#;
    let server = TestServer::with_widgets().await;
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n";
    let inside = widget_yaml("a", "{}", 1).replace("labels:", "namespace: shop, labels:");
    assert!(inside.contains("namespace: shop"));
    server.project(&[("ns.yaml", namespace), ("a.yaml", &inside)], &[]).await.unwrap();
    let shop = ObjectKey::new(GroupResource::new("", "namespaces"), None, "shop");
    server.project(&[], &[("ns.yaml", shop)]).await.unwrap();

    let stamped = server.client.data(query, json!({})).await["resource"].take();
    assert!(stamped["object"]["metadata"]["deletionTimestamp"].is_string(), "{stamped}");
    let refused = server.client.send(UPDATE, json!({"rv": stamped["resourceVersion"]})).await;
    assert!(refused.to_string().contains("it still has 1 widgets.example.com: remove their files"), "{refused}");
    let other = inside.replace("name: a,", "name: b,");
    let refused = server.project(&[("b.yaml", &other)], &[]).await.unwrap_err();
    assert!(refused.contains("takes nothing new"), "{refused}");

    let key = ObjectKey { namespace: Some("shop".into()), ..widget_key("a") };
    server.project(&[], &[("a.yaml", key)]).await.unwrap();
    let gone = server.client.data(UPDATE, json!({"rv": stamped["resourceVersion"]})).await;
    assert_eq!(gone["updateNamespaceFinalizers"], Value::Null);
    assert_eq!(server.client.data(query, json!({})).await["resource"], Value::Null);
}
