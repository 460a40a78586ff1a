//! Where a program is: in the folder of the ecosystem's convention, or in the
//! cache of what we built.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::program::{Program, fingerprint};

/// The convention of kubebuilder and envtest: a folder of ready programs.
const KUBEBUILDER_VARIABLE: &str = "KUBEBUILDER_ASSETS";
/// Names the folder of built programs; `cargo xtask test` sets it.
pub const FOLDER_VARIABLE: &str = "TIDEGATE_TEST_ASSETS";
/// Replaces the user's cache folder.
const CACHE_VARIABLE: &str = "TIDEGATE_ASSETS_CACHE";

#[derive(Clone, Debug)]
pub struct Places {
    /// Programs of somebody else, taken where they are there.
    given: Option<PathBuf>,
    /// Programs that we built, of exactly the versions of `tests/assets`.
    built: PathBuf,
}

#[derive(Debug, Error)]
pub enum Missing {
    #[error("no {name} in {}: run `cargo xtask assets`, which builds it once, or set KUBEBUILDER_ASSETS", built.display())]
    Program { name: &'static str, built: PathBuf },
    #[error("no folder for the test programs: set TIDEGATE_ASSETS_CACHE, XDG_CACHE_HOME or HOME")]
    Cache,
}

impl Places {
    pub fn from_env() -> Result<Self, Missing> {
        Self::from_variables(|name| std::env::var_os(name).filter(|value| !value.is_empty()))
    }

    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, Missing> {
        let folder = |name: &str| variable(name).map(PathBuf::from);
        let given = folder(KUBEBUILDER_VARIABLE);
        if let Some(built) = folder(FOLDER_VARIABLE) {
            return Ok(Self { given, built });
        }
        let cache = folder(CACHE_VARIABLE)
            .or_else(|| folder("XDG_CACHE_HOME").map(|cache| cache.join("tidegate/assets")))
            .or_else(|| folder("HOME").map(|home| home.join(".cache/tidegate/assets")))
            .ok_or(Missing::Cache)?;
        Ok(Self { given, built: cache.join(fingerprint()) })
    }

    /// The folder of built programs.
    pub fn built(&self) -> &Path {
        &self.built
    }

    pub fn find(&self, program: Program) -> Result<PathBuf, Missing> {
        let name = program.name();
        let folders = self.given.iter().chain([&self.built]);
        let found = folders.map(|folder| folder.join(name)).find(|path| path.is_file());
        found.ok_or_else(|| Missing::Program { name, built: self.built.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(variables: &[(&str, &Path)]) -> Result<Places, Missing> {
        Places::from_variables(|name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_os_str().to_owned())
        })
    }

    #[test]
    fn the_first_variable_decides() {
        let (a, b, c, d) = (Path::new("/a"), Path::new("/b"), Path::new("/c"), Path::new("/d"));
        let hash = fingerprint();
        let all = [(FOLDER_VARIABLE, a), (CACHE_VARIABLE, b), ("XDG_CACHE_HOME", c), ("HOME", d)];
        let expected = [
            a.to_owned(),
            b.join(&hash),
            c.join("tidegate/assets").join(&hash),
            d.join(".cache/tidegate/assets").join(&hash),
        ];
        for (skip, expected) in expected.into_iter().enumerate() {
            assert_eq!(places(&all[skip..]).unwrap().built(), expected);
        }
        assert!(matches!(places(&[]), Err(Missing::Cache)));
    }

    #[test]
    fn given_programs_come_first_and_the_rest_is_built() {
        let (given, built) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let places = places(&[(KUBEBUILDER_VARIABLE, given.path()), (FOLDER_VARIABLE, built.path())]).unwrap();
        let missing = places.find(Program::Etcd).unwrap_err().to_string();
        assert!(missing.contains("no etcd in") && missing.contains("cargo xtask assets"), "{missing}");
        for folder in [&built, &given] {
            std::fs::write(folder.path().join("etcd"), "").unwrap();
            assert_eq!(places.find(Program::Etcd).unwrap(), folder.path().join("etcd"));
        }
        assert!(places.find(Program::Helm).is_err());
    }
}
