//! What controllers need of the API.

use tidegate_runtime::Kind;
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
