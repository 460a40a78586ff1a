//! The chart and what `install` prints.

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

#[test]
fn what_install_prints_applies() {
    let rig = shared();
    let options = InstallOptions { namespace: "printed".into(), image: "i".into(), replicas: 1, is_crds_only: false };
    rig.cluster.apply(ADMIN, &manifests(&options));
}
