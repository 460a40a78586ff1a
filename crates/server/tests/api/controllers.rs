//! What controllers need of the API.

use tidegate_runtime::{ControllerReport, Kind, Plane, StateChange};
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
