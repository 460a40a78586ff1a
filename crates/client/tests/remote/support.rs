//! A server in this process, and objects in it.

use std::path::Path;

use tidegate_admission::{Change, File, Rules};
use tidegate_server::api::{Api, NO_MARKS, Projected, Projection};
use tidegate_server::{repos, server};

pub fn options(data_dir: &Path) -> server::Options {
    let path = std::env::var_os("PATH").unwrap();
    server::Options::on_loopback(data_dir.to_owned(), repos::Options::new(path))
}

pub async fn apply(api: &Api, path: &str, text: &str) {
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
