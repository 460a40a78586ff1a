//! Secrets as files: `<dir>/<namespace>/<name>/<key>`, as Kubernetes mounts
//! them. Read at each use, so that a rotated secret counts at once.
//!
//! Invariant: a repository reaches only secrets of its own namespace. What is
//! in a file never gets into an error.

use std::io;
use std::path::{Path, PathBuf};

use tidegate_files::{FileError, FileKind, Unread};
use tidegate_git::credentials::SecretFiles;
use tidegate_model::syntax::{check_dns_label, check_dns_subdomain};

/// A bundle of all public authorities has some 220 KiB.
const FILE: FileKind = FileKind { what: "the secret", bytes_max: 1 << 20 };
/// So one secret takes 32 MiB of memory at most.
const FILES_MAX: usize = 32;

#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error(
        "the server has no secrets: set `secrets.dir` in its configuration to a directory of files NAMESPACE/NAME/KEY"
    )]
    NoDirectory,
    #[error("`{0}` cannot be the name of a secret")]
    Name(String),
    #[error("there is no secret {namespace}/{name}: the server looks for a folder of that name in its `secrets.dir`")]
    NotFound { namespace: String, name: String },
    #[error("`{key}` of the secret {namespace}/{name} {reason}")]
    File { namespace: String, name: String, key: String, reason: Unread },
    #[error("the secret {namespace}/{name} has more than {FILES_MAX} files: is it the right folder?")]
    TooMany { namespace: String, name: String },
    #[error("the secret {namespace}/{name} cannot be read")]
    Read { namespace: String, name: String, source: io::Error },
}

#[derive(Clone, Debug)]
pub struct Secrets {
    dir: Option<PathBuf>,
}

impl Secrets {
    pub fn new(dir: Option<PathBuf>) -> Self {
        Self { dir }
    }

    pub fn read(&self, namespace: &str, name: &str) -> Result<SecretFiles, SecretError> {
        let dir = self.dir.as_ref().ok_or(SecretError::NoDirectory)?;
        if check_dns_label(namespace).is_err() || check_dns_subdomain(name).is_err() {
            return Err(SecretError::Name(name.to_owned()));
        }
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        match read_folder(&dir.join(&namespace).join(&name)) {
            Ok(files) => Ok(files),
            Err(Failure::File { key, reason }) => Err(SecretError::File { namespace, name, key, reason }),
            Err(Failure::TooMany) => Err(SecretError::TooMany { namespace, name }),
            Err(Failure::Folder(error)) if error.kind() == io::ErrorKind::NotFound => {
                Err(SecretError::NotFound { namespace, name })
            }
            Err(Failure::Folder(source)) => Err(SecretError::Read { namespace, name, source }),
        }
    }
}

enum Failure {
    File { key: String, reason: Unread },
    TooMany,
    Folder(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Folder(error)
    }
}

fn read_folder(folder: &Path) -> Result<SecretFiles, Failure> {
    let mut files = SecretFiles::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(key) = entry.file_name().into_string() else { continue };
        // A mounted secret swaps whole folders behind names like `..data`.
        if key.starts_with('.') || !std::fs::metadata(entry.path())?.is_file() {
            continue;
        }
        if files.len() == FILES_MAX {
            return Err(Failure::TooMany);
        }
        match FILE.read(&entry.path()) {
            Ok(content) => files.insert(key, content),
            Err(FileError { reason, .. }) => return Err(Failure::File { key, reason }),
        };
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mounted_secret_and_its_rotation() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("shop/git");
        for (version, token) in [("..1", "old"), ("..2", "new")] {
            std::fs::create_dir_all(folder.join(version)).unwrap();
            std::fs::write(folder.join(version).join("token"), token).unwrap();
            let _ = std::fs::remove_file(folder.join("..data"));
            std::os::unix::fs::symlink(version, folder.join("..data")).unwrap();
            let _ = std::os::unix::fs::symlink("..data/token", folder.join("token"));
            let files = Secrets::new(Some(dir.path().to_owned())).read("shop", "git").unwrap();
            assert_eq!(files.into_iter().collect::<Vec<_>>(), [("token".to_owned(), token.as_bytes().to_vec())]);
        }
    }

    #[test]
    fn what_is_no_secret() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("shop/large")).unwrap();
        std::fs::write(dir.path().join("shop/large/token"), vec![0; FILE.bytes_max as usize + 1]).unwrap();
        let secrets = Secrets::new(Some(dir.path().to_owned()));
        for (namespace, name, expected) in [
            ("shop", "absent", "there is no secret shop/absent"),
            ("shop", "..", "`..` cannot be the name"),
            ("shop", "../other/git", "cannot be the name"),
            ("..", "git", "cannot be the name"),
            ("shop", "large", "`token` of the secret shop/large has more than 1048576 bytes"),
        ] {
            let error = secrets.read(namespace, name).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let error = Secrets::new(None).read("shop", "git").unwrap_err().to_string();
        assert!(error.contains("set `secrets.dir`"), "{error}");
    }
}
