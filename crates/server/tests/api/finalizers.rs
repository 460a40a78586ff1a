//! Finalizers hold a deletion until a controller has done its part.

use serde_json::{Value, json};

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
