//! The definitions that both sides get.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::parse;

/// Ours that kube-apiserver takes: the groups of Kubernetes it has itself.
const OWN_GROUPS: [&str; 2] = ["catalog.gitstore.dev", "tidegate.dev"];

pub struct Definition {
    pub value: Value,
    /// Ships inside the binary.
    pub is_builtin: bool,
}

pub fn all() -> Vec<Definition> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = vec![Definition { value: parse(include_str!("keywords.yaml")), is_builtin: false }];
    let beside = crates.join("../../shared/crds");
    let corpus = std::env::var_os("TIDEGATE_CRD_CORPUS").map_or(beside, PathBuf::from);
    let others = read(&corpus).into_iter().chain(read(&crates.join("reverser/crds")));
    found.extend(others.map(|value| Definition { value, is_builtin: false }));
    let own = read(&crates.join("model/builtin")).into_iter();
    let is_ours = |value: &Value| OWN_GROUPS.iter().any(|group| value["spec"]["group"] == *group);
    found.extend(own.filter(is_ours).map(|value| Definition { value, is_builtin: true }));
    found
}

/// Nothing if the folder is not there.
fn read(folder: &Path) -> Vec<Value> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            found.extend(read(&path));
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            found.push(parse(&std::fs::read_to_string(&path).unwrap()));
        }
    }
    found
}
