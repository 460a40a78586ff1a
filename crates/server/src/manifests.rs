//! A folder of manifests as a source of desired state: read at start and
//! admitted in one commit, for trying things out without a repository.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tidegate_admission::{Change, File, Provenance, Rules};
use tidegate_model::manifest::Diagnostic;
use tidegate_model::{Object, ObjectKey};
use tidegate_store::{Selection, StoreError};

use crate::api::{Api, Applied, ProjectError, Projected, Projection};

/// The owner of what the folder defines.
const OWNER: (&str, &str) = ("system", "manifests");
const FILES_MAX: usize = 100_000;
const BYTES_MAX: u64 = 512 << 20;

#[derive(Debug, thiserror::Error)]
pub enum ManifestsError {
    #[error("failed to read {}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{} holds more than {FILES_MAX} files or {} MiB: choose a smaller folder", path.display(), BYTES_MAX >> 20)]
    TooMuch { path: PathBuf },
    #[error("the manifests under {} are refused:\n{}", path.display(), listed(diagnostics))]
    Rejected { path: PathBuf, diagnostics: Vec<Diagnostic> },
    #[error("failed to read what the folder defined before")]
    Store(#[from] StoreError),
    #[error("failed to apply the manifests")]
    Project(#[from] ProjectError),
}

fn listed(diagnostics: &[Diagnostic]) -> String {
    diagnostics.iter().map(|diagnostic| format!("  {diagnostic}")).collect::<Vec<_>>().join("\n")
}

/// Makes the store equal to the folder, as far as the folder owns it.
pub async fn apply(api: &Api, folder: &Path) -> Result<Applied, ManifestsError> {
    let files = read(folder)?;
    let before = owned(api)?;
    let rules = Rules { default_namespace: "default".into(), ..Rules::unrestricted(OWNER.0, OWNER.1) };
    let removed: Vec<&str> = before.keys().map(String::as_str).filter(|path| !files.contains_key(*path)).collect();
    let change = Change { files: files.iter().map(|(path, bytes)| File { path, bytes }).collect(), removed };
    let defined_at = |path: &str| before.get(path).cloned().unwrap_or_default();
    let marks = Vec::new();
    match api.project(Projection { rules: &rules, change, defined_at: &defined_at, commit: None, marks }).await? {
        Projected::Applied(applied, warnings) => {
            for warning in warnings {
                tracing::warn!("{warning}");
            }
            Ok(applied)
        }
        Projected::Rejected(diagnostics) => Err(ManifestsError::Rejected { path: folder.to_owned(), diagnostics }),
    }
}

fn read(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>, ManifestsError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| ManifestsError::Io { path, source }
    };
    let (mut files, mut bytes) = (BTreeMap::new(), 0);
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).map_err(failed(&next))? {
            let path = entry.map_err(failed(&next))?.path();
            // Links are not followed: a folder is what it contains.
            let info = path.symlink_metadata().map_err(failed(&path))?;
            let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
            if info.is_dir() && !hidden {
                folders.push(path);
            } else if info.is_file() && !hidden {
                bytes += info.len();
                if files.len() == FILES_MAX || bytes > BYTES_MAX {
                    return Err(ManifestsError::TooMuch { path: folder.to_owned() });
                }
                let content = std::fs::read(&path).map_err(failed(&path))?;
                let name = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned();
                files.insert(name, content);
            }
        }
    }
    Ok(files)
}

/// What the folder owns in the store: by path, from the provenance of each
/// object. Reads all objects, which a folder for trying things out can afford.
fn owned(api: &Api) -> Result<BTreeMap<String, Vec<ObjectKey>>, StoreError> {
    let owner = format!("{}/{}", OWNER.0, OWNER.1);
    let view = api.store().view();
    let mut paths: BTreeMap<String, Vec<ObjectKey>> = BTreeMap::new();
    for kind in &api.kinds().order {
        for stored in view.scan(&Selection::all(kind.resource.clone()), None) {
            let stored = stored?;
            let object = Object::from_json(&stored.json);
            if let Some(source) = object.as_ref().and_then(Provenance::of).filter(|source| source.repository == owner) {
                paths.entry(source.path.to_owned()).or_default().push(stored.key);
            }
        }
    }
    Ok(paths)
}
