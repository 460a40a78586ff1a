//! The contract of a plane, over a real connection.

use tidegate_admission::{Change, File, Rules};
use tidegate_runtime::Kind;
use tidegate_server::api::{Api, NO_MARKS, Projected, Projection};
use tidegate_server::http::{Listen, Plaintext};
use tidegate_server::server;
use tidegate_testkit::plane_contract;

use super::{Client, RemotePlane};
use crate::cli::ConnectionArgs;

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

fn options(data_dir: &std::path::Path) -> server::Options {
    server::Options {
        data_dir: data_dir.to_owned(),
        listen: Listen { address: "127.0.0.1:0".parse().unwrap(), tls: None, plaintext: Plaintext::LoopbackOnly },
        store: Default::default(),
        graphql: Default::default(),
        http: Default::default(),
        manifests: None,
        repos: tidegate_server::repos::Options {
            git: "git".into(),
            search_path: std::env::var_os("PATH").unwrap(),
            hook_program: "tidegate".into(),
            remote: Default::default(),
            limits: Default::default(),
        },
    }
}

async fn apply(api: &Api, path: &str, text: &str) {
    let rules = Rules { default_namespace: "default".into(), ..Rules::unrestricted("system", "control") };
    let change = Change { files: vec![File { path, bytes: text.as_bytes() }], ..Change::default() };
    let defined_at = |_: &str| Vec::new();
    let projection = Projection {
        rules: &rules,
        change,
        defined_at: &defined_at,
        commit: None,
        author_of: &|_: &str| None,
        marks: NO_MARKS,
    };
    match api.project(projection).await.unwrap() {
        Projected::Applied(..) => {}
        Projected::Rejected(problems) => panic!("{problems:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_over_the_network_keeps_the_contract_of_a_plane() {
    let directory = tempfile::tempdir().unwrap();
    let server = server::start(options(directory.path())).await.unwrap();
    let (api, shutdown) = (server.api().clone(), server.shutdown());
    let connection =
        ConnectionArgs { server: server.url(), token_file: Some(server.admin_token_path().to_owned()), ca_file: None };
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
