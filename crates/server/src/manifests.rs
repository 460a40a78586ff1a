//! A folder of manifests as a source of desired state: read at start and
//! admitted in one commit, for trying things out without a repository.

use std::path::{Path, PathBuf};

use tidegate_admission::{Change, File, Rules};
use tidegate_model::manifest::Diagnostic;
use tidegate_store::StoreError;

use crate::api::{Api, Applied, NO_MARKS, ProjectError, Projected, Projection};
use crate::folder::{Folder, FolderError};

/// The owner of what the folder defines.
const OWNER: (&str, &str) = ("system", "manifests");

#[derive(Debug, thiserror::Error)]
pub enum ManifestsError {
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error("the manifests under {} are refused:\n{}", path.display(), listed(diagnostics))]
    Rejected { path: PathBuf, diagnostics: Vec<Diagnostic> },
    #[error(
        "{} holds none of the {count} files that defined objects here before, so all of those would be deleted: a folder \
         of manifests is the whole desired state. Name the right folder, or start with another --data-dir",
        path.display()
    )]
    Unrelated { path: PathBuf, count: usize },
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
    let Folder { files, refused, .. } = Folder::read(folder)?;
    // A file that cannot be read must not read as one that is gone.
    if !refused.is_empty() {
        return Err(ManifestsError::Rejected { path: folder.to_owned(), diagnostics: refused });
    }
    let before = api.owned_by(&format!("{}/{}", OWNER.0, OWNER.1))?;
    if !before.is_empty() && !before.keys().any(|path| files.contains_key(path)) {
        return Err(ManifestsError::Unrelated { path: folder.to_owned(), count: before.len() });
    }
    let rules = Rules { default_namespace: "default".into(), ..Rules::unrestricted(OWNER.0, OWNER.1) };
    let removed: Vec<&str> = before.keys().map(String::as_str).filter(|path| !files.contains_key(*path)).collect();
    let change = Change {
        files: files.iter().map(|(path, bytes)| File { path, bytes }).collect(),
        removed,
        ..Change::default()
    };
    let defined_at = |path: &str| before.get(path).cloned().unwrap_or_default();
    let (commit, author_of, marks) = (None, &|_: &str| None, NO_MARKS);
    let projection = Projection { rules: &rules, change, defined_at: &defined_at, commit, author_of, marks };
    match api.project(projection).await? {
        Projected::Applied(applied, warnings) => {
            for warning in warnings {
                tracing::warn!("{warning}");
            }
            if applied.deleted > 0 {
                tracing::warn!(objects = applied.deleted, "deleted what the folder no longer defines");
            }
            Ok(applied)
        }
        Projected::Rejected(diagnostics) => Err(ManifestsError::Rejected { path: folder.to_owned(), diagnostics }),
    }
}
