//! The schema that clients see.

use std::path::PathBuf;

use expect_test::expect_file;
use tidegate_model::Object;
use tidegate_server::api::CrdKinds;
use tidegate_server::graphql::Graphql;
use tidegate_server::graphql::limits::Limits;

fn sdl(crds: &CrdKinds) -> String {
    let graphql = Graphql::new(Limits::default());
    graphql.kinds_changed(&crds.in_force());
    graphql.sdl()
}

/// Run with `UPDATE_EXPECT=1` after a change of the built-in kinds, and read
/// the difference: clients depend on it.
#[test]
fn the_built_in_kinds() {
    expect_file!["../../../../docs/schema.graphql"].assert_eq(&sdl(&CrdKinds::default()));
}

fn corpus() -> Vec<PathBuf> {
    let root =
        std::env::var_os("TIDEGATE_CRD_CORPUS").map_or_else(|| PathBuf::from("../../../shared/crds"), PathBuf::from);
    let Ok(projects) = std::fs::read_dir(&root) else {
        println!("no CRD corpus at {}: set TIDEGATE_CRD_CORPUS to a folder of CRDs", root.display());
        return Vec::new();
    };
    let folders = projects.flatten().map(|entry| entry.path()).filter(|path| path.is_dir());
    let files = folders.flat_map(|folder| std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path()));
    files.filter(|path| path.extension().is_some_and(|ext| ext == "yaml")).collect()
}

/// All of them at once: their nested types must not clash either.
#[test]
fn crds_of_public_projects() {
    let mut crds = CrdKinds::default();
    let files = corpus();
    for path in &files {
        let text = std::fs::read_to_string(path).unwrap();
        let crd = Object::from_value(tidegate_model::yaml::parse(&text).unwrap()).unwrap();
        crds.apply(crd.name(), Some(&crd));
    }
    let in_force = crds.in_force();
    assert_eq!(in_force.order.len(), CrdKinds::default().in_force().order.len() + files.len());
    let sdl = sdl(&crds);
    for word in if files.is_empty() {
        &[][..]
    } else {
        &["type HTTPRoute {", "httpRoutes(", "watchCertificates(", "type PrometheusSpec {"]
    } {
        assert!(sdl.contains(word), "{word}");
    }
}
