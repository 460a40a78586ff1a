//! The status contract.

use serde_json::{Value, json};
use tidegate_testkit::client::Client;

use crate::support::{TestServer, widget_yaml};

const UPDATE: &str = r#"mutation($rv: String!, $status: JSON!) {
    updateWidgetStatus(input: {namespace: "default", name: "a", resourceVersion: $rv, status: $status}) {
      metadata { resourceVersion generation } spec { size } status { replicas note observedGeneration conditions { type status reason lastTransitionTime } }
    } }"#;

async fn server() -> TestServer {
    let server = TestServer::with_widgets().await;
    server.widget("a", "{}").await;
    server
}

async fn write(client: &Client, version: &Value, status: Value) -> Value {
    client.data(UPDATE, json!({"rv": version, "status": status})).await["updateWidgetStatus"].take()
}

fn ready(status: &str) -> Value {
    json!({"conditions": [{"type": "Ready", "status": status, "reason": "Tested", "message": ""}]})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_raises_the_version_and_leaves_the_generation() {
    let server = server().await;
    let before = server.get("a").await;
    let written =
        write(&server.client, &before["resourceVersion"], json!({"replicas": 3, "observedGeneration": 1})).await;
    assert_eq!(written["status"]["replicas"], 3);
    assert_eq!(written["spec"]["size"], 1);
    let after = server.get("a").await;
    assert!(after["resourceVersion"].as_str() > before["resourceVersion"].as_str());
    assert_eq!(after["resourceVersion"], written["metadata"]["resourceVersion"]);
    assert_eq!((&after["generation"], &after["uid"]), (&before["generation"], &before["uid"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_of_the_spec_leaves_the_status() {
    let server = server().await;
    let version = server.get("a").await["resourceVersion"].take();
    write(&server.client, &version, json!({"replicas": 3})).await;
    server.project(&[("a.yaml", &widget_yaml("a", "{}", 9))], &[]).await.unwrap();
    let after = server.get("a").await;
    assert_eq!(after["object"]["spec"]["size"], 9);
    assert_eq!(after["object"]["status"]["replicas"], 3);
    assert_eq!(after["generation"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stale_precondition_is_a_conflict_with_all_a_controller_needs() {
    let server = server().await;
    let stale = server.get("a").await["resourceVersion"].take();
    let current = write(&server.client, &stale, json!({"replicas": 1})).await["metadata"]["resourceVersion"].take();
    let error = server.client.error(UPDATE, json!({"rv": stale, "status": {"replicas": 2}})).await;
    let request_id = error["extensions"]["requestId"].as_str().expect("an id to ask about");
    let expected = json!({
        "code": "CONFLICT", "retryable": true, "expectedResourceVersion": stale, "currentResourceVersion": current, "currentGeneration": 1,
        "requestId": request_id,
    });
    assert_eq!(error["extensions"], expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_writers_on_one_version_one_wins() {
    let server = server().await;
    let version = server.get("a").await["resourceVersion"].take();
    let writes = (0..16).map(|at| {
        let (client, version) = (server.client.clone(), version.clone());
        tokio::spawn(async move { client.code(UPDATE, json!({"rv": version, "status": {"replicas": at}})).await })
    });
    let mut codes = Vec::new();
    for write in writes.collect::<Vec<_>>() {
        codes.push(write.await.unwrap());
    }
    codes.sort();
    assert_eq!(codes[..15], vec!["CONFLICT".to_owned(); 15]);
    assert_eq!(codes[15], "OK");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_and_why() {
    let server = server().await;
    let version = server.get("a").await["resourceVersion"].take();
    let good = json!({"rv": version, "status": {"replicas": 1}});
    let input = |rest: &str| {
        format!(
            "mutation($status: JSON!) {{ updateWidgetStatus(input: {{namespace: \"default\", name: \"a\", status: $status{rest}}}) {{ kind }} }}"
        )
    };
    let by_variable = "mutation($input: UpdateStatusInput!) { updateWidgetStatus(input: $input) { kind } }";
    for (query, variables, code) in [
        (input(""), good.clone(), "PRECONDITION_REQUIRED"),
        (input(", resourceVersion: \"\""), good.clone(), "PRECONDITION_REQUIRED"),
        (
            by_variable.into(),
            json!({"input": {"namespace": "default", "name": "a", "status": {}}}),
            "PRECONDITION_REQUIRED",
        ),
        (input(", resourceVersion: \"nonsense\""), good.clone(), "INVALID_RESOURCE_VERSION"),
        (input(", resourceVersion: \"x\", spec: {size: 5}"), good.clone(), "SPEC_IS_GIT_OWNED"),
        (
            by_variable.into(),
            json!({"input": {"namespace": "default", "name": "a", "status": {}, "spec": {"size": 5}, "resourceVersion": "x"}}),
            "SPEC_IS_GIT_OWNED",
        ),
        ("mutation { updateWidget(spec: {size: 5}) { kind } }".into(), json!({}), "SPEC_IS_GIT_OWNED"),
        ("mutation { deleteWidget(name: \"a\") { kind } }".into(), json!({}), "SPEC_IS_GIT_OWNED"),
        (UPDATE.into(), json!({"rv": version, "status": {"replicas": -1}}), "INVALID"),
        (UPDATE.into(), json!({"rv": version, "status": {"replicas": "many"}}), "INVALID"),
        (UPDATE.into(), json!({"rv": version, "status": {"observedGeneration": 2}}), "INVALID"),
        (
            UPDATE.into(),
            json!({"rv": version, "status": {"conditions": [{"type": "Ready", "status": "Maybe", "reason": "X", "message": ""}]}}),
            "INVALID",
        ),
        (UPDATE.into(), json!({"rv": version, "status": "ready"}), "INVALID"),
        (UPDATE.into(), json!({"rv": version, "status": {"note": "x".repeat(3 << 20)}}), "TOO_LARGE"),
        (UPDATE.replace("name: \"a\"", "name: \"none\""), good.clone(), "NOT_FOUND"),
        (UPDATE.into(), good, "OK"),
    ] {
        let found = server.client.code(&query, variables.clone()).await;
        assert_eq!(found, code, "{query} {}", &variables.to_string()[..variables.to_string().len().min(200)]);
    }
    let error = server
        .client
        .error(UPDATE, json!({"rv": server.get("a").await["resourceVersion"], "status": {"replicas": -1}}))
        .await;
    assert_eq!(error["extensions"]["causes"][0]["field"], "status.replicas");
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_that_the_schema_does_not_know_are_pruned() {
    let server = server().await;
    let before = server.get("a").await["resourceVersion"].take();
    // Nothing of it is left, so nothing is written.
    let written = write(&server.client, &before, json!({"unknown": 1})).await;
    assert_eq!(written["metadata"]["resourceVersion"], before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_without_effect_emits_nothing() {
    let server = server().await;
    let first = write(&server.client, &server.get("a").await["resourceVersion"], ready("True")).await;
    let version = &first["metadata"]["resourceVersion"];
    let again = write(&server.client, version, ready("True")).await;
    assert_eq!(again["metadata"]["resourceVersion"], *version);
    let query = "subscription($rv: String) { watchWidgets(resourceVersion: $rv) { type name } }";
    let mut socket = server.client.subscribe(query, json!({"rv": version})).await;
    server.widget("b", "{}").await;
    assert_eq!(socket.event().await, json!({"type": "ADDED", "name": "b"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_controllers_keep_each_others_conditions() {
    let server = server().await;
    let first = write(&server.client, &server.get("a").await["resourceVersion"], ready("False")).await;
    let moved = first["status"]["conditions"][0]["lastTransitionTime"].clone();
    assert!(moved.is_string());
    let other = json!({"conditions": [{"type": "Stalled", "status": "False", "reason": "Other", "message": ""}]});
    let second = write(&server.client, &first["metadata"]["resourceVersion"], other).await;
    let types: Vec<_> = second["status"]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|condition| condition["type"].as_str().unwrap())
        .collect();
    assert_eq!(types, ["Ready", "Stalled"]);
    // The reason changes, the status does not: neither does the time.
    let same = json!({"conditions": [{"type": "Ready", "status": "False", "reason": "Later", "message": ""}]});
    let third = write(&server.client, &second["metadata"]["resourceVersion"], same).await;
    assert_eq!(third["status"]["conditions"][0]["reason"], "Later");
    assert_eq!(third["status"]["conditions"][0]["lastTransitionTime"], moved);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_while_status_is_written_loses_neither() {
    let server = server().await;
    let (client, writes) = (server.client.clone(), 50);
    let controller = tokio::spawn(async move {
        let read = "{ widget(namespace: \"default\", name: \"a\") { metadata { resourceVersion } } }";
        let mut done = 0;
        while done < writes {
            let version = client.data(read, json!({})).await["widget"]["metadata"]["resourceVersion"].take();
            let code = client.code(UPDATE, json!({"rv": version, "status": {"replicas": done + 1}})).await;
            done += i32::from(code == "OK");
        }
    });
    let mut size = 1;
    while !controller.is_finished() {
        size += 1;
        server.project(&[("a.yaml", &widget_yaml("a", "{}", size % 100))], &[]).await.unwrap();
    }
    controller.await.unwrap();
    let after = server.get("a").await;
    assert_eq!(after["object"]["spec"]["size"], size % 100);
    assert_eq!(after["object"]["status"]["replicas"], writes);
}
