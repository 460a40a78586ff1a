//! A server in this process, and objects in it.
#![allow(dead_code)]

use tidegate_admission::{Change, File, Rules};
use tidegate_server::api::{Api, NO_MARKS, Projected, Projection};
use tidegate_server::http::{Listen, Plaintext};
use tidegate_server::server;

pub fn options(data_dir: &std::path::Path) -> server::Options {
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
