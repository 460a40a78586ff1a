//! CustomResourceDefinitions of public projects load unchanged, and admit or
//! refuse objects as kube-apiserver does.
//!
//! The folder is `TIDEGATE_CRD_CORPUS`, or `../shared/crds` beside the
//! workspace; without one there is nothing to check, and the tests say so.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use tidegate_model::kinds::{Kind, KindSet};
use tidegate_model::{Object, yaml};

static CORPUS: LazyLock<Option<KindSet>> = LazyLock::new(|| {
    let folder = folder()?;
    let mut kinds = KindSet::builtin();
    for file in definitions(&folder) {
        let kind = load(&file);
        kinds = kinds.with(Arc::new(kind)).unwrap_or_else(|errors| panic!("{}: {errors:?}", file.display()));
    }
    Some(kinds)
});

fn folder() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/crds");
    let folder =
        std::env::var_os("TIDEGATE_CRD_CORPUS").map(PathBuf::from).or_else(|| beside.is_dir().then_some(beside));
    if folder.is_none() {
        eprintln!("no corpus: set TIDEGATE_CRD_CORPUS to a folder of CustomResourceDefinitions");
    }
    folder
}

fn definitions(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the corpus is readable") {
        let path = entry.expect("the corpus is readable").path();
        if path.is_dir() {
            files.extend(definitions(&path));
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            files.push(path);
        }
    }
    files.sort();
    files
}

fn load(file: &Path) -> Kind {
    let text = std::fs::read_to_string(file).expect("a definition is readable");
    let value = yaml::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let crd = Object::from_value(value).expect("a definition is an object");
    Kind::from_crd(&crd).unwrap_or_else(|errors| panic!("{}: {errors:#?}", file.display()))
}

#[test]
fn every_definition_loads() {
    let Some(kinds) = &*CORPUS else { return };
    assert!(kinds.len() > KindSet::builtin().len(), "the corpus is empty");
}
