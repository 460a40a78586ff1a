//! The manifests of a folder: what a change consists of where no repository is
//! asked, for `serve --manifests` and for a check of a work tree.
//!
//! Invariant: a folder is what it contains. Links are not followed, hidden
//! entries (`.git` among them) are not read, and both files and bytes have a
//! limit.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tidegate_admission::CHANGE_OBJECTS_MAX;
use tidegate_model::manifest::{Diagnostic, is_manifest_path};

/// As many as a change may have objects: a file with none is rare.
pub const FILES_MAX: usize = CHANGE_OBJECTS_MAX;
/// All of it is in memory at once, as of a push.
pub const BYTES_MAX: u64 = 2 << 30;

/// As a push says it.
pub const NAME_REFUSED: &str = "its name is not UTF-8: rename the file";
pub const LINK_REFUSED: &str = "is a symbolic link: commit the file itself";

#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    #[error("failed to read {}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error(
        "{} holds more than {FILES_MAX} manifests or {} MiB of them: choose a smaller folder",
        path.display(), BYTES_MAX >> 20
    )]
    TooMuch { path: PathBuf },
}

#[derive(Debug, Default)]
pub struct Folder {
    /// By their path in the folder, whose parts are separated by `/`.
    pub files: BTreeMap<String, Vec<u8>>,
    /// What a repository may not hold.
    pub refused: Vec<Diagnostic>,
    bytes: u64,
}

impl Folder {
    /// A `root` that is a file is a folder with that file alone.
    pub fn read(root: &Path) -> Result<Self, FolderError> {
        let mut folder = Self::default();
        if fs::metadata(root).map_err(failed(root))?.is_file() {
            let name = root.file_name().unwrap_or_default().to_string_lossy().into_owned();
            folder.take(root, root, name)?;
            return Ok(folder);
        }
        let mut pending = vec![root.to_owned()];
        while let Some(next) = pending.pop() {
            for entry in fs::read_dir(&next).map_err(failed(&next))? {
                let entry = entry.map_err(failed(&next))?;
                if is_hidden(&entry) {
                    continue;
                }
                if entry.file_type().map_err(failed(&next))?.is_dir() {
                    pending.push(entry.path());
                } else {
                    folder.enter(root, &entry)?;
                }
            }
        }
        folder.refused.sort();
        Ok(folder)
    }

    /// Files of other names define nothing, whatever they are.
    fn enter(&mut self, root: &Path, entry: &fs::DirEntry) -> Result<(), FolderError> {
        let path = entry.path();
        let within = path.strip_prefix(root).unwrap_or(&path);
        let name = within.to_string_lossy().into_owned();
        let sort = entry.file_type().map_err(failed(&path))?;
        if within.to_str().is_none() {
            self.refused.push(Diagnostic::of_file(&name, NAME_REFUSED));
        } else if sort.is_symlink() {
            self.refused.push(Diagnostic::of_file(&name, LINK_REFUSED));
        } else if sort.is_file() && is_manifest_path(&name) {
            self.take(root, &path, name)?;
        }
        Ok(())
    }

    fn take(&mut self, root: &Path, path: &Path, name: String) -> Result<(), FolderError> {
        let file = File::open(path).map_err(failed(path))?;
        self.bytes += file.metadata().map_err(failed(path))?.len();
        if self.files.len() == FILES_MAX || self.bytes > BYTES_MAX {
            return Err(FolderError::TooMuch { path: root.to_owned() });
        }
        let mut content = Vec::new();
        // A file that grows meanwhile does not get past the limit, either.
        file.take(BYTES_MAX).read_to_end(&mut content).map_err(failed(path))?;
        self.files.insert(name, content);
        Ok(())
    }
}

fn is_hidden(entry: &fs::DirEntry) -> bool {
    entry.file_name().as_encoded_bytes().starts_with(b".")
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> FolderError {
    let path = path.to_owned();
    move |source| FolderError::Io { path, source }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    use super::*;

    fn names(folder: &Folder) -> Vec<&str> {
        folder.files.keys().map(String::as_str).collect()
    }

    #[test]
    fn manifests_by_their_path() {
        let dir = tempfile::tempdir().unwrap();
        for path in ["b.yaml", "a/deep/er.md", "a/x.json", "a/photo.png", ".git/x.yaml", ".hidden.yaml", "a/.b/c.yml"] {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "text").unwrap();
        }
        let folder = Folder::read(dir.path()).unwrap();
        assert_eq!(names(&folder), ["a/deep/er.md", "a/x.json", "b.yaml"]);
        assert_eq!(folder.files["b.yaml"], b"text");
        assert!(folder.refused.is_empty());
        assert_eq!(names(&Folder::read(&dir.path().join("a/x.json")).unwrap()), ["x.json"]);
    }

    #[test]
    fn what_is_refused_is_named() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("real.yaml"), "text").unwrap();
        symlink("real.yaml", dir.path().join("link.yaml")).unwrap();
        symlink("missing", dir.path().join("dangling.md")).unwrap();
        // A loop, were it followed.
        symlink(".", dir.path().join("loop")).unwrap();
        fs::write(dir.path().join(OsStr::from_bytes(b"caf\xe9.yaml")), "text").unwrap();
        let folder = Folder::read(dir.path()).unwrap();
        assert_eq!(names(&folder), ["real.yaml"]);
        let refused: Vec<_> = folder.refused.iter().map(|refused| refused.file.as_str()).collect();
        assert_eq!(refused, ["caf\u{fffd}.yaml", "dangling.md", "link.yaml", "loop"]);
    }

    #[test]
    fn too_many_bytes_are_not_read() {
        let dir = tempfile::tempdir().unwrap();
        // Sparse: it takes no room on the disk.
        File::create(dir.path().join("a.yaml")).unwrap().set_len(BYTES_MAX + 1).unwrap();
        assert!(matches!(Folder::read(dir.path()), Err(FolderError::TooMuch { .. })));
    }

    #[test]
    fn a_missing_folder_is_named() {
        let error = Folder::read(Path::new("/nonexistent/folder")).unwrap_err();
        assert_eq!(error.to_string(), "failed to read /nonexistent/folder");
    }
}
