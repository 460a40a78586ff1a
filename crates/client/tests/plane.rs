//! The contract of a plane, over a real connection.
#![allow(clippy::unwrap_used)]

mod support;

use tidegate_client::{Client, Options, RemotePlane, TokenSource};
use tidegate_runtime::Kind;
use tidegate_server::server;
use tidegate_testkit::plane_contract;

use support::{apply, options};

const WIDGETS: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer}}}
          status: {type: object, properties: {replicas: {type: integer, minimum: 0}}}
";

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
