//! `serve --manifests`: a folder as the whole desired state, and what must not
//! be taken for an empty one.

use std::fs;
use std::path::Path;

use serde_json::json;
use tempfile::TempDir;

use crate::support::{TestServer, WIDGETS, options, start_when_free, widget_yaml};

async fn serve(data: TempDir, folder: &Path) -> TestServer {
    let folder = folder.to_owned();
    TestServer::start_in(data, |options| options.manifests = Some(folder)).await
}

async fn names(server: &TestServer) -> serde_json::Value {
    server.client.data("{ widgets { nodes { metadata { name } } } }", json!({})).await["widgets"]["nodes"].take()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_follows_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("crd.yaml"), WIDGETS).unwrap();
    fs::create_dir(folder.path().join("more")).unwrap();
    fs::write(folder.path().join("more/a.yaml"), widget_yaml("a", "{}", 1)).unwrap();
    fs::write(folder.path().join("b.yaml"), widget_yaml("b", "{}", 1)).unwrap();
    let server = serve(tempfile::tempdir().unwrap(), folder.path()).await;
    assert_eq!(names(&server).await, json!([{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]));
    let uid = server.get("b").await["uid"].take();

    fs::remove_file(folder.path().join("more/a.yaml")).unwrap();
    let server = serve(server.stop().await, folder.path()).await;
    assert_eq!(names(&server).await, json!([{"metadata": {"name": "b"}}]));
    assert_eq!(server.get("b").await["uid"], uid);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_lost_everything_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("crd.yaml"), WIDGETS).unwrap();
    let server = serve(tempfile::tempdir().unwrap(), folder.path()).await;
    let data = server.stop().await;

    let empty = tempfile::tempdir().unwrap();
    let linked = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(folder.path().join("crd.yaml"), linked.path().join("crd.yaml")).unwrap();
    for (other, reason) in [(empty.path(), "would be deleted"), (linked.path(), "symbolic link")] {
        let mut options = options(data.path());
        options.manifests = Some(other.to_owned());
        let refused = start_when_free(options).await.err().expect("a refusal").to_string();
        assert!(refused.contains(reason), "{refused}");
    }
    let server = serve(data, folder.path()).await;
    assert_eq!(names(&server).await, json!([]));
}
