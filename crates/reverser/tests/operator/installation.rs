//! The chart and what `install` prints.

use serde_json::json;
use tidegate_model::yaml::parse_documents;
use tidegate_reverser::install::{InstallOptions, manifests};
use tidegate_testkit::cluster::ADMIN;
use tidegate_testkit::programs::helm;

use crate::rig::shared;

const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../charts/tidegate-reverser");

#[test]
fn the_chart_passes_lint_and_has_the_definitions_that_install_prints() {
    helm(&["lint", CHART]);
    for plural in ["gitrepoconfigs", "gitdestinations", "watchrules", "clusterwatchrules"] {
        let read = |folder: &str| std::fs::read_to_string(format!("{folder}/{plural}.yaml")).unwrap();
        let own = concat!(env!("CARGO_MANIFEST_DIR"), "/crds");
        assert_eq!(read(own), read(&format!("{CHART}/crds")), "copy crates/reverser/crds to the chart");
    }
}

/// Who may read Secrets: all of them, or the named ones alone.
#[test]
fn without_secrets_the_chart_asks_for_the_named_ones_alone() {
    let settings = ["--set", "rbac.secrets=false", "--set-json", r#"rbac.credentials={"shop":["git","age"]}"#];
    let args = ["template", "r", CHART, "--kube-version", "1.36.0"];
    let documents = parse_documents(&helm(&[&args[..], &settings].concat())).unwrap();
    let on_secrets: Vec<_> = documents
        .iter()
        .flat_map(|document| {
            let rules = document.value["rules"].as_array().into_iter().flatten();
            let on_secrets = rules.filter(|rule| rule["resources"].to_string().contains("secrets"));
            on_secrets.map(|rule| (document.value["metadata"]["namespace"].clone(), rule.clone()))
        })
        .collect();
    let named = json!({"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["git", "age"], "verbs": ["get"]});
    assert_eq!(on_secrets, [(json!("shop"), named)]);
}

#[test]
fn what_install_prints_applies() {
    let rig = shared();
    let options = InstallOptions { namespace: "printed".into(), image: "i".into(), replicas: 1, is_crds_only: false };
    rig.cluster.apply(ADMIN, &manifests(&options));
}
