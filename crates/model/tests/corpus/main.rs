//! CustomResourceDefinitions of public projects load unchanged, and admit or
//! refuse objects as kube-apiserver does.
//!
//! The folder is `TIDEGATE_CRD_CORPUS`, or `../shared/crds` beside the
//! workspace; without one there is nothing to check, and the tests say so.

mod differential;
mod gateways;
mod monitoring;
mod routes;

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

#[test]
fn versions_that_are_not_served_are_not_there() {
    let Some(kinds) = &*CORPUS else { return };
    assert!(kinds.by_gvk("gateway.networking.k8s.io/v1beta1", "Gateway").is_some());
    assert!(kinds.by_gvk("gateway.networking.k8s.io/v1alpha3", "BackendTLSPolicy").is_none(), "it is not served");
    assert!(kinds.by_gvk("gateway.networking.k8s.io/v2", "Gateway").is_none());
}

/// A definition is an object too: its own kind admits it and prunes nothing.
#[test]
fn every_definition_is_admitted_unchanged() {
    let Some(folder) = folder() else { return };
    let kinds = KindSet::builtin();
    for file in definitions(&folder) {
        let text = std::fs::read_to_string(&file).expect("a definition is readable");
        let before = parse(&text);
        let after = admitted(&kinds, &text);
        assert_eq!(after.spec(), before.spec(), "{}", file.display());
    }
}

/// Admits `object` and compares what is wrong with it, line by line; nothing
/// means that it is admitted.
fn check(object: &str, wrong: &[&str]) {
    check_update(None, object, wrong);
}

/// The same for an object that replaces `old`.
fn check_update(old: Option<&str>, object: &str, wrong: &[&str]) {
    let Some(kinds) = &*CORPUS else { return };
    let old = old.map(|text| admitted(kinds, text));
    let mut new = parse(object);
    let (kind, version) = kinds.by_gvk(new.api_version(), new.kind()).expect("a kind of the corpus");
    let errors = kind.admit(version, &mut new, old.as_ref());
    let shown: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(shown, wrong, "{object}");
    let again = kind.admit(version, &mut new.clone(), old.as_ref());
    assert_eq!(again, errors, "admitting again says the same");
}

/// What is stored, and it must be admitted.
fn admitted(kinds: &KindSet, text: &str) -> Object {
    let mut object = parse(text);
    let (kind, version) = kinds.by_gvk(object.api_version(), object.kind()).expect("a kind of the corpus");
    let errors = kind.admit(version, &mut object, None);
    assert!(errors.is_empty(), "{errors:?}");
    object
}

fn parse(text: &str) -> Object {
    Object::from_value(yaml::parse(text).expect("a test object is YAML")).expect("a test object is an object")
}

/// What `object` becomes, at a JSON pointer.
fn check_stored(object: &str, pointer: &str, stored: serde_json::Value) {
    let Some(kinds) = &*CORPUS else { return };
    let value = admitted(kinds, object).into_value();
    assert_eq!(value.pointer(pointer).cloned().unwrap_or_default(), stored, "{pointer} of {object}");
}
