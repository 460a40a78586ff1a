//! The contract of a plane, over a real connection.

use tidegate_client::{Client, Options, RemotePlane, TokenSource};
use tidegate_runtime::Kind;
use tidegate_server::server;
use tidegate_testkit::plane_contract::{self, WIDGETS};

use crate::support::{apply, options};

#[tokio::test(flavor = "multi_thread")]
async fn the_api_over_the_network_keeps_the_contract_of_a_plane() {
    let directory = tempfile::tempdir().unwrap();
    let server = server::start(options(directory.path())).await.unwrap();
    let (api, shutdown) = (server.api().clone(), server.shutdown());
    let connection = Options::new(&server.url(), TokenSource::File(server.admin_token_path().to_owned()));
    let task = tokio::spawn(server.run());
    let plane = RemotePlane::new(Client::new(&connection).unwrap());
    apply(&api, "crd.yaml", WIDGETS).await;
    let widgets = Kind::new("example.com/v1", "Widget", "widgets");
    plane_contract::run(&plane, &widgets, async |name, size| {
        let text =
            format!("apiVersion: example.com/v1\nkind: Widget\nmetadata: {{name: {name}}}\nspec: {{size: {size}}}\n");
        apply(&api, &format!("{name}.yaml"), &text).await;
    })
    .await;
    shutdown.drain();
    task.await.unwrap();
}
