//! Each folder under `examples` is admitted as a change of its own by a server
//! after its first start.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use tidegate_admission::{Change, File, Rules, State, Verdict, plan};
use tidegate_model::kinds::KindSet;
use tidegate_model::{GroupResource, Object, ObjectKey};

/// A store after its first start: nothing but the namespace `default`.
struct FirstStart;

impl State for FirstStart {
    type Error = Infallible;

    fn current(&self, key: &ObjectKey) -> Result<Option<Arc<Object>>, Infallible> {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}});
        let is_there = key.to_string() == "namespaces default";
        Ok(Object::from_value(object).filter(|_| is_there).map(Arc::new))
    }

    fn defined_at(&self, _: &str) -> Result<Vec<ObjectKey>, Infallible> {
        Ok(Vec::new())
    }

    fn count(&self, _: &GroupResource, _: Option<&str>) -> Result<u64, Infallible> {
        Ok(0)
    }
}

#[test]
fn examples_are_admitted() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut folders = 0;
    // One with a Cargo.toml is a program.
    let has_objects = |path: &PathBuf| path.is_dir() && !path.join("Cargo.toml").exists();
    for folder in entries(&root).into_iter().filter(has_objects) {
        let mut files = BTreeMap::new();
        collect(&folder, &folder, &mut files);
        let rules = Rules::unrestricted("default", "examples");
        let files = files.iter().map(|(path, bytes)| File { path, bytes }).collect();
        let Ok(verdict) = plan(&KindSet::builtin(), &FirstStart, &rules, &Change { files, ..Change::default() });
        match verdict {
            Verdict::Admit(plan) => assert!(!plan.puts.is_empty(), "{} defines nothing", folder.display()),
            Verdict::Reject(diagnostics) => panic!("{}: {}", folder.display(), diagnostics[0]),
        }
        folders += 1;
    }
    assert!(folders > 0, "no examples under {}", root.display());
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect()
}

fn collect(root: &Path, folder: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
    for path in entries(folder) {
        if path.is_dir() {
            collect(root, &path, files);
        } else {
            let name = path.strip_prefix(root).expect("below the root").to_string_lossy().into_owned();
            files.insert(name, fs::read(&path).expect("a readable file"));
        }
    }
}
