//! What controllers need of the API.

use serde_json::{Value, json};
use tidegate_runtime::{ControllerReport, Kind, Plane, StateChange};
use tidegate_server::api::StatusWrite;
use tidegate_server::identity::Session;
use tidegate_server::plane::LocalPlane;
use tidegate_testkit::plane_contract;

use super::support::{TestServer, widget_yaml};

#[tokio::test(flavor = "multi_thread")]
async fn the_api_in_process_keeps_the_contract_of_a_plane() {
    let server = TestServer::with_widgets().await;
    let plane = LocalPlane::new(server.api.clone());
    let widgets = Kind::new("example.com/v1", "Widget", "widgets");
    plane_contract::run(&plane, &widgets, async |name, size| {
        server.apply(&format!("{name}.yaml"), &widget_yaml(name, "{}", size)).await;
    })
    .await;
    server.stop().await;
}

/// Not by what it has heard of alone, and not because others have changed.
#[tokio::test(flavor = "multi_thread")]
async fn a_controller_is_behind_by_what_its_kind_has_and_it_has_not_seen() {
    let server = TestServer::with_widgets().await;
    let plane = LocalPlane::new(server.api.clone());
    let says = async |received: String| {
        let report = ControllerReport {
            controller: "widgets".into(),
            api_version: "example.com/v1".into(),
            kind: "Widget".into(),
            checkpoint: Some(received.clone()),
            received: Some(received),
            ..ControllerReport::default()
        };
        let value = Some(serde_json::to_vec(&report).unwrap().into());
        plane.state_write("widgets", None, vec![StateChange { name: "report".into(), value }]).await.unwrap();
    };
    let seen = || server.api.controllers(&Session::admin()).unwrap().remove(0);
    let widget = async |name: &str| {
        server.apply(&format!("{name}.yaml"), &widget_yaml(name, "{}", 1)).await;
        server.get(name).await["resourceVersion"].as_str().unwrap().to_owned()
    };
    let first = widget("first").await;
    says(first.clone()).await;
    assert_eq!((seen().behind_versions, seen().behind_since_ms), (Some(0), None));
    server.apply("space.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: space}\n").await;
    assert_eq!((seen().behind_versions, seen().behind_since_ms), (Some(0), None), "another kind has changed");
    let second = widget("second").await;
    assert!(seen().behind_versions > Some(0) && seen().behind_since_ms.is_some(), "{:?}", seen());
    says(second).await;
    assert_eq!((seen().behind_versions, seen().behind_since_ms), (Some(0), None));
    server.stop().await;
}

const SEEN: &str = "{ controllers { name kind leader leading stopped stoppedMessage queueDepth behindVersions } }";

/// What nobody reports of is found by its own object; query and metrics agree.
#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_does_not_run_is_seen_whether_or_not_it_ever_did() {
    let server = TestServer::with_widgets().await;
    let ready = |status: &str| {
        let message = "there is no kind Site: push it";
        json!({"conditions": [{"type": "Ready", "status": status, "reason": "KindNotFound", "message": message}]})
    };
    for (name, status) in
        [("runs", ready("True")), ("new", json!({})), ("never.started", ready("False")), ("stopped", ready("False"))]
    {
        server.apply(&format!("{name}.yaml"), &hook_yaml(name)).await;
        report_hook(&server, name, &status).await;
    }
    let plane = LocalPlane::new(server.api.clone());
    for (controller, stopped) in [("hook.runs.01", None), ("hook.stopped.02", Some("KindNotFound".to_owned()))] {
        let report = ControllerReport {
            controller: controller.into(),
            kind: "Site".into(),
            leader: "me".into(),
            stopped,
            ..ControllerReport::default()
        };
        let value = Some(serde_json::to_vec(&report).unwrap().into());
        plane.state_write(controller, None, vec![StateChange { name: "report".into(), value }]).await.unwrap();
    }
    let never = json!({"name": "hook.never.started", "kind": "Site", "leader": "", "leading": false,
        "stopped": "KindNotFound", "stoppedMessage": "there is no kind Site: push it", "queueDepth": 0,
        "behindVersions": null});
    let seen = server.client.data(SEEN, json!({})).await["controllers"].take();
    let names: Vec<&str> = seen.as_array().unwrap().iter().map(|seen| seen["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["hook.runs.01", "hook.stopped.02", "hook.never.started"]);
    assert_eq!(seen[2], never);
    assert_eq!((&seen[0]["stoppedMessage"], &seen[1]["stoppedMessage"]), (&Value::Null, &never["stoppedMessage"]));

    let rules = "[{apiGroups: [tidegate.dev], resources: [controllerstates], verbs: [list]}]";
    let operator = server.account("operator", rules).await;
    let seen = operator.data(SEEN, json!({})).await["controllers"].take();
    assert_eq!((&seen[2]["stopped"], &seen[2]["stoppedMessage"]), (&json!("KindNotFound"), &Value::Null));

    let metrics = reqwest::Client::new().get(format!("{}/metrics", server.client.url));
    let text = metrics.bearer_auth(&server.client.token).send().await.unwrap().text().await.unwrap();
    let stopped: Vec<&str> = text.lines().filter(|line| line.starts_with("tidegate_controller_stopped{")).collect();
    assert_eq!(
        stopped,
        [
            r#"tidegate_controller_stopped{controller="hook.stopped.02",reason="KindNotFound"} 1"#,
            r#"tidegate_controller_stopped{controller="hook.never.started",reason="KindNotFound"} 1"#
        ]
    );
    server.stop().await;
}

fn hook_yaml(name: &str) -> String {
    format!(
        "apiVersion: tidegate.dev/v1\nkind: ReconcileHook\nmetadata: {{name: {name}}}\nspec:\n  \
         target: {{apiVersion: example.com/v1, kind: Site}}\n  endpoint: {{url: 'http://127.0.0.1:1/'}}\n"
    )
}

/// As the manager does.
async fn report_hook(server: &TestServer, name: &str, patch: &Value) {
    let kind = server.api.kind("tidegate.dev/v1", "ReconcileHook").unwrap();
    let found = server.api.get(&Session::admin(), &kind, None, name).unwrap().unwrap();
    let resource_version = Some(found.version.to_string());
    let write = StatusWrite { namespace: None, name: name.into(), resource_version, patch: patch.clone() };
    server.api.update_status(&Session::admin(), &kind, write).await.unwrap();
}
